/* What the engine looks like to CasADi. */
#ifndef HYBRID_ADAPTER_H
#define HYBRID_ADAPTER_H

#include "hybrid.h"

typedef long long int casadi_int;

enum { HYBRID_INPUTS = 8, HYBRID_OUTPUTS = 6 };

/* A ca.DM as it lies in memory: room that C++ leaves at the head, its pattern, of which there is one
 * for all that are equal, and the numbers from begin to end. */
typedef struct {
    const void *head, *pattern;
    const double *begin, *end, *room;
} hybrid_matrix;

/* Beside those of hybrid.h: an argument is not the full column that it ought to be. */
enum { HYBRID_OTHER_SHAPE = -1 };

typedef struct {
    /* Shapes as CasADi writes them, and the numbers of entries. */
    const casadi_int *shape_in[HYBRID_INPUTS];
    const casadi_int *shape_out[HYBRID_OUTPUTS];
    casadi_int size_in[HYBRID_INPUTS], size_out[HYBRID_OUTPUTS];
    double *in[HYBRID_INPUTS]; /* where the solve reads its numbers */
    int there[HYBRID_INPUTS];  /* which of them are there already */
    /* Where those lie that `hybrid_ready` is to fetch, NULL for the others; full columns' patterns. */
    const hybrid_matrix *matrix[HYBRID_INPUTS];
    const void *column[HYBRID_INPUTS];
    double *out[HYBRID_OUTPUTS];
    int (*solve)(const hybrid_plan *, const hybrid_functions *, const hybrid_numbers *,
                 const hybrid_options *, void *, double *, int *, hybrid_answer *);
    const hybrid_plan *plan;
    const hybrid_functions *functions;
    const hybrid_numbers *numbers;
    const hybrid_options *options;
    void *bytes;
    double *doubles;
    int *ints;
    hybrid_answer *answer;
    /* The slope of L by the parameters, at the x and lam_g of the answer; NULL without any. */
    void (*slope)(void *raw);
    void *raw;
    const double *slopes;
    int status;
} hybrid_adapter;

/* Solves for the arguments that are not there yet, as CasADi hands them; returns 0, `status` tells. */
int hybrid_solve_for(hybrid_adapter *adapter, const double **arg, double **res);

/* So many solvers share a loaded library, each in a slot of its own. */
#define HYBRID_EACH_SLOT(DO)                                                                       \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) \
    DO(15) DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25) DO(26) DO(27)     \
    DO(28) DO(29) DO(30) DO(31)
enum { HYBRID_SLOTS = 32 };

int hybrid_slots(void);
void hybrid_attach(int slot, hybrid_adapter *adapter);

/* The functions of slot k: `hybrid_solver_k` with CasADi's inputs, `hybrid_ready_k` without. */
#define HYBRID_DECLARE(k)                                                                          \
    casadi_int hybrid_solver_##k##_n_in(void);                                                     \
    casadi_int hybrid_solver_##k##_n_out(void);                                                    \
    const char *hybrid_solver_##k##_name_in(casadi_int i);                                         \
    const char *hybrid_solver_##k##_name_out(casadi_int i);                                        \
    const casadi_int *hybrid_solver_##k##_sparsity_in(casadi_int i);                               \
    const casadi_int *hybrid_solver_##k##_sparsity_out(casadi_int i);                              \
    int hybrid_solver_##k##_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,        \
                                 casadi_int *sz_w);                                                \
    int hybrid_solver_##k(const double **arg, double **res, casadi_int *iw, double *w, int mem);   \
    casadi_int hybrid_ready_##k##_n_in(void);                                                      \
    casadi_int hybrid_ready_##k##_n_out(void);                                                     \
    const char *hybrid_ready_##k##_name_out(casadi_int i);                                         \
    const casadi_int *hybrid_ready_##k##_sparsity_out(casadi_int i);                               \
    int hybrid_ready_##k##_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,         \
                                casadi_int *sz_w);                                                 \
    int hybrid_ready_##k(const double **arg, double **res, casadi_int *iw, double *w, int mem);
HYBRID_EACH_SLOT(HYBRID_DECLARE)

#endif
