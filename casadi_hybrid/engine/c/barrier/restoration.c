/* Restoration: steps of the barrier method on the elastic problem until |c|_1 is a share of what it
 * was and the filter takes the point; its own parameter falls as that of the problem does. */
#include <math.h>

#include "barrier/barrier.h"

static double at_most(double value, double most) { return value < most ? value : most; }

void hybrid_begin_elastic(hybrid_cold *outer, double theta) {
    const hybrid_plan *plan = outer->plan;
    hybrid_cold *inner = outer->inner;
    hybrid_iterate *it = &inner->now;
    hybrid_spot kept;
    double *p, *z, nu = hybrid_largest(plan->m, outer->at->of.c);
    int n = plan->n, m = plan->m;
    hybrid_make_elastic(outer);
    inner->at = &inner->spots[0];
    inner->kept = &inner->spots[1];
    inner->trial = &inner->spots[2];
    inner->bent = &inner->spots[3];
    /* The point of the problem is from now on that of the inner one. */
    kept = *inner->at->base;
    *inner->at->base = *outer->at;
    *outer->at = kept;
    outer->parked = outer->at;
    outer->at = inner->at->base;
    outer->theta_began = theta;
    if (outer->now.nu > nu) nu = outer->now.nu;
    hybrid_set(n, outer->at->of.w, outer->reference);
    hybrid_set_proximity(outer, nu);
    hybrid_clear(it);
    it->nu = nu;
    it->floor = HYBRID_ELASTIC_FLOOR;
    hybrid_set(n, outer->at->of.w, inner->at->of.w);
    p = inner->at->of.w + n;
    z = it->z_lower + n;
    for (int i = 0; i < m; i++) {
        double c = outer->at->of.c[i], rho = HYBRID_ELASTIC_PENALTY;
        double half = 0.5 * (nu - rho * c) / rho;
        double other = half + sqrt(half * half + 0.5 * nu * c / rho);
        other = other > HYBRID_FORM_TINY ? other : HYBRID_FORM_TINY;
        p[m + i] = other;
        p[i] = c + other > HYBRID_FORM_TINY ? c + other : HYBRID_FORM_TINY;
        z[i] = nu / p[i];
        z[m + i] = nu / other;
        it->y[i] = it->z_upper[n + i] = it->z_upper[n + m + i] = 0.0;
    }
    for (int i = 0; i < n; i++) {
        it->z_lower[i] = at_most(outer->now.z_lower[i], HYBRID_ELASTIC_PENALTY);
        it->z_upper[i] = at_most(outer->now.z_upper[i], HYBRID_ELASTIC_PENALTY);
    }
    hybrid_lift(outer, inner->at);
    it->theta_start = inner->at->theta;
}

/* Lowers the inner barrier parameter. Returns 0 next to a stationary violation. */
static int lower(hybrid_cold *outer) {
    hybrid_cold *inner = outer->inner;
    hybrid_iterate *it = &inner->now;
    hybrid_error error;
    double nu = it->nu, violation = hybrid_largest(outer->plan->m, outer->at->of.c);
    hybrid_measure(&inner->form, &inner->at->of, it, inner->pull, &error);
    while (nu > it->floor &&
           hybrid_error_at(&error, nu) <= HYBRID_SETTINGS_KAPPA_EPSILON * nu)
        nu = hybrid_next_nu(nu, it->floor);
    if (nu == it->nu) return 1;
    if (nu <= HYBRID_ELASTIC_SMALL * (violation < 1.0 ? violation : 1.0)) return 0;
    hybrid_set_proximity(outer, nu);
    hybrid_with_barrier(it, nu);
    hybrid_lift(outer, inner->at);
    return 1;
}

int hybrid_elastic_step(hybrid_cold *outer) {
    hybrid_cold *inner = outer->inner;
    hybrid_iterate kept;
    hybrid_spot *new;
    int status;
    if (!lower(outer)) return HYBRID_BLOCKED;
    status = hybrid_newton(inner, &inner->now);
    if (status) return status;
    kept = inner->now;
    inner->now = inner->next;
    inner->next = kept;
    new = inner->trial;
    inner->trial = inner->at;
    inner->at = new;
    outer->at = new->base;
    return HYBRID_SOLVED;
}

int hybrid_restored(const hybrid_cold *outer) {
    const hybrid_iterate *it = &outer->now;
    double phi = hybrid_phi(&outer->form, outer->at, it->nu);
    return outer->at->theta <= HYBRID_ELASTIC_REDUCTION * outer->theta_began &&
           !hybrid_blocks(it, outer->at->theta, phi, 1.0);
}

void hybrid_end_elastic(hybrid_cold *outer) {
    const hybrid_form *form = &outer->form;
    hybrid_iterate *it = &outer->now;
    hybrid_spot *base = outer->at, kept = *outer->parked;
    *outer->parked = *base;
    *base = kept;
    outer->at = outer->parked;
    for (int i = 0; i < outer->plan->n; i++) {
        it->z_lower[i] = form->has_lower[i] ? 1.0 : 0.0;
        it->z_upper[i] = form->has_upper[i] ? 1.0 : 0.0;
    }
    for (int i = 0; i < outer->plan->m; i++) it->y[i] = 0.0;
    it->tiny = 0;
}
