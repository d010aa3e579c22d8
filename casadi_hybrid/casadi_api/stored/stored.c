/* A solver out of a text that CasADi reads: the text names this library and hands it the pickle.
 *
 * CasADi writes down an external function as the path of its library and the words it was configured
 * with. Here the word is the pickle of a solver, and Python, which is in the process or there is no
 * solving, reads it. One library serves all texts, and CasADi asks for the signature right after it
 * has configured, in the same thread. Which solver a call means is told by its last argument. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#ifdef _WIN32
#define PSAPI_VERSION 2 /* EnumProcessModules is of the kernel's library */
#include <windows.h>

#include <psapi.h>
#else
#include <dlfcn.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef long long int casadi_int;

enum { INPUTS = 9, OUTPUTS = 6, SHAPE = 3 };

/* What both return: nothing is 0, which is what ctypes makes of an exception that got away. */
enum { FAILED, DONE, INTERRUPTED };

/* Filled by Python, by whoever is first. Where they fail they have said on stderr what it was. */
typedef struct hybrid_stored_hooks {
    /* text: the pickle. shapes: of the inputs, then of the outputs. */
    int (*configure)(const char *text, casadi_int *shapes);
    int (*evaluate)(const double **arg, double **res);
} hybrid_stored_hooks;

hybrid_stored_hooks hybrid_stored_entries;
static __thread casadi_int shapes[SHAPE * (INPUTS + OUTPUTS)];

/* What any library of this process has under a name, or NULL. */
#ifdef _WIN32
static void *there(const char *name) {
    HMODULE modules[1024];
    DWORD size = 0;
    if (!EnumProcessModules(GetCurrentProcess(), modules, sizeof modules, &size)) return 0;
    if (size > sizeof modules) size = sizeof modules;
    for (DWORD i = 0; i < size / sizeof modules[0]; i++) {
        FARPROC found = GetProcAddress(modules[i], name);
        if (found) return (void *)(uintptr_t)found;
    }
    return 0;
}
#else
static void *there(const char *name) { return dlsym(RTLD_DEFAULT, name); }
#endif

/* Let the Python of this process fill the hooks. */
static int attach(void) {
    int (*is_up)(void), (*ensure)(void), (*run)(const char *);
    void (*release)(int);
    char line[160];
    *(void **)&is_up = there("Py_IsInitialized");
    *(void **)&ensure = there("PyGILState_Ensure");
    *(void **)&run = there("PyRun_SimpleString");
    *(void **)&release = there("PyGILState_Release");
    if (!is_up || !ensure || !run || !release || !is_up()) {
        fprintf(stderr, "casadi_hybrid: a stored solver needs Python, and this process has none\n");
        return 1;
    }
    /* An expression: no name is left in the user's module. */
    snprintf(line, sizeof line,
             "__import__('casadi_hybrid.casadi_api.stored.text', fromlist=['attach']).attach(%llu)",
             (unsigned long long)(uintptr_t)&hybrid_stored_entries);
    int state = ensure();
    if (!hybrid_stored_entries.configure) run(line);
    release(state);
    return !hybrid_stored_entries.configure;
}

int hybrid_stored_config(int argc, const char **argv) {
    if (argc != 2) {
        fprintf(stderr, "casadi_hybrid: this library reads what NlpSolver.serialize wrote\n");
        return 1;
    }
    if (!hybrid_stored_entries.configure && attach()) return 1;
    return hybrid_stored_entries.configure(argv[1], shapes) != DONE;
}

/* CasADi wants both where there is a configuration. */
void hybrid_stored_incref(void) {}

void hybrid_stored_decref(void) {}

casadi_int hybrid_stored_n_in(void) { return INPUTS; }

casadi_int hybrid_stored_n_out(void) { return OUTPUTS; }

const casadi_int *hybrid_stored_sparsity_in(casadi_int i) { return shapes + SHAPE * i; }

const casadi_int *hybrid_stored_sparsity_out(casadi_int i) { return shapes + SHAPE * (INPUTS + i); }

int hybrid_stored_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w) {
    *sz_arg = INPUTS;
    *sz_res = OUTPUTS;
    *sz_iw = *sz_w = 0;
    return 0;
}

int hybrid_stored(const double **arg, double **res, casadi_int *iw, double *w, int mem) {
    (void)iw;
    (void)w;
    (void)mem;
    int said = hybrid_stored_entries.evaluate(arg, res);
    if (said == INTERRUPTED) {
        /* Raised as soon as CasADi is back in Python. */
        void (*interrupt)(void);
        *(void **)&interrupt = there("PyErr_SetInterrupt");
        if (interrupt) interrupt();
    }
    return said != DONE;
}
