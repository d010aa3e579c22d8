/* The engine as a function that CasADi loads: its own conversions bring numbers in and out.
 *
 * CasADi asks an external function for its signature before there is anything to hand in, so what
 * this one stands for has to be known to the library: every user loads a copy of its own and
 * attaches to it. */
#include "adapter.h"

#include <string.h>

static hybrid_adapter *attached;

void hybrid_attach(hybrid_adapter *adapter) { attached = adapter; }

casadi_int hybrid_solver_n_in(void) { return HYBRID_INPUTS; }

casadi_int hybrid_solver_n_out(void) { return HYBRID_OUTPUTS; }

const char *hybrid_solver_name_in(casadi_int i) {
    static const char *const names[] = {"x0",  "p",   "lbx",    "ubx",
                                        "lbg", "ubg", "lam_x0", "lam_g0"};
    return names[i];
}

const char *hybrid_solver_name_out(casadi_int i) {
    static const char *const names[] = {"x", "f", "g", "lam_x", "lam_g", "lam_p"};
    return names[i];
}

const casadi_int *hybrid_solver_sparsity_in(casadi_int i) { return attached->shape_in[i]; }

const casadi_int *hybrid_solver_sparsity_out(casadi_int i) { return attached->shape_out[i]; }

int hybrid_solver_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,
                       casadi_int *sz_w) {
    *sz_arg = HYBRID_INPUTS;
    *sz_res = HYBRID_OUTPUTS;
    *sz_iw = *sz_w = 0;
    return 0;
}

/* The solve (none where `warm` is NULL: what is known is handed out), the slope by the parameters,
 * the outputs. A solve that ends otherwise than solved leaves the outputs as they are: `status`
 * tells. */
static int solved(hybrid_adapter *self, double **res) {
    self->status = self->answer->status;
    if (self->warm)
        self->status = self->warm(self->plan, self->functions, self->numbers, self->doubles,
                                  self->ints, self->answer);
    if (self->status) return 0;
    *self->out[1] = self->answer->end.f;
    self->slope(self->raw);
    for (casadi_int i = 0; i < self->size_out[5]; i++) self->out[5][i] = -self->slopes[i];
    for (int i = 0; i < HYBRID_OUTPUTS; i++)
        if (res[i]) memcpy(res[i], self->out[i], (size_t)self->size_out[i] * sizeof(double));
    return 0;
}

/* With the arguments that are not there yet, as CasADi hands them. */
int hybrid_solver(const double **arg, double **res, casadi_int *iw, double *w, int mem) {
    hybrid_adapter *self = attached;
    (void)iw;
    (void)w;
    (void)mem;
    for (int i = 0; i < HYBRID_INPUTS; i++)
        if (!self->there[i] && arg[i])
            memcpy(self->in[i], arg[i], (size_t)self->size_in[i] * sizeof(double));
    return solved(self, res);
}

casadi_int hybrid_ready_n_in(void) { return 0; }

casadi_int hybrid_ready_n_out(void) { return HYBRID_OUTPUTS; }

const char *hybrid_ready_name_out(casadi_int i) { return hybrid_solver_name_out(i); }

const casadi_int *hybrid_ready_sparsity_out(casadi_int i) { return attached->shape_out[i]; }

int hybrid_ready_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w) {
    *sz_arg = *sz_iw = *sz_w = 0;
    *sz_res = HYBRID_OUTPUTS;
    return 0;
}

/* With those fetched from where they lie: CasADi would make copies of them, which takes longer than
 * many a solve has for all that is not one. */
int hybrid_ready(const double **arg, double **res, casadi_int *iw, double *w, int mem) {
    hybrid_adapter *self = attached;
    (void)arg;
    (void)iw;
    (void)w;
    (void)mem;
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
