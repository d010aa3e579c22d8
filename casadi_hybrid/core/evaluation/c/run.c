/* Evaluation: the runs in order, each a loop over parts of one kind. */
#include <string.h>

#include "blocks.h"

static int evaluated(const blocks_function *function, const double *const *values, int count,
                     double *out) {
    double *v = function->v;
    for (int i = 0; i < count; i++)
        if (function->sizes[i]) {
            memcpy(v, values[i], (size_t)function->sizes[i] * sizeof(double));
            v += function->sizes[i];
        }
    v = function->v;
    for (long long k = 0; k < function->n_runs; k++) {
        const blocks_run *run = &function->runs[k];
        if (run->part) run->part(run->count, run->at, run->shared, v, out, function->own);
        else blocks_lanes(&run->program, run->count, run->at, run->shared, v, out, function->own);
    }
    for (long long k = 0; k < function->n_copies; k++)
        out[function->target[k]] = v[function->source[k]];
    return 0;
}

int blocks_first(void *self, const double *x, const double *p, double *out) {
    const double *values[2] = {x, p};
    return evaluated(&((blocks_functions *)self)->first, values, 2, out);
}

int blocks_second(void *self, const double *x, const double *lam_g, const double *p, double *out) {
    const double *values[3] = {x, lam_g, p};
    return evaluated(&((blocks_functions *)self)->second, values, 3, out);
}
