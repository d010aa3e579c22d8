/* The core as external functions of CasADi, whose own conversions read and write the numbers.
 *
 * One library serves all solvers. CasADi asks for shapes only while it makes a Function, so
 * hybrid_describe sets them before, and the first argument of each call identifies the solver. */
#include "adapter.h"

#include <stdint.h>
#include <string.h>

static const hybrid_shapes *described;

void hybrid_describe(const hybrid_shapes *shapes) { described = shapes; }

const char *hybrid_name_in(casadi_int i) {
    static const char *const names[] = {"solver", "x0",  "p",   "lbx",    "ubx",
                                        "lbg",    "ubg", "lam_x0", "lam_g0"};
    return names[i];
}

const char *hybrid_name_out(casadi_int i) {
    static const char *const names[] = {"x", "f", "g", "lam_x", "lam_g", "lam_p"};
    return names[i];
}

static const casadi_int scalar[] = {1, 1, 1};

const casadi_int *hybrid_sparsity_in(casadi_int i) {
    return i && described ? described->inputs[i - 1] : scalar;
}

const casadi_int *hybrid_sparsity_out(casadi_int i) {
    return described ? described->outputs[i] : scalar;
}

static size_t bytes_of(const hybrid_adapter *self, int input) {
    return (size_t)self->shapes->inputs[input][0] * sizeof(double);
}

/* Solves, with the gradient by the parameters; returns 0 if `status` refuses the numbers. */
static int solved(hybrid_adapter *self) {
    self->status = self->solve(self->plan, self->functions, self->numbers, self->options,
                               self->bytes, self->doubles, self->ints, self->answer);
    if (self->status == HYBRID_BAD_NUMBERS || self->status == HYBRID_OTHER_PATTERN) return 0;
    *self->outputs[1] = self->answer->end.f;
    if (self->slope) self->slope(self->raw);
    for (casadi_int i = 0; i < self->shapes->outputs[5][0]; i++)
        self->outputs[5][i] = -self->slopes[i];
    return 1;
}

/* Solves and copies the outputs, unless the numbers are refused. */
static int solve_into(hybrid_adapter *self, double **res) {
    if (!solved(self)) return 0;
    for (int i = 0; i < HYBRID_OUTPUTS; i++)
        if (res[i])
            memcpy(res[i], self->outputs[i],
                   (size_t)self->shapes->outputs[i][0] * sizeof(double));
    return 0;
}

void hybrid_solve_rows(hybrid_adapter *self, const hybrid_rows *rows, long long begin,
                       long long end) {
    const long long sides = (long long)self->plan->n_x + self->plan->n_g;
    const size_t inputs = (size_t)rows->inputs, others = (size_t)rows->each - inputs;
    for (long long k = begin; k < end; k++) {
        double *row = rows->numbers + k * rows->each;
        const signed char *side = rows->with_sides[k] ? rows->sides + k * sides : 0;
        int begun;
        memcpy(self->inputs[0], row, inputs * sizeof(double));
        self->numbers->side_x = side;
        self->numbers->side_g = side ? side + self->plan->n_x : 0;
        begun = solved(self);
        rows->answers[k] = *self->answer;
        if (self->functions->observer->ended) return;
        if (begun) memcpy(row + inputs, self->outputs[0], others * sizeof(double));
    }
}

int hybrid_solve_for(hybrid_adapter *self, const double **arg, double **res) {
    for (int i = 0; i < self->given; i++) {
        if (arg[i]) memcpy(self->inputs[i], arg[i], bytes_of(self, i));
        else memset(self->inputs[i], 0, bytes_of(self, i));
    }
    return solve_into(self, res);
}

/* Reads the inputs in place: copies by CasADi would take longer than all else around a solve. */
int hybrid_ready(const double **arg, double **res, casadi_int *iw, double *w, int mem) {
    hybrid_adapter *self = (hybrid_adapter *)(uintptr_t)*arg[0];
    (void)iw;
    (void)w;
    (void)mem;
    self->status = HYBRID_OTHER_SHAPE;
    for (int i = 0; i < HYBRID_INPUTS; i++) {
        const hybrid_matrix *matrix = self->matrix[i];
        if (!matrix) continue;
        if (matrix->pattern != self->column[i] ||
            matrix->end - matrix->begin != self->shapes->inputs[i][0])
            return 0;
        if (matrix->begin != matrix->end)
            memcpy(self->inputs[i], matrix->begin, bytes_of(self, i));
    }
    return solve_into(self, res);
}

HYBRID_DEFINE(hybrid_ready, 1)
