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
    int (*warm)(const hybrid_plan *, const hybrid_functions *, const hybrid_numbers *, double *,
                int *, hybrid_answer *);
    const hybrid_plan *plan;
    const hybrid_functions *functions;
    const hybrid_numbers *numbers;
    double *doubles;
    int *ints;
    hybrid_answer *answer;
    /* The slope of L by the parameters, at the x and lam_g of the answer. */
    void (*slope)(void *raw);
    void *raw;
    const double *slopes;
    int status;
} hybrid_adapter;

void hybrid_attach(hybrid_adapter *adapter);
casadi_int hybrid_solver_n_in(void);
casadi_int hybrid_solver_n_out(void);
const char *hybrid_solver_name_in(casadi_int i);
const char *hybrid_solver_name_out(casadi_int i);
const casadi_int *hybrid_solver_sparsity_in(casadi_int i);
const casadi_int *hybrid_solver_sparsity_out(casadi_int i);
int hybrid_solver_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,
                       casadi_int *sz_w);
int hybrid_solver(const double **arg, double **res, casadi_int *iw, double *w, int mem);
/* The same without inputs. */
casadi_int hybrid_ready_n_in(void);
casadi_int hybrid_ready_n_out(void);
const char *hybrid_ready_name_out(casadi_int i);
const casadi_int *hybrid_ready_sparsity_out(casadi_int i);
int hybrid_ready_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w);
int hybrid_ready(const double **arg, double **res, casadi_int *iw, double *w, int mem);

#endif
