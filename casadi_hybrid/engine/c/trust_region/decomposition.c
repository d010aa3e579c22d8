/* A = U diag(sigma) Y' and what is made of it: combinations of columns, the multipliers of least
 * squares y = -U diag(1/sigma) Y' grad f, and moves to a point with its decomposition. */
#include <string.h>

#include "trust_region/trust_region.h"

void hybrid_combine(int n, int count, const double *columns, const double *t, double *out) {
    for (int i = 0; i < n; i++) out[i] = 0.0;
    for (int j = 0; j < count; j++, columns += n)
        for (int i = 0; i < n; i++) out[i] += t[j] * columns[i];
}

void hybrid_decompose_A(hybrid_cold *cold, const hybrid_point *at, hybrid_spectrum *found) {
    hybrid_composite *one = hybrid_composite_of(cold);
    const hybrid_plan *plan = cold->plan;
    memset(one->rows, 0, (size_t)plan->n * (size_t)plan->m * sizeof(double));
    for (int k = 0; k < plan->nnz_A; k++)
        one->rows[(long long)plan->A_rows[k] * plan->n + plan->A_cols[k]] += at->A[k];
    hybrid_singular(plan->m, plan->n, one->rows, HYBRID_LOOKAHEAD_RANK_TOLERANCE, one->tau,
                    one->order, found);
}

void hybrid_fit(hybrid_cold *cold, const hybrid_point *at, const hybrid_spectrum *A, double *y) {
    hybrid_composite *one = hybrid_composite_of(cold);
    const hybrid_plan *plan = cold->plan;
    for (int j = 0; j < A->rank; j++)
        one->shares[j] =
            -(hybrid_dot(plan->n, A->V + (long long)j * plan->n, at->gradient) / A->sigma[j]);
    hybrid_combine(plan->m, A->rank, A->U, one->shares, y);
}

void hybrid_orient(int n, double *direction) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += direction[i] / (i + HYBRID_TRUST_REGION_TURN);
    for (int i = 0; i < n && sum < 0.0; i++) direction[i] = -direction[i];
}

void hybrid_go_to(hybrid_cold *cold, hybrid_spot *spot, int known) {
    hybrid_composite *one = hybrid_composite_of(cold);
    hybrid_spectrum kept = one->here;
    if (!known) hybrid_decompose_A(cold, &spot->of, &one->there);
    one->here = one->there;
    one->there = kept;
    one->modelled = 0;
    if (spot == cold->trial) cold->trial = cold->at;
    else cold->bent = cold->at;
    cold->at = spot;
    if (one->of.goal < 0.0) hybrid_fit(cold, &spot->of, &one->here, cold->now.y);
    else memset(cold->now.y, 0, (size_t)cold->plan->m * sizeof(double)); /* f waits */
}
