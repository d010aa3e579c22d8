/* A = U diag(sigma) Y' and what is made of it: combinations of columns, the multipliers of least
 * squares y = -U diag(1/sigma) Y' grad f, and moves to a point with its decomposition. */
#include <string.h>

#include "trust_region/trust_region.h"

void hybrid_combine(int n, int count, const double *columns, const double *t, double *out) {
    for (int i = 0; i < n; i++) out[i] = 0.0;
    for (int j = 0; j < count; j++, columns += n)
        for (int i = 0; i < n; i++) out[i] += t[j] * columns[i];
}

void hybrid_decompose_A(hybrid_run *run, const hybrid_point *at, hybrid_spectrum *found) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    memset(one->rows, 0, (size_t)plan->n * (size_t)plan->m * sizeof(double));
    for (int k = 0; k < plan->nnz_A; k++)
        one->rows[(long long)plan->A_rows[k] * plan->n + plan->A_cols[k]] += at->A[k];
    hybrid_singular(plan->m, plan->n, one->rows, HYBRID_EXACT, one->tau,
                    one->order, found);
}

void hybrid_arrive(hybrid_run *run) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    const hybrid_spectrum *A = &one->here;
    const hybrid_point *at = &run->at->of;
    hybrid_decompose_A(run, at, &one->here);
    one->modelled = 0;
    for (int j = 0; j < A->rank; j++)
        one->shares[j] =
            -(hybrid_dot(plan->n, A->V + (long long)j * plan->n, at->gradient) / A->sigma[j]);
    /* Where the violation alone is reduced f does not count. */
    hybrid_combine(plan->m, one->of.target_violation < 0.0 ? A->rank : 0, A->U, one->shares,
                   run->now.y);
}

double hybrid_gauss_newton(hybrid_run *run, const hybrid_spectrum *A, const double *h,
                           double radius, double *d) {
    hybrid_composite *one = run->composite;
    const int n = run->plan->n, m = run->plan->m, rank = A->rank;
    double *squares = one->rising, *slope = one->rising + rank, damping = 0.0;
    for (int j = 0; j < rank; j++) {
        one->damped[j] = hybrid_dot(m, A->U + (long long)j * m, h);
        one->shares[j] = -one->damped[j] / A->sigma[j];
    }
    if (hybrid_norm(rank, one->shares) > radius) {
        for (int j = 0; j < rank; j++) { /* rising */
            squares[rank - 1 - j] = A->sigma[j] * A->sigma[j];
            slope[rank - 1 - j] = A->sigma[j] * one->damped[j];
        }
        damping = hybrid_trust_region(rank, squares, slope, radius, one->damped);
        for (int j = 0; j < rank; j++) one->shares[j] = one->damped[rank - 1 - j];
    }
    hybrid_combine(n, rank, A->V, one->shares, d);
    return damping;
}

void hybrid_go_to(hybrid_run *run, hybrid_trial *trial) {
    if (trial == run->trial) run->trial = run->at;
    else run->corrected = run->at;
    run->at = trial;
    hybrid_arrive(run);
}
