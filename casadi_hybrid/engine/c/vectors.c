/* Vectors and matrices on the plan's patterns. */
#include <math.h>

#include "internal.h"

void hybrid_pull(const hybrid_plan *plan, const double *A, const double *y, double *out) {
    for (int i = 0; i < plan->n; i++) out[i] = 0.0;
    for (int k = 0; k < plan->nnz_A; k++) out[plan->A_cols[k]] += A[k] * y[plan->A_rows[k]];
}

void hybrid_times_A(const hybrid_plan *plan, const double *A, const double *v, double *out) {
    for (int i = 0; i < plan->m; i++) out[i] = 0.0;
    for (int k = 0; k < plan->nnz_A; k++) out[plan->A_rows[k]] += A[k] * v[plan->A_cols[k]];
}

void hybrid_times_W(const hybrid_plan *plan, const double *W, const double *v, double *out) {
    for (int i = 0; i < plan->n; i++) out[i] = 0.0;
    for (int k = 0; k < plan->nnz_W; k++) out[plan->W_rows[k]] += W[k] * v[plan->W_cols[k]];
}

double hybrid_largest(int count, const double *v) {
    double found = 0.0;
    for (int i = 0; i < count; i++) {
        double size = fabs(v[i]);
        if (!(size <= found)) {
            if (isnan(size)) return size;
            found = size;
        }
    }
    return found;
}

double hybrid_sum(int count, const double *v) {
    double found = 0.0;
    for (int i = 0; i < count; i++) found += fabs(v[i]);
    return found;
}

int hybrid_all_finite(long long count, const double *v) {
    /* The sum may overflow where the numbers do not; then each is looked at. */
    double found = 0.0;
    for (long long i = 0; i < count; i++) found += fabs(v[i]);
    if (isfinite(found)) return 1;
    for (long long i = 0; i < count; i++)
        if (!isfinite(v[i])) return 0;
    return 1;
}
