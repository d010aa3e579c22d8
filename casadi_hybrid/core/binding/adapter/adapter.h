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

/* Of a solver's inputs and outputs, as CasADi writes the shapes of full columns: rows, 1, 1. */
typedef struct {
    casadi_int inputs[HYBRID_INPUTS][3], outputs[HYBRID_OUTPUTS][3];
} hybrid_shapes;

typedef struct {
    const hybrid_shapes *shapes;
    double *inputs[HYBRID_INPUTS]; /* where the solve reads its numbers */
    int given;                     /* how many of them a graph gives; the others stay as they are */
    /* Where those lie that `hybrid_ready` is to fetch, NULL for the others; full columns' patterns. */
    const hybrid_matrix *matrix[HYBRID_INPUTS];
    const void *column[HYBRID_INPUTS];
    double *outputs[HYBRID_OUTPUTS];
    int (*solve)(const hybrid_plan *, const hybrid_functions *, const hybrid_numbers *,
                 const hybrid_options *, void *, double *, int *, hybrid_answer *);
    const hybrid_plan *plan;
    const hybrid_functions *functions;
    hybrid_numbers *numbers;
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

/* CasADi asks for shapes while a Function is made, and only then: they are these. */
void hybrid_describe(const hybrid_shapes *shapes);

/* Solves for arguments as CasADi hands them: NULL is zero; returns 0, `status` tells. */
int hybrid_solve_for(hybrid_adapter *adapter, const double **arg, double **res);

/* Many solves: of each a row of all that lies side by side from inputs[0] on, in the same order. */
typedef struct {
    double *numbers;
    long long inputs, each;        /* how many of a row are read, and how many there are */
    const signed char *sides;      /* n_x + n_g of each: the working set to try first */
    const signed char *with_sides; /* of each: 0 where the multipliers are to name it */
    hybrid_answer *answers;
} hybrid_rows;

/* The solves from `begin` to before `end`, each as if it were alone. */
void hybrid_solve_rows(hybrid_adapter *adapter, const hybrid_rows *rows, long long begin,
                       long long end);

/* What CasADi asks an external function of `inputs` arguments, answered; the first of them says which
 * solver is meant. */
const char *hybrid_name_in(casadi_int i);
const char *hybrid_name_out(casadi_int i);
const casadi_int *hybrid_sparsity_in(casadi_int i);
const casadi_int *hybrid_sparsity_out(casadi_int i);
int hybrid_work(casadi_int inputs, casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,
                casadi_int *sz_w);
#define HYBRID_ANSWER(type, name, parameters, answer) \
    type name parameters;                             \
    type name parameters { return answer; }
#define HYBRID_DEFINE(name, inputs)                                                              \
    HYBRID_ANSWER(casadi_int, name##_n_in, (void), inputs)                                       \
    HYBRID_ANSWER(casadi_int, name##_n_out, (void), HYBRID_OUTPUTS)                              \
    HYBRID_ANSWER(const char *, name##_name_in, (casadi_int i), hybrid_name_in(i))               \
    HYBRID_ANSWER(const char *, name##_name_out, (casadi_int i), hybrid_name_out(i))             \
    HYBRID_ANSWER(const casadi_int *, name##_sparsity_in, (casadi_int i), hybrid_sparsity_in(i)) \
    HYBRID_ANSWER(const casadi_int *, name##_sparsity_out, (casadi_int i), hybrid_sparsity_out(i)) \
    HYBRID_ANSWER(int, name##_work,                                                              \
                  (casadi_int *arg, casadi_int *res, casadi_int *iw, casadi_int *w),             \
                  hybrid_work(inputs, arg, res, iw, w))

/* The solver is the address of its adapter, and nobody else is told that; the other inputs are
 * there, or are to be fetched. */
int hybrid_ready(const double **arg, double **res, casadi_int *iw, double *w, int mem);

#endif
