/* The engine as a function that CasADi loads: its own conversions bring numbers in and out.
 *
 * CasADi asks an external function for its signature before there is anything to hand in, and never
 * says which of its functions it calls. So each solver has functions of its own, by name: those of
 * a slot that it is attached to. To load a copy of the library for each would take a fifth of the
 * time in which a small solver is built and called once. */
#include "adapter.h"

#include <string.h>

static hybrid_adapter *attached[HYBRID_SLOTS];

int hybrid_slots(void) { return HYBRID_SLOTS; }

void hybrid_attach(int slot, hybrid_adapter *adapter) { attached[slot] = adapter; }

static const char *name_in(casadi_int i) {
    static const char *const names[] = {"x0",  "p",   "lbx",    "ubx",
                                        "lbg", "ubg", "lam_x0", "lam_g0"};
    return names[i];
}

static const char *name_out(casadi_int i) {
    static const char *const names[] = {"x", "f", "g", "lam_x", "lam_g", "lam_p"};
    return names[i];
}

static int work(casadi_int inputs, casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,
                casadi_int *sz_w) {
    *sz_arg = inputs;
    *sz_res = HYBRID_OUTPUTS;
    *sz_iw = *sz_w = 0;
    return 0;
}

/* The solve, the slope by the parameters, the outputs. Where nothing was begun the outputs are left as
 * they are: `status` tells. */
static int solved(hybrid_adapter *self, double **res) {
    self->status = self->solve(self->plan, self->functions, self->numbers, self->options,
                               self->bytes, self->doubles, self->ints, self->answer);
    if (self->status == HYBRID_BAD_NUMBERS || self->status == HYBRID_OTHER_PATTERN) return 0;
    *self->out[1] = self->answer->end.f;
    if (self->slope) self->slope(self->raw);
    for (casadi_int i = 0; i < self->size_out[5]; i++) self->out[5][i] = -self->slopes[i];
    for (int i = 0; i < HYBRID_OUTPUTS; i++)
        if (res[i]) memcpy(res[i], self->out[i], (size_t)self->size_out[i] * sizeof(double));
    return 0;
}

/* CasADi hands NULL where an argument is zero. */
int hybrid_solve_for(hybrid_adapter *self, const double **arg, double **res) {
    for (int i = 0; i < HYBRID_INPUTS; i++) {
        if (self->there[i]) continue;
        if (arg[i]) memcpy(self->in[i], arg[i], (size_t)self->size_in[i] * sizeof(double));
        else memset(self->in[i], 0, (size_t)self->size_in[i] * sizeof(double));
    }
    return solved(self, res);
}

/* With those fetched from where they lie: CasADi would make copies of them, which takes longer than
 * many a solve has for all that is not one. */
static int ready(hybrid_adapter *self, double **res) {
    self->status = HYBRID_OTHER_SHAPE;
    for (int i = 0; i < HYBRID_INPUTS; i++) {
        const hybrid_matrix *matrix = self->matrix[i];
        if (!matrix) continue;
        if (matrix->pattern != self->column[i] || matrix->end - matrix->begin != self->size_in[i])
            return 0;
        if (matrix->begin != matrix->end)
            memcpy(self->in[i], matrix->begin, (size_t)self->size_in[i] * sizeof(double));
    }
    return solved(self, res);
}

#define DEFINE(k)                                                                                  \
    casadi_int hybrid_solver_##k##_n_in(void) { return HYBRID_INPUTS; }                            \
    casadi_int hybrid_solver_##k##_n_out(void) { return HYBRID_OUTPUTS; }                          \
    const char *hybrid_solver_##k##_name_in(casadi_int i) { return name_in(i); }                   \
    const char *hybrid_solver_##k##_name_out(casadi_int i) { return name_out(i); }                 \
    const casadi_int *hybrid_solver_##k##_sparsity_in(casadi_int i) {                              \
        return attached[k]->shape_in[i];                                                           \
    }                                                                                              \
    const casadi_int *hybrid_solver_##k##_sparsity_out(casadi_int i) {                             \
        return attached[k]->shape_out[i];                                                          \
    }                                                                                              \
    int hybrid_solver_##k##_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,        \
                                 casadi_int *sz_w) {                                               \
        return work(HYBRID_INPUTS, sz_arg, sz_res, sz_iw, sz_w);                                   \
    }                                                                                              \
    int hybrid_solver_##k(const double **arg, double **res, casadi_int *iw, double *w, int mem) {  \
        (void)iw;                                                                                  \
        (void)w;                                                                                   \
        (void)mem;                                                                                 \
        return hybrid_solve_for(attached[k], arg, res);                                                      \
    }                                                                                              \
    casadi_int hybrid_ready_##k##_n_in(void) { return 0; }                                         \
    casadi_int hybrid_ready_##k##_n_out(void) { return HYBRID_OUTPUTS; }                           \
    const char *hybrid_ready_##k##_name_out(casadi_int i) { return name_out(i); }                  \
    const casadi_int *hybrid_ready_##k##_sparsity_out(casadi_int i) {                              \
        return attached[k]->shape_out[i];                                                          \
    }                                                                                              \
    int hybrid_ready_##k##_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,         \
                                casadi_int *sz_w) {                                                \
        return work(0, sz_arg, sz_res, sz_iw, sz_w);                                               \
    }                                                                                              \
    int hybrid_ready_##k(const double **arg, double **res, casadi_int *iw, double *w, int mem) {   \
        (void)arg;                                                                                 \
        (void)iw;                                                                                  \
        (void)w;                                                                                   \
        (void)mem;                                                                                 \
        return ready(attached[k], res);                                                            \
    }
HYBRID_EACH_SLOT(DEFINE)
