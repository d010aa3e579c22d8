/* Iterates between their bounds (Waechter and Biegler 2006): points that are strictly inside
 * (section 3.6), dual steps and the fraction to the boundary (eqs. 12 and 15),
 *
 *     dz = (nu - z dw)/(w - l) - z,    alpha = max {alpha <= 1: v + alpha dv >= (1 - tau) v},
 *
 * and z within a factor of nu/(w - l) (eq. 16). */
#include <math.h>

#include "primal_dual/primal_dual.h"

/* The least distance from a bound: a part of its size, at most that part of the interval. */
static double room_at(double bound, double gap, double push) {
    return hybrid_min(hybrid_min(push, 0.5) * gap, push * hybrid_max(fabs(bound), 1.0));
}

void hybrid_push_inside(const hybrid_form *form, double push, double *w) {
    for (int i = 0; i < form->plan->n; i++) {
        double gap = form->upper[i] - form->lower[i];
        if (form->has_lower[i]) {
            double limit = form->lower[i] + room_at(form->lower[i], gap, push);
            if (!(w[i] >= limit)) w[i] = limit;
        }
        if (form->has_upper[i]) {
            double limit = form->upper[i] - room_at(form->upper[i], gap, push);
            if (!(w[i] <= limit)) w[i] = limit;
        }
    }
}

/* Such a point is away from most bounds, and these have multipliers, which name no working set. On
 * the central path z_upper - z_lower is nu (1/above - 1/below). So nu is the sum of |z_upper -
 * z_lower| near, over the sum of 1 - near / far, the distances to the bounds. */
double hybrid_unfinished_nu(const hybrid_form *form, const double *w, const double *z_lower,
                            const double *z_upper) {
    double products = 0.0, shares = 0.0;
    int away = 0, bounded = 0;
    for (int i = 0; i < form->plan->n; i++) {
        const double lower = form->lower[i], upper = form->upper[i];
        const int low = lower > -INFINITY, high = upper < INFINITY;
        const double room = hybrid_room(lower, upper);
        const double below = hybrid_distance(lower, w[i], room);
        const double above = hybrid_distance(w[i], upper, room);
        const double product = z_lower[i] * below + z_upper[i] * above; /* of one of them */
        if (!low && !high) continue;
        bounded++;
        if (product <= HYBRID_BARRIER_NU_WARM) continue;
        away++;
        products += product;
        shares += low && high ? 1.0 - hybrid_min(below, above) / hybrid_max(below, above) : 1.0;
    }
    return 2 * away > bounded && shares > 0.0
               ? hybrid_clamp(products / shares, HYBRID_BARRIER_NU_WARM, HYBRID_BARRIER_NU_START)
               : 0.0;
}

/* Without a bound, `has` and z are 0 and the distance is 1: passes over all entries need no
 * branches. */
static void keep_near(int count, const double *has, const double *distance, double nu,
                      double *restrict z) {
    for (int i = 0; i < count; i++) {
        double central = has[i] * nu / distance[i];
        double least = central / HYBRID_BARRIER_KAPPA_SIGMA,
               most = central * HYBRID_BARRIER_KAPPA_SIGMA;
        double raised = z[i] < least ? least : z[i];
        z[i] = raised > most ? most : raised;
    }
}

void hybrid_reset_duals(const hybrid_form *form, const hybrid_point *at, double nu, double *z_lower,
                        double *z_upper) {
    keep_near(form->plan->n, form->has_lower, at->below, nu, z_lower);
    keep_near(form->plan->n, form->has_upper, at->above, nu, z_upper);
}

void hybrid_to_central_path(const hybrid_form *form, const hybrid_point *at, hybrid_iterate *it) {
    for (int i = 0; i < form->plan->n; i++) {
        double lower = form->has_lower[i] ? it->nu / at->below[i] : 0.0;
        double upper = form->has_upper[i] ? it->nu / at->above[i] : 0.0;
        if (it->z_lower[i] < lower) it->z_lower[i] = lower;
        if (it->z_upper[i] < upper) it->z_upper[i] = upper;
    }
}

void hybrid_dual_steps(const hybrid_form *form, const hybrid_point *at,
                       const hybrid_iterate *it, hybrid_direction *d) {
    const double *has_lower = form->has_lower, *below = at->below, *z_lower = it->z_lower;
    const double *has_upper = form->has_upper, *above = at->above, *z_upper = it->z_upper;
    const double *dw = d->dw, nu = it->nu;
    double *restrict dz_lower = d->dz_lower, *restrict dz_upper = d->dz_upper;
    for (int i = 0; i < form->plan->n; i++) {
        dz_lower[i] = (has_lower[i] * nu - z_lower[i] * dw[i]) / below[i] - z_lower[i];
        dz_upper[i] = (has_upper[i] * nu + z_upper[i] * dw[i]) / above[i] - z_upper[i];
    }
}

double hybrid_fraction_to_zero(int count, const double *v, const double *dv, double sign,
                               const double *has, double tau) {
    double rates[HYBRID_BLOCK], steepest = 0.0, share;
    int first = -1;
    for (int from = 0; from < count; from += HYBRID_BLOCK) {
        int size = hybrid_block(from, count);
        double most;
        for (int i = 0; i < size; i++)
            rates[i] = -(sign * has[from + i] * dv[from + i]) / v[from + i];
        most = hybrid_max_entry(size, rates);
        if (!(most > steepest)) continue;
        steepest = most;
        for (first = 0; rates[first] != most;) first++;
        first += from;
    }
    if (first < 0) return 1.0;
    share = tau * v[first] / -(sign * dv[first]);
    return share < 1.0 ? share : 1.0;
}

double hybrid_fraction_inside(const hybrid_form *form, const hybrid_point *at, const double *dw,
                              double tau) {
    int n = form->plan->n;
    double above = hybrid_fraction_to_zero(n, at->above, dw, -1.0, form->has_upper, tau);
    return hybrid_min(above, hybrid_fraction_to_zero(n, at->below, dw, 1.0, form->has_lower, tau));
}

void hybrid_fraction_to_boundary(const hybrid_form *form, const hybrid_point *at,
                                 const hybrid_iterate *it, hybrid_direction *d) {
    int n = form->plan->n;
    double tau = hybrid_max(1.0 - it->nu, HYBRID_BARRIER_TAU_MIN), other;
    d->alpha = hybrid_fraction_inside(form, at, d->dw, tau);
    other = hybrid_fraction_to_zero(n, it->z_upper, d->dz_upper, 1.0, form->has_upper, tau);
    d->alpha_z = hybrid_fraction_to_zero(n, it->z_lower, d->dz_lower, 1.0, form->has_lower, tau);
    if (other < d->alpha_z) d->alpha_z = other;
}
