/* What a solver looks like to CasADi where it stands in a graph. */
#ifndef HYBRID_GRAPH_H
#define HYBRID_GRAPH_H

#include "adapter.h"

/* The memory of one solve at a time; all of it is Python's. */
typedef struct {
    int busy;                /* whether a thread has it */
    const hybrid_plan *plan; /* NULL: nothing is there yet */
    const hybrid_functions *functions;
    const hybrid_numbers *numbers;
    double *doubles;
    int *ints;
    hybrid_answer *answer;
    double *in, *out, *lam_p; /* the rows that numbers and answer point into */
    hybrid_buffer *slope;
    void *cold_bytes;
    double *cold_doubles;
    int *cold_ints;
    hybrid_state *state;
    const int *arrived; /* 1 once the functions have been compiled; NULL: nobody waits for them */
} hybrid_slot;

/* The row of inputs of a thread's last solve. */
typedef struct {
    int busy;
    long long stamp;           /* its number, 0 while it is written or there is none */
    unsigned long long thread; /* that has called for it */
    double *row;
} hybrid_record;

typedef struct {
    int references; /* Functions that use this */
    int slots;
    hybrid_slot *slot;
    int records;
    hybrid_record *record;
    long long calls; /* solves so far */
    /* Of the row of inputs, of that of outputs, of starts; as CasADi writes shapes: full columns. */
    const casadi_int *in, *out, *starts;
    int n_x;
    int warm_starts;            /* whether multipliers count */
    int linear;                 /* whether g is affine */
    hybrid_attempt first, near; /* from nothing, and from multipliers nearby */
    hybrid_attempt composite;   /* by composite steps, where they are: equations alone begin so */
    int (*warm)(const hybrid_plan *, const hybrid_functions *, const hybrid_numbers *, double *,
                int *, hybrid_answer *);
    int (*begin)(const hybrid_plan *, const hybrid_functions *, const hybrid_numbers *,
                 const hybrid_attempt *, void *, double *, int *, hybrid_state *,
                 hybrid_answer *);
    int (*run)(void *);
    int (*begin_composite)(const hybrid_plan *, const hybrid_functions *, const hybrid_numbers *,
                           const hybrid_attempt *, void *, double *, int *, hybrid_state *,
                           hybrid_answer *);
    int (*run_composite)(void *);
    int (*slope)(void *, const double *, const double *, const double *, double *);
    /* Python's: fills a slot for bounds of the kinds that the row of inputs has. Returns 0, or
     * another number where that cannot be. */
    int (*prepare)(int slot, const double *in);
} hybrid_pool;

void hybrid_attach_pool(hybrid_pool *pool);
casadi_int hybrid_in_graph_n_in(void);
casadi_int hybrid_in_graph_n_out(void);
const casadi_int *hybrid_in_graph_sparsity_in(casadi_int i);
const casadi_int *hybrid_in_graph_sparsity_out(casadi_int i);
int hybrid_in_graph_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,
                         casadi_int *sz_w);
void hybrid_in_graph_incref(void);
void hybrid_in_graph_decref(void);
int hybrid_in_graph_checkout(void);
void hybrid_in_graph_release(int mem);
int jac_hybrid_in_graph(const double **arg, double **res, casadi_int *iw, double *w, int mem);
int hybrid_in_graph(const double **arg, double **res, casadi_int *iw, double *w, int mem);

#endif
