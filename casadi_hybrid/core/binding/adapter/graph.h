/* Solvers in CasADi's graphs. */
#ifndef HYBRID_GRAPH_H
#define HYBRID_GRAPH_H

#include "adapter.h"

/* Memory of one solve at a time, owned by Python. */
typedef struct {
    int busy;                /* a thread has the slot */
    hybrid_adapter *adapter; /* NULL: not prepared yet */
    const int *arrived;      /* 1 once the functions are compiled; NULL: no wait for them */
} hybrid_slot;

/* The inputs of a thread's last solve, side by side. */
typedef struct {
    long long stamp; /* number of the solve, 0: none */
    unsigned long long thread;
    double *row;
} hybrid_record;

/* Results of `prepare`. */
enum { HYBRID_FAILED = 0, HYBRID_READY = 1, HYBRID_NO_NUMBERS = 2, HYBRID_INTERRUPTED = 3 };

/* A solver in graphs. */
typedef struct hybrid_pool {
    struct hybrid_pool *next;
    double handle; /* number by which graphs name the solver */
    const hybrid_shapes *shapes;
    int slots;
    hybrid_slot *slot;
    /* Python's: prepares a slot for the kinds of the arguments' bounds, or refuses them. */
    int (*prepare)(int slot, const double **arg);
    void (*interrupt)(void); /* Python's: raises Ctrl-C as soon as CasADi returns to Python */
    int locked;              /* a thread has the records */
    int records;
    hybrid_record *record;
    long long calls; /* solves so far */
} hybrid_pool;

/* Registers a solver. */
void hybrid_attach_pool(hybrid_pool *pool);
/* Inputs of the last solve with a number above `after` in a thread, 0 for any thread. Returns the
 * number of the solve, 0 if none is known. */
long long hybrid_last_in_graph(hybrid_pool *pool, long long after, unsigned long long thread,
                               double *row);

int hybrid_in_graph(const double **arg, double **res, casadi_int *iw, double *w, int mem);

/* By functions of these names CasADi knows the numbers of directions that have derivatives; the
 * derivatives are passed as Functions. */
#define HYBRID_EACH_WIDTH(DO) DO(1) DO(2) DO(4) DO(8) DO(16) DO(32) DO(64)

#endif
