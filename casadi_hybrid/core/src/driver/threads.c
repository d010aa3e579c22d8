/* Two threads, for which C99 has no function. */
#include "hybrid.h" /* first: windows.h defines `near` as nothing */

/* A job for a thread. */
typedef struct call {
    hybrid_job job;
    void *what;
} call;

#ifdef _WIN32

#include <windows.h>

static DWORD WINAPI run(void *given) {
    const call *made = given;
    made->job(made->what);
    return 0;
}

void hybrid_at_once(hybrid_job job, void *one, void *other) {
    call made = {job, other};
    HANDLE thread = CreateThread(0, 0, run, &made, 0, 0);
    job(one);
    if (!thread) {
        job(other);
        return;
    }
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

#else

#include <pthread.h>

static void *run(void *given) {
    const call *made = given;
    made->job(made->what);
    return 0;
}

void hybrid_at_once(hybrid_job job, void *one, void *other) {
    call made = {job, other};
    pthread_t thread;
    const int refused = pthread_create(&thread, 0, run, &made);
    job(one);
    if (refused) job(other);
    else pthread_join(thread, 0);
}

#endif
