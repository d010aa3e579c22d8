/* Residuals of a point: the scaled error E_0 (Waechter and Biegler 2006, eq. 5), and three in the
 * user's units. These are the violation of bounds and rows, |grad f + J'lam_g + lam_x|, and the
 * products of multipliers and distances, each in the largest entry. */
#include <math.h>

#include "problem/problem.h"

double hybrid_scaled_error(const hybrid_form *form, const hybrid_point *at, double *slope,
                           const double *y, const hybrid_bound_multipliers *held, double *work,
                           hybrid_sizes *sizes) {
    const hybrid_plan *plan = form->plan;
    double error, of_slacks, products = 0.0, sum_z = 0.0;
    for (int k = 0; k < held->count; k++) {
        const int i = held->at[k];
        const double z_lower = held->z_lower[i], z_upper = held->z_upper[i], w = at->w[i];
        const double lower = form->lower[i], upper = form->upper[i];
        const double room = hybrid_room(lower, upper);
        const double low = z_lower * hybrid_distance(lower, w, room);
        const double high = z_upper * hybrid_distance(w, upper, room);
        const double product = low > high ? low : high; /* z is not negative */
        if (!(product <= products)) products = product;
        sum_z += z_lower + z_upper;
        work[k] = slope[i];
        slope[i] += z_upper - z_lower;
    }
    sizes->slope = error = hybrid_norm_inf(plan->n_free, slope);
    of_slacks = hybrid_norm_inf(plan->n - plan->n_free, slope + plan->n_free);
    for (int k = 0; k < held->count; k++) slope[held->at[k]] = work[k];
    if (!(of_slacks <= error)) error = of_slacks;
    if (at->inner > 0.0) error = 0.0; /* rounding */
    error /= hybrid_error_scale(hybrid_norm1(plan->m, y) + sum_z, plan->m + form->bounds);
    sizes->c = hybrid_norm_inf(plan->m, at->c);
    if (!(sizes->c <= error)) error = sizes->c;
    products /= hybrid_error_scale(sum_z, form->bounds);
    if (!(products <= error)) error = products;
    return error;
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

void hybrid_residuals_at(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                         const double *lam_g, double *work, hybrid_residuals *found) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    double by_x = hybrid_complementarity(plan->n_x, at->x, of->lbx, of->ubx, lam_x, 0, 0, -1.0);
    double by_g = hybrid_complementarity(plan->n_g, at->raw_g, of->lbg, of->ubg, lam_g, 0, 0, -1.0);
    double over = hybrid_max_violation(plan->n_g, at->raw_g, of->lbg, of->ubg);
    stationarity(plan, at, lam_x, lam_g, work);
    *found = (hybrid_residuals){at->raw_f, over, hybrid_norm_inf(plan->n_x, work),
                                hybrid_max(by_x, by_g)};
}

int hybrid_residuals_of(const hybrid_form *form, const hybrid_point *at, const double *y,
                        const hybrid_bound_multipliers *held, const hybrid_sizes *sizes,
                        double *work, hybrid_residuals *found) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    double *lam_x = form->answer->lam_x, *lam_g = form->answer->lam_g;
    double of_g = sizes->c, products = 0.0;
    if (!form->plain) {
        hybrid_multipliers_out(form, at, y, held->z_lower, held->z_upper, lam_x, lam_g);
        hybrid_residuals_at(form, at, lam_x, lam_g, work, found);
        return hybrid_may_be_rounding(form, at, lam_g, found);
    }
    if (plan->n_slack) {
        of_g = hybrid_max_violation(plan->n_g, at->raw_g, of->lbg, of->ubg);
        products = hybrid_complementarity(plan->n_g, at->raw_g, of->lbg, of->ubg, y, 0, 0, -1.0);
    }
    for (int k = 0; k < held->count && held->at[k] < plan->n_x; k++) {
        const int i = held->at[k];
        const double lam = held->z_upper[i] - held->z_lower[i];
        const double bound = lam > 0.0 ? of->ubx[i] : of->lbx[i];
        const double product = lam == 0.0 ? 0.0 : fabs(lam * (bound - at->x[i]));
        if (!(product <= products)) products = product;
    }
    *found = (hybrid_residuals){at->raw_f, of_g, sizes->slope, products};
    return hybrid_may_be_rounding(form, at, y, found);
}

double hybrid_merit(const hybrid_numbers *numbers, const hybrid_residuals *residuals) {
    double merit = residuals->feasibility / numbers->feasibility;
    double other = residuals->stationarity / numbers->stationarity;
    if (!(other <= merit)) merit = other;
    other = residuals->complementarity / numbers->complementarity;
    if (!(other <= merit)) merit = other;
    return merit;
}

void hybrid_copy_to_answer(const hybrid_form *form, const hybrid_point *at) {
    const hybrid_plan *plan = form->plan;
    hybrid_answer *answer = form->answer;
    double of_x = hybrid_norm_inf(plan->n_x, answer->lam_x);
    double of_g = hybrid_norm_inf(plan->n_g, answer->lam_g);
    double slope = hybrid_norm_inf(plan->n_x, at->raw_gradient);
    hybrid_copy(plan->n_x, at->x, answer->x);
    hybrid_copy(plan->n_g, at->raw_g, answer->g);
    hybrid_copy(plan->n_x, at->raw_gradient, answer->gradient);
    hybrid_copy(plan->nnz_J, at->raw_J, answer->J);
    answer->largest_lam = of_x > of_g ? of_x : of_g;
    answer->huge = answer->largest_lam > HYBRID_RESIDUALS_HUGE_LAM * hybrid_max(slope, 1.0);
}
