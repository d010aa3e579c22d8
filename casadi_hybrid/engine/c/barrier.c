/* The barrier parameter, the bounds and the optimality error: as barrier/iterate.py, pace.py. */
#include <math.h>

#include "cold.h"

double hybrid_next_nu(double nu, double floor) {
    double by_factor = HYBRID_SETTINGS_KAPPA_NU * nu;
    double by_power = pow(nu, HYBRID_SETTINGS_THETA_NU);
    double next = by_power < by_factor ? by_power : by_factor;
    return next > floor ? next : floor;
}

/* The least distance from a bound: a part of its size, at most that part of the interval. */
static double room_at(double bound, double gap, double push) {
    double size = fabs(bound), room = push * (size > 1.0 ? size : 1.0);
    return push * gap < room ? push * gap : room;
}

void hybrid_interior(const hybrid_form *form, double push, double *w) {
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

/* Where there is no bound, `has` and z are 0 and the distance is 1: with these factors passes over
 * all entries need no branches. */
static void keep_near(int count, const double *has, const double *distance, double nu,
                      double *restrict z) {
    for (int i = 0; i < count; i++) {
        double central = has[i] * nu / distance[i];
        double least = central / HYBRID_ITERATE_SPREAD, most = central * HYBRID_ITERATE_SPREAD;
        double raised = z[i] < least ? least : z[i];
        z[i] = raised > most ? most : raised;
    }
}

void hybrid_safe_duals(const hybrid_form *form, const hybrid_point *at, double nu,
                       double *z_lower, double *z_upper) {
    keep_near(form->plan->n, form->has_lower, at->below, nu, z_lower);
    keep_near(form->plan->n, form->has_upper, at->above, nu, z_upper);
}

void hybrid_central(const hybrid_form *form, const hybrid_point *at, hybrid_iterate *it) {
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

double hybrid_share_to_zero(int count, const double *v, const double *dv, double sign,
                            const double *has, double tau) {
    double rates[HYBRID_BLOCK], steepest = 0.0, share;
    int first = -1;
    for (int from = 0; from < count; from += HYBRID_BLOCK) {
        int size = hybrid_block(from, count);
        double most;
        for (int i = 0; i < size; i++)
            rates[i] = -(sign * has[from + i] * dv[from + i]) / v[from + i];
        most = hybrid_most(size, rates);
        if (!(most > steepest)) continue;
        steepest = most;
        for (first = 0; rates[first] != most;) first++;
        first += from;
    }
    if (first < 0) return 1.0;
    share = tau * v[first] / -(sign * dv[first]);
    return share < 1.0 ? share : 1.0;
}

void hybrid_lengths(const hybrid_form *form, const hybrid_point *at, const hybrid_iterate *it,
                    hybrid_direction *d) {
    int n = form->plan->n;
    double other;
    d->tau = 1.0 - it->nu;
    if (!(d->tau > HYBRID_SETTINGS_TAU_LEAST)) d->tau = HYBRID_SETTINGS_TAU_LEAST;
    d->alpha = hybrid_share_to_zero(n, at->below, d->dw, 1.0, form->has_lower, d->tau);
    other = hybrid_share_to_zero(n, at->above, d->dw, -1.0, form->has_upper, d->tau);
    if (other < d->alpha) d->alpha = other;
    d->alpha_z = hybrid_share_to_zero(n, it->z_lower, d->dz_lower, 1.0, form->has_lower, d->tau);
    other = hybrid_share_to_zero(n, it->z_upper, d->dz_upper, 1.0, form->has_upper, d->tau);
    if (other < d->alpha_z) d->alpha_z = other;
}

/* Widens [least, most] by z*(distance) where there is a bound. */
static void widen(int count, const double *has, const double *distance, const double *z,
                  hybrid_error *found) {
    double products[HYBRID_BLOCK];
    for (int from = 0; from < count; from += HYBRID_BLOCK) {
        int size = hybrid_block(from, count);
        double least, most;
        for (int i = 0; i < size; i++) {
            double product = distance[from + i] * z[from + i];
            products[i] = has[from + i] > 0.0 ? product : NAN; /* passed over */
        }
        least = hybrid_least(size, products);
        most = hybrid_most(size, products);
        if (least < found->least) found->least = least;
        if (most > found->most) found->most = most;
    }
}

void hybrid_measure(const hybrid_form *form, const hybrid_point *at, const hybrid_iterate *it,
                    double *pull, hybrid_error *found) {
    const hybrid_plan *plan = form->plan;
    double sum_z = hybrid_sum(plan->n, it->z_lower) + hybrid_sum(plan->n, it->z_upper);
    double of_c, most = 0.0;
    found->least = INFINITY;
    found->most = form->bounds ? 0.0 : -INFINITY;
    widen(plan->n, form->has_lower, at->below, it->z_lower, found);
    widen(plan->n, form->has_upper, at->above, it->z_upper, found);
    hybrid_pull(plan, at->A, it->y, pull);
    for (int i = 0; i < plan->n; i++) {
        double size = fabs(pull[i] + (at->gradient[i] - it->z_lower[i] + it->z_upper[i]));
        if (size <= most) continue;
        most = size;
        if (isnan(size)) break;
    }
    found->rest = most /
                  hybrid_excess_mean(hybrid_sum(plan->m, it->y) + sum_z, plan->m + form->bounds);
    of_c = hybrid_largest(plan->m, at->c);
    if (!(of_c <= found->rest)) found->rest = of_c;
    found->scale = hybrid_excess_mean(sum_z, form->bounds);
}

double hybrid_error_at(const hybrid_error *error, double nu) {
    double above = error->most - nu, below = nu - error->least;
    double products = (above > below ? above : below) / error->scale;
    return products > error->rest ? products : error->rest;
}

void hybrid_with_barrier(hybrid_iterate *it, double nu) {
    if (nu == it->nu) return;
    it->nu = nu;
    it->entries = 0;
    it->fresh = 1;
}

/* A new mark where the violation, the objective or the error has improved; that of a saddle is
 * forgotten on the way from there. */
static void mark(hybrid_iterate *it, double theta, double f, double error, int t) {
    hybrid_mark *old = &it->mark;
    if (old->made && old->nu == it->nu) {
        double larger = old->theta > theta ? old->theta : theta;
        int nearer = larger > HYBRID_PACE_FEASIBLE && theta < HYBRID_PACE_THETA * old->theta;
        int lower = f < old->f - HYBRID_PACE_F * fabs(f);
        int better = error < HYBRID_PACE_ERROR * old->error && !(it->bent && isinf(old->error));
        if (!(nearer || lower || better)) {
            if (it->bent && f < old->f - HYBRID_PACE_BELOW * fabs(f)) old->error = INFINITY;
            return;
        }
    }
    it->mark.nu = it->nu;
    it->mark.theta = theta;
    it->mark.f = f;
    it->mark.error = error;
    it->mark.t = t;
    it->mark.made = 1;
    it->mark.rounds = 0;
}

/* The nu of a cold start where the Lagrangian bends downwards at a warm one. */
static void off_saddle(hybrid_cold *cold, hybrid_iterate *it) {
    const hybrid_form *form = &cold->form;
    const hybrid_point *at = &cold->at->of;
    double start = cold->attempt->nu;
    if (!cold->attempt->near || (it->nu != start && it->nu != HYBRID_BARRIER_NU_FAR_OFF)) return;
    if (it->bent < (it->nu == start ? HYBRID_BARRIER_SADDLE : 1)) return;
    hybrid_with_barrier(it, HYBRID_ITERATE_NU_START);
    hybrid_central(form, at, it);
    hybrid_measure(form, at, it, cold->pull, &cold->error);
}

void hybrid_lower_barrier(hybrid_cold *cold, hybrid_iterate *it, int t) {
    const hybrid_error *error = &cold->error;
    double nu, of_nu;
    int held;
    off_saddle(cold, it);
    nu = it->nu;
    /* Unscaled residuals ask for more. */
    if (hybrid_error_at(error, 0.0) <= cold->numbers->tol &&
        nu <= it->floor * HYBRID_BARRIER_AT_FLOOR) {
        it->floor *= HYBRID_BARRIER_LOWER;
        if (it->floor < HYBRID_SETTINGS_NU_LEAST) it->floor = HYBRID_SETTINGS_NU_LEAST;
    }
    of_nu = hybrid_error_at(error, nu);
    /* Where f still bends downwards a small error is that of a saddle: see barrier.py. */
    held = it->bent && of_nu > HYBRID_SETTINGS_SADDLE * nu;
    while (!held && nu > it->floor && of_nu <= HYBRID_SETTINGS_KAPPA_EPSILON * nu) {
        nu = hybrid_next_nu(nu, it->floor);
        of_nu = hybrid_error_at(error, nu);
    }
    hybrid_with_barrier(it, nu);
    mark(it, cold->at->theta, cold->at->of.f, of_nu, t);
}
