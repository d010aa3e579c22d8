/* What rounding explains of a residual counts as zero: an entry with
 *
 *     |sum of terms| <= 100 u sum |terms|,    u = 2^-52,
 *
 * as far as the terms themselves are plausible. */
#include <math.h>
#include <string.h>

#include "problem/problem.h"

/* An entry as far as it counts, whose terms have this size. */
static double counted(double entry, double size) {
    double room = HYBRID_RESIDUALS_ROUNDING * size;
    if (!(room > HYBRID_ROUNDING_TINY)) room = 0.0;
    return fabs(entry) <= room && isfinite(size) ? 0.0 : fabs(entry);
}

static void widen(double *most, double value) {
    if (!(value <= *most)) *most = value;
}

static double outside(double value, double lower, double upper) {
    double over = value - upper, under = lower - value;
    double most = over > under ? over : under;
    return most > 0.0 ? most : 0.0;
}

void hybrid_sizes_of_rows(const hybrid_plan *plan, const hybrid_point *at, double *sizes) {
    for (int i = 0; i < plan->n_g; i++) sizes[i] = fabs(at->raw_g[i]);
    for (int k = 0; k < plan->nnz_J; k++)
        sizes[plan->J_rows[k]] += fabs(at->raw_J[k]) * fabs(at->x[plan->J_cols[k]]);
}

/* The largest violation of a row that counts: rounding explains 1e-2 of it at most. */
static double of_rows(const hybrid_form *form, const hybrid_point *at, double *sizes) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    double limit = HYBRID_ROUNDING_CAP / HYBRID_RESIDUALS_ROUNDING, found = 0.0;
    hybrid_sizes_of_rows(plan, at, sizes);
    for (int i = 0; i < plan->n_g; i++) {
        double entry = outside(at->raw_g[i], of->lbg[i], of->ubg[i]);
        widen(&found, counted(entry, hybrid_min(sizes[i], limit)));
    }
    return found;
}

/* The largest entry of the slope that counts: multipliers explain rounding only as far as they
 * are needed to balance the objective's slope. */
static double of_slope(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                       const double *lam_g, const double *slope, double *sizes) {
    const hybrid_plan *plan = form->plan;
    double limit = HYBRID_RESIDUALS_PULL * hybrid_largest(plan->n_x, at->raw_gradient);
    double found = 0.0;
    for (int i = 0; i < plan->n_x; i++) sizes[i] = fabs(lam_x[i]);
    for (int k = 0; k < plan->nnz_J; k++)
        sizes[plan->J_cols[k]] += fabs(at->raw_J[k]) * fabs(lam_g[plan->J_rows[k]]);
    for (int i = 0; i < plan->n_x; i++) {
        double size = fabs(at->raw_gradient[i]) + sizes[i];
        widen(&found, counted(slope[i], hybrid_min(size, limit)));
    }
    return found;
}

/* The largest product of a multiplier and its distance that counts. `steep`, `sizes`: of the rows,
 * NULL for variables. */
static double of_products(int count, const double *value, const double *lower,
                          const double *upper, const double *lam, const double *steep,
                          const double *sizes, double limit) {
    double found = 0.0;
    for (int i = 0; i < count; i++) {
        double bound, distance, Aty, size;
        if (!(lower[i] < upper[i]) || lam[i] == 0.0) continue;
        bound = lam[i] > 0.0 ? upper[i] : lower[i];
        distance = isinf(bound) ? 1.0 : fabs(bound - value[i]);
        Aty = fabs(lam[i]) * (steep ? steep[i] : 1.0);
        size = sizes ? sizes[i] : fabs(value[i]);
        if (!isinf(bound) && Aty <= limit && distance <= HYBRID_FORM_ROOM * size &&
            isfinite(size))
            distance = 0.0;
        widen(&found, fabs(lam[i]) * distance);
    }
    return found;
}

/* The same for variables and rows, where multipliers are so large that it matters. */
static double of_complementarity(const hybrid_form *form, const hybrid_point *at,
                                 const double *lam_x, const double *lam_g, double *steep,
                                 double *sizes) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    double limit = HYBRID_RESIDUALS_PULL * hybrid_largest(plan->n_x, at->raw_gradient);
    double large_x = hybrid_largest(plan->n_x, lam_x) > HYBRID_ROUNDING_HUGE ? limit : -1.0;
    double large_g = hybrid_largest(plan->n_g, lam_g) > HYBRID_ROUNDING_HUGE ? limit : -1.0;
    double by_x, by_g;
    memset(steep, 0, (size_t)plan->n_g * sizeof(double));
    for (int k = 0; k < plan->nnz_J; k++)
        if (fabs(at->raw_J[k]) > steep[plan->J_rows[k]])
            steep[plan->J_rows[k]] = fabs(at->raw_J[k]);
    hybrid_sizes_of_rows(plan, at, sizes);
    by_x = of_products(plan->n_x, at->x, of->lbx, of->ubx, lam_x, 0, 0, large_x);
    by_g = of_products(plan->n_g, at->raw_g, of->lbg, of->ubg, lam_g, steep, sizes, large_g);
    return by_x > by_g ? by_x : by_g;
}

/* Whether the largest entry is beyond the rounding of terms whose sum is at most this: then it
 * counts as it is, and what is smaller does not matter. */
static int is_beyond(double largest, double sum) {
    return largest > 2.0 * HYBRID_RESIDUALS_ROUNDING * sum && isfinite(sum);
}

void hybrid_subtract_rounding(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                              const double *lam_g, double *slope, double *sizes,
                              hybrid_residuals *found) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    double steepest = at->sum_J, of_g = steepest * hybrid_sum(plan->n_x, at->x);
    double sum_g = hybrid_sum(plan->n_g, lam_g), of_f = hybrid_sum(plan->n_x, at->raw_gradient);
    if (found->feasibility > 0.0 && hybrid_rounding(of_g, 0.0) > 0.0) {
        double of_x = hybrid_excess(plan->n_x, at->x, of->lbx, of->ubx);
        if (!is_beyond(found->feasibility, of_g + hybrid_largest(plan->n_g, at->raw_g)))
            found->feasibility = of_rows(form, at, sizes);
        widen(&found->feasibility, of_x);
    }
    if (hybrid_rounding(steepest * sum_g, of_f) > 0.0 &&
        !is_beyond(found->stationarity, steepest * sum_g + of_f + hybrid_largest(plan->n_x, lam_x)))
        found->stationarity = of_slope(form, at, lam_x, lam_g, slope, sizes);
    if (hybrid_sum(plan->n_x, lam_x) > HYBRID_ROUNDING_HUGE || sum_g > HYBRID_ROUNDING_HUGE)
        found->complementarity = of_complementarity(form, at, lam_x, lam_g, slope, sizes);
}
