/* The optimality error E_nu of Waechter and Biegler (2006), eq. 5:
 *
 *     max(|grad f + A'y - z_lower + z_upper| / s_d, |c|, |Z (w - bound) - nu e| / s_c),
 *
 * in the largest entry, with s_d, s_c the mean multiplier in units of s_max, at least one; in parts
 * of which it is found for any nu. And the residuals of an iterate in the user's units. */
#include <math.h>

#include "primal_dual/primal_dual.h"

/* Widens [least, most] by z*(distance) where there is a bound, and adds to the sum. */
static void add_products(int count, const double *has, const double *distance, const double *room,
                         const double *z, double exact, hybrid_error *found) {
    double products[HYBRID_BLOCK];
    for (int from = 0; from < count; from += HYBRID_BLOCK) {
        int size = hybrid_block(from, count);
        double least, most;
        int bounds_met = 0;
        for (int i = 0; i < size; i++) {
            double product = distance[from + i] * z[from + i];
            int met = hybrid_is_met_bound(room[from + i], distance[from + i], exact);
            products[i] = has[from + i] > 0.0 && !met ? product : NAN; /* passed over */
            bounds_met += met;
            found->sum += has[from + i] * product;
        }
        found->met += bounds_met;
        least = hybrid_min_entry(size, products);
        most = hybrid_max_entry(size, products);
        if (least < found->least) found->least = least;
        if (most > found->most) found->most = most;
    }
}

void hybrid_kkt_error(const hybrid_form *form, const hybrid_point *at, const hybrid_iterate *it,
                      double *Aty, hybrid_error *found) {
    const hybrid_plan *plan = form->plan;
    double sum_z = hybrid_norm1(plan->n, it->z_lower) + hybrid_norm1(plan->n, it->z_upper);
    const double exact = form->numbers->tol;
    double of_c, most = 0.0;
    found->least = INFINITY;
    found->sum = 0.0;
    found->met = 0;
    found->most = form->bounds ? 0.0 : -INFINITY;
    add_products(plan->n, form->has_lower, at->below, form->room, it->z_lower, exact, found);
    add_products(plan->n, form->has_upper, at->above, form->room, it->z_upper, exact, found);
    hybrid_multiply_At(plan, at->A, it->y, Aty);
    for (int i = 0; i < plan->n && at->inner == 0.0; i++) { /* else that is rounding */
        double size = fabs(Aty[i] + (at->gradient[i] - it->z_lower[i] + it->z_upper[i]));
        if (size <= most) continue;
        most = size;
        if (isnan(size)) break;
    }
    found->rest =
        most / hybrid_error_scale(hybrid_norm1(plan->m, it->y) + sum_z, plan->m + form->bounds);
    of_c = hybrid_norm_inf(plan->m, at->c);
    if (!(of_c <= found->rest)) found->rest = of_c;
    found->scale = hybrid_error_scale(sum_z, form->bounds);
}

double hybrid_gap(const hybrid_phase *phase) {
    const double size = hybrid_max(phase->form.scale_f, fabs(phase->at->of.f));
    return phase->error.sum / (phase->numbers->complementarity * size);
}

double hybrid_error_at(const hybrid_error *error, double nu) {
    double above = error->most - nu, below = nu - error->least;
    double products = (above > below ? above : below) / error->scale;
    return products > error->rest ? products : error->rest;
}

double hybrid_iterate_residuals(hybrid_phase *phase, const hybrid_point *at,
                                const hybrid_iterate *it, hybrid_residuals *found) {
    hybrid_answer *answer = phase->answer;
    double plain;
    hybrid_multipliers_out(&phase->form, at, it->y, it->z_lower, it->z_upper, answer->lam_x,
                           answer->lam_g);
    hybrid_residuals_at(&phase->form, at, answer->lam_x, answer->lam_g, phase->work, found);
    plain = hybrid_merit(phase->numbers, found);
    hybrid_subtract_rounding(&phase->form, at, answer->lam_x, answer->lam_g, phase->work,
                             phase->sizes, found);
    return plain;
}
