/* The clock, for which C99 has no function. */
#ifdef _WIN32

#include "hybrid.h" /* first: windows.h defines `near` as nothing */

#include <windows.h>

double hybrid_now(void) {
    LARGE_INTEGER now, second;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&second);
    return (double)now.QuadPart / (double)second.QuadPart;
}

#else

#define _POSIX_C_SOURCE 199309L
#include <time.h>

#include "hybrid.h"

double hybrid_now(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now)) return 0.0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
