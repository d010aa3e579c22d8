/* How far a point is from a solution: as barrier/iterate.py and point/kkt.py. */
#include <math.h>
#include <string.h>

#include "internal.h"

static double excess_mean(double sum, int count) {
    double many = count > 1 ? count : 1;
    if (sum <= 99.0 * many) return 1.0;
    return (sum / many > 100.0 ? sum / many : 100.0) / 100.0;
}

double hybrid_scaled_error(const hybrid_form *form, const hybrid_point *at, const double *slope,
                           const double *y, const double *z_lower, const double *z_upper,
                           double *work, hybrid_sizes *sizes) {
    const hybrid_plan *plan = form->plan;
    double error, of_slacks, products;
    double sum_z = hybrid_sum(plan->n, z_lower) + hybrid_sum(plan->n, z_upper);
    for (int i = 0; i < plan->n; i++) work[i] = slope[i] - z_lower[i] + z_upper[i];
    sizes->slope = error = hybrid_largest(plan->n_free, work);
    of_slacks = hybrid_largest(plan->n - plan->n_free, work + plan->n_free);
    if (!(of_slacks <= error)) error = of_slacks;
    error /= excess_mean(hybrid_sum(plan->m, y) + sum_z, plan->m + form->bounds);
    sizes->c = hybrid_largest(plan->m, at->c);
    if (!(sizes->c <= error)) error = sizes->c;
    for (int i = 0; i < plan->n; i++) { /* z is not negative, and 0 where there is no bound */
        double low = at->below[i] * z_lower[i], high = at->above[i] * z_upper[i];
        work[i] = low > high ? low : high;
    }
    products = hybrid_largest(plan->n, work) / excess_mean(sum_z, form->bounds);
    if (!(products <= error)) error = products;
    return error;
}

/* What rounding may leave at most where terms cancel; 0 where no tolerance notices. */
static double rounding(double product, double other) {
    double bound = HYBRID_RESIDUALS_ROUNDING * (4.0 * product + 2.0 * other);
    return bound >= HYBRID_KKT_TINY ? bound : 0.0;
}

/* The largest |multiplier|·(distance to the bound that its sign points to); `work`: count. */
static double slackness(int count, const double *value, const double *lower, const double *upper,
                        const double *lam, double *restrict work) {
    for (int i = 0; i < count; i++) {
        double bound = lam[i] > 0.0 ? upper[i] : lower[i], distance = bound - value[i];
        double product = lam[i] * (fabs(bound) < INFINITY ? distance : 1.0);
        work[i] = lower[i] < upper[i] ? product : 0.0;
    }
    return hybrid_largest(count, work);
}

/* The sum of |multipliers| of what may move between its bounds. */
static double strength(int count, const double *lower, const double *upper, const double *lam) {
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        if (lower[i] < upper[i]) sum += fabs(lam[i]);
    return sum;
}

/* The user's gradient + J'lam_g + lam_x. */
static void stationarity(const hybrid_plan *plan, const hybrid_point *at, const double *lam_x,
                         const double *lam_g, double *out) {
    int k = 0;
    for (int j = 0; j < plan->n_x; j++) {
        double sum = at->raw_gradient[j] + lam_x[j];
        for (; k < plan->nnz_J && plan->J_cols[k] == j; k++)
            sum += at->raw_J[k] * lam_g[plan->J_rows[k]];
        out[j] = sum;
    }
}

int hybrid_residuals_at(const hybrid_form *form, const hybrid_point *at,
                        const hybrid_sizes *sizes, const double *lam_x, const double *lam_g,
                        double *work, hybrid_residuals *found) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    const int known = sizes && form->plain; /* then they are those of the form */
    const int all_equal = known && !plan->n_slack;
    double of_g = all_equal ? sizes->c
                            : hybrid_excess(plan->n_g, at->raw_g, of->lbg, of->ubg);
    double of_x = hybrid_excess(plan->n_x, at->x, of->lbx, of->ubx);
    double by_x = slackness(plan->n_x, at->x, of->lbx, of->ubx, lam_x, work);
    double by_g = all_equal ? 0.0 : slackness(plan->n_g, at->raw_g, of->lbg, of->ubg, lam_g, work);
    double steepest = 0.0;
    int excused = 0;
    if (!known) stationarity(plan, at, lam_x, lam_g, work);
    found->f = at->raw_f;
    found->feasibility = of_x > of_g ? of_x : of_g;
    found->stationarity = known ? sizes->slope : hybrid_largest(plan->n_x, work);
    if (of_g > of->feasibility || found->stationarity > of->stationarity)
        steepest = hybrid_sum(plan->nnz_J, at->raw_J);
    if (of_g > of->feasibility)
        excused |= of_g <= rounding(steepest * hybrid_sum(plan->n_x, at->x), 0.0);
    if (found->stationarity > of->stationarity)
        excused |= found->stationarity <= rounding(steepest * hybrid_sum(plan->n_g, lam_g),
                                                   hybrid_sum(plan->n_x, at->raw_gradient));
    found->complementarity = by_x > by_g ? by_x : by_g;
    if (found->complementarity > of->complementarity)
        excused |= strength(plan->n_x, of->lbx, of->ubx, lam_x) > HYBRID_KKT_HUGE ||
                   strength(plan->n_g, of->lbg, of->ubg, lam_g) > HYBRID_KKT_HUGE;
    return excused;
}

double hybrid_merit(const hybrid_numbers *numbers, const hybrid_residuals *residuals) {
    double merit = residuals->feasibility / numbers->feasibility;
    double other = residuals->stationarity / numbers->stationarity;
    if (!(other <= merit)) merit = other;
    other = residuals->complementarity / numbers->complementarity;
    if (!(other <= merit)) merit = other;
    return merit;
}

void hybrid_deliver(const hybrid_form *form, const hybrid_point *at) {
    const hybrid_plan *plan = form->plan;
    hybrid_answer *answer = form->answer;
    double of_x = hybrid_largest(plan->n_x, answer->lam_x);
    double of_g = hybrid_largest(plan->n_g, answer->lam_g);
    double slope = hybrid_largest(plan->n_x, at->raw_gradient);
    memcpy(answer->x, at->x, (size_t)plan->n_x * sizeof(double));
    memcpy(answer->g, at->raw_g, (size_t)plan->n_g * sizeof(double));
    memcpy(answer->gradient, at->raw_gradient, (size_t)plan->n_x * sizeof(double));
    memcpy(answer->J, at->raw_J, (size_t)plan->nnz_J * sizeof(double));
    answer->largest_lam = of_x > of_g ? of_x : of_g;
    if (!(slope > 1.0)) slope = 1.0;
    answer->huge = answer->largest_lam > HYBRID_RESIDUALS_HUGE_MULTIPLIER * slope;
    answer->reach = hybrid_largest(plan->n_x, at->x);
}
