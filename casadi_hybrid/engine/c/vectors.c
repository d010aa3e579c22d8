/* Vectors and matrices on the plan's patterns. */
#include <math.h>

#include "internal.h"

double hybrid_pull_of(const hybrid_plan *plan, const double *A, const double *y, int j) {
    double sum = 0.0;
    for (int k = plan->A_starts[j]; k < plan->A_starts[j + 1]; k++)
        sum += A[k] * y[plan->A_rows[k]];
    return sum;
}

void hybrid_pull(const hybrid_plan *plan, const double *A, const double *y, double *out) {
    for (int j = 0; j < plan->n; j++) out[j] = hybrid_pull_of(plan, A, y, j);
}

void hybrid_slope_of_L(const hybrid_plan *plan, const hybrid_point *at, const double *y,
                       double *slope) {
    for (int j = 0; j < plan->n; j++)
        slope[j] = hybrid_pull_of(plan, at->A, y, j) + at->gradient[j];
}

void hybrid_times_A(const hybrid_plan *plan, const double *A, const double *v, double *out) {
    for (int i = 0; i < plan->m; i++) out[i] = 0.0;
    for (int k = 0; k < plan->nnz_A; k++) out[plan->A_rows[k]] += A[k] * v[plan->A_cols[k]];
}

void hybrid_times_W(const hybrid_plan *plan, const double *W, const double *v, double *out) {
    for (int i = 0; i < plan->n; i++) out[i] = 0.0;
    for (int k = 0; k < plan->nnz_W; k++) out[plan->W_rows[k]] += W[k] * v[plan->W_cols[k]];
}

/* Where each entry waits for the one before it a sum takes as long as its latencies: so four of
 * them go side by side, always in the same order. */

static double larger(double size, double found) { return size > found ? size : found; }

double hybrid_largest(int count, const double *v) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0, p = 0.0, q = 0.0, r = 0.0, s = 0.0;
    int i = 0;
    /* The sums are there for a NaN, which they pass on. */
    for (; i + 4 <= count; i += 4) {
        a = larger(fabs(v[i]), a);
        b = larger(fabs(v[i + 1]), b);
        c = larger(fabs(v[i + 2]), c);
        d = larger(fabs(v[i + 3]), d);
        p += fabs(v[i]);
        q += fabs(v[i + 1]);
        r += fabs(v[i + 2]);
        s += fabs(v[i + 3]);
    }
    for (; i < count; i++) {
        a = larger(fabs(v[i]), a);
        p += fabs(v[i]);
    }
    return isnan((p + q) + (r + s)) ? NAN : larger(larger(a, b), larger(c, d));
}

double hybrid_excess(int count, const double *v, const double *lower, const double *upper) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    int i = 0;
    for (; i + 2 <= count; i += 2) {
        a = larger(v[i] - upper[i], a);
        b = larger(lower[i] - v[i], b);
        c = larger(v[i + 1] - upper[i + 1], c);
        d = larger(lower[i + 1] - v[i + 1], d);
    }
    if (i < count) a = larger(v[i] - upper[i], a), b = larger(lower[i] - v[i], b);
    return larger(larger(a, b), larger(c, d));
}

double hybrid_sum(int count, const double *v) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    int i = 0;
    for (; i + 4 <= count; i += 4) {
        a += fabs(v[i]);
        b += fabs(v[i + 1]);
        c += fabs(v[i + 2]);
        d += fabs(v[i + 3]);
    }
    for (; i < count; i++) a += fabs(v[i]);
    return (a + b) + (c + d);
}

int hybrid_all_finite(int count, const double *v) {
    /* The sum may overflow where the numbers do not; then each is looked at. */
    if (isfinite(hybrid_sum(count, v))) return 1;
    for (int i = 0; i < count; i++)
        if (!isfinite(v[i])) return 0;
    return 1;
}
