/* A solver read by CasADi from a text: the text names this library and has the pickle of the solver.
 *
 * CasADi writes down an external function as the path of its library and the words that configure it.
 * Here the word is the pickle, which Python reads. One library serves all texts: CasADi reads the
 * signature right after the configuration, in the same thread, and the last argument of a call names
 * the solver. */
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

typedef long long int casadi_int;

enum { INPUTS = 9, OUTPUTS = 6, SHAPE = 3 };

static __thread casadi_int shapes[SHAPE * (INPUTS + OUTPUTS)];

/* Symbol of any library of this process, or NULL. */
#ifdef _WIN32
static void *find_symbol(const char *name) {
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
static void *find_symbol(const char *name) { return dlsym(RTLD_DEFAULT, name); }
#endif

/* Call a Python function with two addresses; return 0, or 1 after Python has printed the reason. */
static int call_python(const char *function, const void *from, const void *to) {
    int (*is_up)(void), (*ensure)(void), (*run)(const char *);
    void (*release)(int), (*interrupt)(void);
    int state, failed, interrupted = 0;
    char line[240];
    *(void **)&is_up = find_symbol("Py_IsInitialized");
    *(void **)&ensure = find_symbol("PyGILState_Ensure");
    *(void **)&run = find_symbol("PyRun_SimpleString");
    *(void **)&release = find_symbol("PyGILState_Release");
    *(void **)&interrupt = find_symbol("PyErr_SetInterrupt");
    if (!is_up || !ensure || !run || !release || !interrupt || !is_up()) {
        fprintf(stderr, "casadi_hybrid: a stored solver needs Python, and this process has none\n");
        return 1;
    }
    /* An expression leaves no name in the user's module. */
    snprintf(line, sizeof line,
             "__import__('casadi_hybrid.solver.nlpsol.text', fromlist=['_']).%s(%llu, %llu, %llu)",
             function, (unsigned long long)(uintptr_t)from, (unsigned long long)(uintptr_t)to,
             (unsigned long long)(uintptr_t)&interrupted);
    state = ensure();
    failed = run(line);
    release(state);
    if (interrupted) interrupt(); /* raised in Python, where a failure would come first */
    return failed;
}

int hybrid_stored_config(int argc, const char **argv) {
    return call_python("configure", argc == 2 ? argv[1] : "", shapes);
}

/* CasADi requires both with a configuration. */
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
    return call_python("evaluate", arg, res);
}
