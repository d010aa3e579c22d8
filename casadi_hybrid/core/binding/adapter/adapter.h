/* The core as external functions of CasADi. */
#ifndef HYBRID_ADAPTER_H
#define HYBRID_ADAPTER_H

#include "hybrid.h"

typedef long long int casadi_int;

enum { HYBRID_INPUTS = 8, HYBRID_OUTPUTS = 6 };

/* Memory layout of a ca.DM: a header of C++, the pattern (one object for equal patterns), nonzeros
 * from begin to end, and the end of their allocation. */
typedef struct {
    const void *head, *pattern;
    const double *begin, *end, *room;
} hybrid_matrix;

/* Status beside those of hybrid.h: an argument is not the full column that is expected. */
enum { HYBRID_OTHER_SHAPE = -1 };

/* Shapes of inputs and outputs, full columns as CasADi encodes them: rows, 1, 1. */
typedef struct {
    casadi_int inputs[HYBRID_INPUTS][3], outputs[HYBRID_OUTPUTS][3];
} hybrid_shapes;

typedef struct {
    const hybrid_shapes *shapes;
    double *inputs[HYBRID_INPUTS]; /* numbers that a solve reads */
    int given;                     /* inputs that a graph passes; the others keep their values */
    /* Matrices that hybrid_ready copies to the inputs, NULL for none; patterns of full columns. */
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
    /* Gradient of L by the parameters at the answer's x and lam_g; NULL without parameters. */
    void (*slope)(void *raw);
    void *raw;
    const double *slopes;
    int status;
} hybrid_adapter;

/* Sets the shapes of the Functions that CasADi makes next. */
void hybrid_describe(const hybrid_shapes *shapes);

/* Solves for CasADi's arguments, NULL for zeros; returns 0, see `status`. */
int hybrid_solve_for(hybrid_adapter *adapter, const double **arg, double **res);

/* Many solves: a row of each, laid out as the memory from inputs[0]. */
typedef struct {
    double *numbers;
    long long inputs, each;        /* inputs of a row, and its length */
    const signed char *sides;      /* n_x + n_g of each solve: working set to try first */
    const signed char *with_sides; /* 0: the multipliers give the working set */
    hybrid_answer *answers;
} hybrid_rows;

/* Solves the rows from `begin` to before `end`, each as if it were alone. */
void hybrid_solve_rows(hybrid_adapter *adapter, const hybrid_rows *rows, long long begin,
                       long long end);

/* The functions by which CasADi asks for names and shapes. */
const char *hybrid_name_in(casadi_int i);
const char *hybrid_name_out(casadi_int i);
const casadi_int *hybrid_sparsity_in(casadi_int i);
const casadi_int *hybrid_sparsity_out(casadi_int i);
#define HYBRID_ANSWER(type, name, parameters, answer) \
    type name parameters;                             \
    type name parameters { return answer; }
#define HYBRID_DEFINE(name, inputs)                                                              \
    HYBRID_ANSWER(casadi_int, name##_n_in, (void), inputs)                                       \
    HYBRID_ANSWER(casadi_int, name##_n_out, (void), HYBRID_OUTPUTS)                              \
    HYBRID_ANSWER(const char *, name##_name_in, (casadi_int i), hybrid_name_in(i))               \
    HYBRID_ANSWER(const char *, name##_name_out, (casadi_int i), hybrid_name_out(i))             \
    HYBRID_ANSWER(const casadi_int *, name##_sparsity_in, (casadi_int i), hybrid_sparsity_in(i)) \
    HYBRID_ANSWER(const casadi_int *, name##_sparsity_out, (casadi_int i), hybrid_sparsity_out(i))

/* A solve by the address of its adapter, the only argument; inputs are written or in `matrix`. */
int hybrid_ready(const double **arg, double **res, casadi_int *iw, double *w, int mem);

#endif
