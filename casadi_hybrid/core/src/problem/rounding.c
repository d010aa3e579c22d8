/* Residuals without rounding. A residual that is too large counts as zero as far as rounding
 * explains it: an entry with
 *
 *     |sum of terms| <= 100 u sum |terms|,    u = 2^-52,
 *
 * if the terms themselves are plausible. Implausible ones make a residual of their rounding,
 * however small their sum is. */
#include <math.h>

#include "problem/problem.h"

/* An entry as far as it counts, whose terms have this size. Rounding far below every tolerance is
 * no excuse: whoever asks for less wants to see the numbers. */
static double counted(double entry, double size) {
    double room = HYBRID_RESIDUALS_ROUNDING * size;
    return fabs(entry) <= room && room > HYBRID_ROUNDING_TINY && isfinite(size) ? 0.0 : fabs(entry);
}

static void raise_to(double *most, double value) {
    if (!(value <= *most)) *most = value;
}

void hybrid_row_sizes(const hybrid_plan *plan, const hybrid_point *at, double *sizes) {
    for (int i = 0; i < plan->n_g; i++) sizes[i] = fabs(at->raw_g[i]);
    for (int k = 0; k < plan->nnz_J; k++)
        sizes[plan->J_rows[k]] += fabs(at->raw_J[k]) * fabs(at->x[plan->J_cols[k]]);
}

/* Multipliers, times entries of J, above this are implausible: they explain nothing. */
static double multiplier_limit(const hybrid_plan *plan, const hybrid_point *at) {
    return HYBRID_ROUNDING_LAM_MAX * hybrid_norm_inf(plan->n_x, at->raw_gradient);
}

/* The largest violation of a row that counts: rounding explains 1e-2 of it at most. */
static double violation_of_rows(const hybrid_form *form, const hybrid_point *at, double *sizes) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    double limit = HYBRID_ROUNDING_CAP / HYBRID_RESIDUALS_ROUNDING, found = 0.0;
    hybrid_row_sizes(plan, at, sizes);
    for (int i = 0; i < plan->n_g; i++) {
        double entry = hybrid_max_violation(1, at->raw_g + i, of->lbg + i, of->ubg + i);
        raise_to(&found, counted(entry, hybrid_min(sizes[i], limit)));
    }
    return found;
}

/* The largest entry of the slope that counts. Multipliers explain rounding only as far as they are
 * needed to balance the objective's slope; beyond that they hide it. So an entry is no smaller than
 * the rounding of its implausible terms. */
static double stationarity_of(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                              const double *lam_g, const double *slope, double *sizes) {
    const hybrid_plan *plan = form->plan;
    double limit = multiplier_limit(plan, at);
    double found = 0.0;
    for (int i = 0; i < plan->n_x; i++) sizes[i] = fabs(lam_x[i]);
    for (int k = 0; k < plan->nnz_J; k++)
        sizes[plan->J_cols[k]] += fabs(at->raw_J[k]) * fabs(lam_g[plan->J_rows[k]]);
    for (int i = 0; i < plan->n_x; i++) {
        double size = fabs(at->raw_gradient[i]) + sizes[i];
        raise_to(&found, counted(slope[i], hybrid_min(size, limit) + at->inner));
        if (!(sizes[i] <= limit)) raise_to(&found, HYBRID_FORM_ROOM * sizes[i]);
    }
    return found;
}

double hybrid_complementarity(int count, const double *value, const double *lower,
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
        raise_to(&found, fabs(lam[i]) * distance);
    }
    return found;
}

/* The largest product of a multiplier and the violation of its equation, for implausible
 * multipliers. They trade so much of f for the violation, as if equations depend on each other at
 * feasible points alone. `steep`: the largest entry of each row of J; NULL: of any multipliers. */
static double products_of_equations(const hybrid_form *form, const hybrid_point *at,
                                    const double *lam_g, const double *steep, double limit) {
    const hybrid_numbers *of = form->numbers;
    double found = 0.0;
    for (int i = 0; i < form->plan->n_g; i++)
        if (of->lbg[i] == of->ubg[i] && (!steep || !(fabs(lam_g[i]) * steep[i] <= limit)))
            raise_to(&found, fabs(lam_g[i] * (at->raw_g[i] - of->lbg[i])));
    return found;
}

/* The largest product of variables and rows that counts, with plausible multipliers. */
static double products_of(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                          const double *lam_g, double *steep, double *sizes) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    double limit = multiplier_limit(plan, at);
    double by_x, by_g;
    hybrid_zero(plan->n_g, steep);
    for (int k = 0; k < plan->nnz_J; k++)
        if (fabs(at->raw_J[k]) > steep[plan->J_rows[k]])
            steep[plan->J_rows[k]] = fabs(at->raw_J[k]);
    hybrid_row_sizes(plan, at, sizes);
    by_x = hybrid_complementarity(plan->n_x, at->x, of->lbx, of->ubx, lam_x, 0, 0, limit);
    by_g =
        hybrid_complementarity(plan->n_g, at->raw_g, of->lbg, of->ubg, lam_g, steep, sizes, limit);
    raise_to(&by_g, products_of_equations(form, at, lam_g, steep, limit));
    return by_x > by_g ? by_x : by_g;
}

double hybrid_settled(const hybrid_form *form, const hybrid_point *from, const double *W,
                      const double *D, const int *pinned, const double *dw) {
    const hybrid_plan *plan = form->plan;
    const double rounding = HYBRID_STEP_ROUNDING * (1.0 + hybrid_norm_inf(plan->n, from->w));
    double found = 0.0;
    if (form->functions->secants) return 0.0; /* their curvature may be too large */
    for (int i = 0; i < plan->n; i++) {
        double allowed = form->numbers->tol * (1.0 + fabs(from->w[i]));
        if (!(fabs(dw[i]) <= hybrid_min(rounding, allowed))) return 0.0;
    }
    for (int i = 0; i < plan->n; i++) {
        double sum = 0.0, own = 0.0;
        for (int k = plan->W_starts[i]; k < plan->W_starts[i + 1]; k++) {
            if (plan->W_rows[k] == i) own = fabs(W[k]);
            sum += fabs(W[k]) * fabs(from->w[plan->W_rows[k]]);
        }
        if (!(pinned && pinned[i]) && !(D && D[i] > own)) raise_to(&found, sum);
    }
    return found / form->scale_f;
}

/* Residuals in doubt. */
enum { ROWS = 1, SLOPE = 2, PRODUCTS = 4 };

int hybrid_may_be_rounding(const hybrid_form *form, const hybrid_point *at, const double *lam_g,
                           const hybrid_residuals *found) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    const int rows = found->feasibility > of->feasibility;
    const int slope = found->stationarity > of->stationarity;
    const int products = found->complementarity > of->complementarity;
    const double of_lam = hybrid_norm1(plan->n_g, lam_g);
    double of_x, of_g;
    int doubtful = 0;
    /* Terms of lam_x are no larger together where they balance these. */
    if (2.0 * HYBRID_FORM_ROOM * at->sum_J * of_lam > of->stationarity) doubtful |= SLOPE;
    if (!products && products_of_equations(form, at, lam_g, 0, 0.0) > of->complementarity)
        doubtful |= PRODUCTS;
    if (!rows && !slope && !products) return doubtful;
    of_x = hybrid_norm1(plan->n_x, at->x);
    of_g = hybrid_norm1(plan->n_g, at->raw_g);
    if (rows && !(found->feasibility > HYBRID_RESIDUALS_ROUNDING * (at->sum_J * of_x + of_g)))
        doubtful |= ROWS;
    if (slope) {
        double terms = at->sum_J * of_lam + hybrid_norm1(plan->n_x, at->raw_gradient);
        if (at->inner > 0.0 || !(found->stationarity > 2.0 * HYBRID_RESIDUALS_ROUNDING * terms))
            doubtful |= SLOPE;
    }
    if (products) {
        /* A distance that counts as zero is at most ROOM (|g| + |J||x|), and |J lam| is at most the
         * limit; twice that, since these sums are rounded. */
        double most = multiplier_limit(plan, at) * of_x + of_lam * of_g;
        if (!(found->complementarity > 2.0 * HYBRID_FORM_ROOM * most)) doubtful |= PRODUCTS;
    }
    return doubtful;
}

void hybrid_subtract_rounding(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                              const double *lam_g, double *slope, double *sizes,
                              hybrid_residuals *found) {
    const int doubtful = hybrid_may_be_rounding(form, at, lam_g, found);
    if (doubtful & ROWS) found->feasibility = violation_of_rows(form, at, sizes);
    if (doubtful & SLOPE) {
        double entry = stationarity_of(form, at, lam_x, lam_g, slope, sizes);
        if (found->stationarity > form->numbers->stationarity || entry > found->stationarity)
            found->stationarity = entry;
    }
    if (doubtful & PRODUCTS)
        found->complementarity = products_of(form, at, lam_x, lam_g, slope, sizes);
}
