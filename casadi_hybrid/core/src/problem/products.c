/* Products of a vector with the derivatives A and W on the plan's patterns. */
#include "problem/problem.h"

void hybrid_multiply_At(const hybrid_plan *plan, const double *A, const double *y, double *out) {
    for (int j = 0; j < plan->n; j++) out[j] = hybrid_entry_of_At(plan, A, y, j);
}

void hybrid_gradient_of_L(const hybrid_plan *plan, const hybrid_point *at, const double *y,
                          double *slope) {
    for (int j = 0; j < plan->n; j++)
        slope[j] = hybrid_entry_of_At(plan, at->A, y, j) + at->gradient[j];
}

void hybrid_multiply_A(const hybrid_plan *plan, const double *A, const double *v, double *out) {
    for (int i = 0; i < plan->m; i++) out[i] = 0.0;
    for (int k = 0; k < plan->nnz_A; k++) out[plan->A_rows[k]] += A[k] * v[plan->A_cols[k]];
}

void hybrid_multiply_W(const hybrid_plan *plan, const double *W, const double *v, double *out) {
    for (int i = 0; i < plan->n; i++) out[i] = 0.0;
    for (int k = 0; k < plan->nnz_W; k++) out[plan->W_rows[k]] += W[k] * v[plan->W_cols[k]];
}

double hybrid_curvature_of(const hybrid_plan *plan, const double *W, const double *A,
                           const double *dw, const double *dy, int i) {
    double sum = 0.0;
    for (int at = plan->row_starts[i]; at < plan->row_starts[i + 1]; at++) {
        int k = plan->W_by_row[at];
        sum += W[k] * dw[plan->W_cols[k]];
    }
    return sum + hybrid_entry_of_At(plan, A, dy, i);
}

void hybrid_add_low_rank(const hybrid_plan *plan, const hybrid_low_rank *low, const double *v,
                         int count, const int *of, double *out) {
    const int n = plan->n;
    for (int k = 0; k < low->rank; k++) {
        const double *column = low->U + (long long)k * n;
        double by = 0.0;
        for (int p = 0; of && p < count; p++) by += column[of[p]] * v[of[p]];
        by = low->w[k] * (of ? by : hybrid_dot(n, column, v));
        for (int i = 0; i < n; i++) out[i] += by * column[i];
    }
}

double hybrid_largest_entry_of_W(const hybrid_plan *plan, const double *W,
                                 const hybrid_low_rank *low) {
    double largest = hybrid_norm_inf(plan->nnz_W, W);
    for (int i = 0; i < plan->n && low->rank; i++) {
        double entry = 0.0;
        for (int k = 0; k < low->rank; k++) {
            const double u = low->U[(long long)k * plan->n + i];
            entry += low->w[k] * u * u;
        }
        if (fabs(entry) > largest) largest = fabs(entry);
    }
    return largest;
}
