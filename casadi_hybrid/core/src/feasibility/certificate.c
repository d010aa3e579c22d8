/* The distance of a point from a stationary point of the violation.
 *
 * v says by how much each row of g lies outside its bounds, and S are the scales of the rows. The
 * violation is |Sv|_2^2 / 2 or |Sv|_1. Its gradient is J'u with u = SSv, or with u = Sy for a
 * subgradient y of the one-norm. A component counts unless a bound blocks the step along it. The
 * slope is the norm of those that count, divided by the larger of
 *
 *     sum |u_i| max(|J_i|, |J0_i|)   and   max_i sum_k |sum_j u_j (nabla^2 g_j)_ik| max(1, |w_k|):
 *
 * the size of the terms of J'u, and of their change after a move of the size of w. */
#include <math.h>

#include "feasibility/feasibility.h"

/* v, without what is rounding of the largest. */
static void violations(const hybrid_form *form, const hybrid_point *at, double *v) {
    const int count = form->plan->n_g;
    const double *lower = form->numbers->lbg, *upper = form->numbers->ubg;
    double least;
    for (int i = 0; i < count; i++)
        v[i] = hybrid_max(at->raw_g[i] - upper[i], 0.0) - hybrid_max(lower[i] - at->raw_g[i], 0.0);
    least = HYBRID_CERTIFICATE_ROUNDING * hybrid_norm_inf(count, v);
    for (int i = 0; i < count; i++)
        if (!(fabs(v[i]) > least)) v[i] = 0.0;
}

/* Returns whether y is a subgradient of |v|_1: of one size and the sign of v at every violated
 * row, and no larger at the others. */
static int is_subgradient(const hybrid_form *form, const double *v, const double *y) {
    const hybrid_plan *plan = form->plan;
    double force = hybrid_norm_inf(plan->m, y), most = 0.0;
    for (int i = 0; i < plan->m; i++) most = hybrid_max(most, fabs(v[plan->row_at[i]]));
    if (!(force > 0.0)) return 0;
    for (int i = 0; i < plan->m; i++) {
        double of_row = v[plan->row_at[i]], size = fabs(of_row);
        double pulled = size > 0.0 ? (of_row > 0.0 ? y[i] : -y[i]) : 0.0;
        if (size * form->scale_c[i] > HYBRID_CERTIFICATE_VIOLATED * most &&
            !(pulled >= (1.0 - HYBRID_CERTIFICATE_UNEQUAL) * force))
            return 0;
    }
    return 1;
}

/* sum |u_i| max(|J_i|, |J0_i|); `now` and `before` have n_g numbers each. */
static double size_of_terms(const hybrid_plan *plan, const double *J, const double *J0,
                            const double *u, double *now, double *before) {
    double sum = 0.0;
    for (int i = 0; i < plan->n_g; i++) now[i] = before[i] = 0.0;
    for (int k = 0; k < plan->nnz_J; k++) {
        now[plan->J_rows[k]] += J[k] * J[k];
        before[plan->J_rows[k]] += J0[k] * J0[k];
    }
    for (int i = 0; i < plan->n_g; i++)
        if (u[i] != 0.0) sum += fabs(u[i]) * sqrt(hybrid_max(now[i], before[i]));
    return sum;
}

/* max_i sum_k |sum_j u_j (nabla^2 g_j)_ik| max(1, |w_k|); work: y, m, and `row_sums`, n. */
static double size_of_curvature(hybrid_form *form, const hybrid_point *at, const double *u,
                                double *W, double *y, double *row_sums) {
    const hybrid_plan *plan = form->plan;
    for (int i = 0; i < plan->m; i++) y[i] = u[plan->row_at[i]] / form->scale_c[i];
    if (hybrid_curvature(form, at, y, W)) return 0.0;
    for (int i = 0; i < plan->n; i++) row_sums[i] = 0.0;
    for (int k = 0; k < plan->nnz_W; k++)
        row_sums[plan->W_rows[k]] += fabs(W[k]) * hybrid_max(1.0, fabs(at->w[plan->W_cols[k]]));
    return hybrid_norm_inf(plan->n, row_sums);
}

/* The norm of the slope without what a bound blocks: x is on it, or moving onto it gains nothing.
 * Of a variable that is near its bound only because both are small, the gain of that move says more
 * than the distance. `all`: what moving all violated rows onto their bounds would gain. */
static double free_slope(const hybrid_form *form, const hybrid_point *at, const double *slope,
                         double all) {
    const hybrid_numbers *of = form->numbers;
    double sum = 0.0;
    for (int i = 0; i < form->plan->n_x; i++) {
        double steep = hybrid_max(fabs(slope[i]), HYBRID_DIVISOR_TINY), x = at->x[i];
        double room = HYBRID_CERTIFICATE_ON_BOUND * hybrid_max(1.0, fabs(x));
        double most = HYBRID_CERTIFICATE_BOUND_GAIN * all / steep;
        room = hybrid_max(room, HYBRID_CERTIFICATE_ON_BOUND * all / steep);
        if ((slope[i] > 0.0 ? x - of->lbx[i] : of->ubx[i] - x) <= (room < most ? room : most))
            continue;
        sum += slope[i] * slope[i];
    }
    return sqrt(sum);
}

long long hybrid_violation_slope_doubles(const hybrid_plan *plan) {
    return 4LL * plan->n_g + plan->n_x + plan->n;
}

double hybrid_violation_slope(hybrid_form *form, const hybrid_point *at, const double *J0,
                              const double *y, double *W, double *work) {
    const hybrid_plan *plan = form->plan;
    const int n_g = plan->n_g;
    double *v = work, *u = v + n_g, *slope = u + n_g, *rest = slope + plan->n_x, size, bend;
    violations(form, at, v);
    if (y && !is_subgradient(form, v, y)) return 1.0;
    hybrid_zero(n_g, u);
    for (int i = 0; i < plan->m; i++) {
        int row = plan->row_at[i];
        double scale = form->scale_c[i];
        u[row] = y ? scale * y[i] : scale * scale * v[row];
    }
    hybrid_zero(plan->n_x, slope);
    for (int k = 0; k < plan->nnz_J; k++)
        slope[plan->J_cols[k]] += at->raw_J[k] * u[plan->J_rows[k]];
    size = size_of_terms(plan, at->raw_J, J0, u, rest, rest + n_g);
    bend = size_of_curvature(form, at, u, W, rest, rest + n_g);
    return free_slope(form, at, slope, hybrid_dot(n_g, u, v)) /
           hybrid_max(hybrid_max(size, bend), HYBRID_DIVISOR_TINY);
}
