/* What a solver looks like to CasADi where it stands in a graph. */
#ifndef HYBRID_GRAPH_H
#define HYBRID_GRAPH_H

#include "adapter.h"

/* The memory of one solve at a time; all of it is Python's. */
typedef struct {
    int busy;                 /* whether a thread has it */
    hybrid_adapter *adapter;  /* NULL: nothing is there yet */
    const int *arrived; /* 1 once the functions have been compiled; NULL: nobody waits for them */
} hybrid_slot;

/* The inputs of a thread's last solve, side by side. */
typedef struct {
    long long stamp;           /* its number, 0 where there is none */
    unsigned long long thread; /* that has called for it */
    double *row;
} hybrid_record;

/* What `prepare` returns. */
enum { HYBRID_FAILED = 0, HYBRID_READY = 1, HYBRID_NO_NUMBERS = 2, HYBRID_INTERRUPTED = 3 };

/* A solver in graphs. */
typedef struct hybrid_pool {
    struct hybrid_pool *next;
    double handle; /* the number by which a graph names it */
    const hybrid_shapes *shapes;
    int slots;
    hybrid_slot *slot;
    /* Python's: fills a slot for bounds of the kinds that the arguments have. Where an argument has no
     * number it says so, and where they cannot be solved for it fails and has said why. */
    int (*prepare)(int slot, const double **arg);
    void (*interrupt)(void); /* Python's: has Ctrl-C raised as soon as CasADi is back in Python */
    int locked; /* whether a thread has the records */
    int records;
    hybrid_record *record;
    long long calls; /* solves so far */
} hybrid_pool;

/* Makes a solver known. */
void hybrid_attach_pool(hybrid_pool *pool);
/* The inputs of the last solve after so many that a thread has called for, or any thread where it is
 * 0. Returns the number of the solve, 0 where none is known. */
long long hybrid_last_in_graph(hybrid_pool *pool, long long after, unsigned long long thread,
                               double *row);

int hybrid_in_graph(const double **arg, double **res, casadi_int *iw, double *w, int mem);

/* CasADi looks for these names to know for how many directions there are derivatives, and is handed
 * them as Functions. */
#define HYBRID_EACH_WIDTH(DO) DO(1) DO(2) DO(4) DO(8) DO(16) DO(32) DO(64)

#endif
