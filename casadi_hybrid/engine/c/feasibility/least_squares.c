/* The least |c|_2 within the bounds, as barrier/restoration.py: a root before anything else, or
 * the restoration, which ends where the filter takes a point again. It minimizes
 *
 *     |c(w)|^2 / 2 + zeta/2 |R(w - w_R)|^2 - nu sum log(distances),    R = 1 / max(1, |w_R|),
 *
 * with zeta = 0 where a root is asked for, by damped steps of Gauss and Newton, or with the
 * curvature of c where these are slow (Fletcher and Xu 1987), by the KKT matrix with E = I. The
 * damping is that of Levenberg and Marquardt in the units of the columns of A (More 1978). */
#include <math.h>

#include "feasibility/feasibility.h"

/* zeta R^2. */
static void set_proximity(hybrid_cold *cold) {
    double zeta = HYBRID_RESTORATION_PROXIMITY * sqrt(cold->root.nu);
    if (!hybrid_is_restoration(cold)) zeta = 0.0;
    for (int i = 0; i < cold->plan->n; i++) {
        double size = fabs(cold->reference[i]);
        if (!(size > 1.0)) size = 1.0;
        cold->proximity[i] = zeta / (size * size);
    }
}

/* |c|^2 / 2 with the barrier of the search, and what it has to do with the point of reference. */
static double value_of(const hybrid_cold *cold, const hybrid_spot *spot) {
    double away = 0.0;
    if (spot->outside) return INFINITY;
    for (int i = 0; i < cold->plan->n; i++) {
        double step = spot->of.w[i] - cold->reference[i];
        away += step * cold->proximity[i] * step;
    }
    away += hybrid_dot(cold->plan->m, spot->of.c, spot->of.c);
    return 0.5 * away - cold->root.nu * spot->logs;
}

/* What the quadratic model says the step gains. `slope`: of the value; W: NULL for none. */
static double expected(hybrid_cold *cold, const double *W, const double *D, const double *slope,
                       const double *step) {
    const hybrid_plan *plan = cold->plan;
    double bend, along = 0.0;
    hybrid_times_A(plan, cold->at->of.A, step, cold->residual);
    bend = hybrid_dot(plan->m, cold->residual, cold->residual);
    if (W) hybrid_times_W(plan, W, step, cold->work);
    for (int i = 0; i < plan->n; i++) {
        bend += step[i] * D[i] * step[i];
        if (W) bend += step[i] * cold->work[i];
        along += slope[i] * step[i];
    }
    return -along - 0.5 * bend;
}

/* The largest part of dw after which every distance is at least 1 - tau of what it is. */
static double share(const hybrid_form *form, const hybrid_point *at, const double *dw) {
    double tau = HYBRID_SETTINGS_TAU_LEAST;
    int n = form->plan->n;
    double below = hybrid_share_to_zero(n, at->below, dw, 1.0, form->has_lower, tau);
    double above = hybrid_share_to_zero(n, at->above, dw, -1.0, form->has_upper, tau);
    return below < above ? below : above;
}

/* What pulls at w: the barrier and the reference, in cold->force, and with A'c, in `slope`. Returns
 * whether that is zero. */
static int is_flat(hybrid_cold *cold, const double *units, double *slope) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    const double nu = cold->root.nu, pushed = HYBRID_RESTORATION_PUSHED * nu;
    const double size = sqrt(hybrid_dot(plan->m, at->c, at->c));
    int flat = 1;
    hybrid_pull(plan, at->A, at->c, slope);
    for (int i = 0; i < plan->n; i++) {
        double upper = form->has_upper[i] ? 1.0 / at->above[i] : 0.0;
        double lower = form->has_lower[i] ? 1.0 / at->below[i] : 0.0;
        double least = HYBRID_RESTORATION_FLAT * sqrt(units[i]) * size;
        if (!(least > pushed)) least = pushed;
        cold->force[i] = nu * (upper - lower);
        cold->force[i] += cold->proximity[i] * (at->w[i] - cold->reference[i]);
        slope[i] += cold->force[i];
        flat &= fabs(slope[i]) <= least;
    }
    return flat;
}

/* The squared norms of now, and of before where those were larger by far. */
static double renew_units(hybrid_cold *cold, double *units) {
    const hybrid_root *root = &cold->root;
    double largest = 0.0;
    hybrid_measure_units(cold->plan, &cold->at->of, root->cautious, units);
    for (int i = 0; i < cold->plan->n; i++) {
        double old = HYBRID_RESTORATION_FORGET * root->units[i];
        if (units[i] < old) units[i] = old;
        if (units[i] > largest) largest = units[i];
    }
    return largest > HYBRID_FORM_TINY ? largest : HYBRID_FORM_TINY;
}

/* After a step of length alpha that gained this share of what was expected. */
static double next_damping(double damping, double ratio, double alpha) {
    if (ratio > HYBRID_RESTORATION_GOOD && alpha > HYBRID_RESTORATION_LONG) {
        damping *= HYBRID_RESTORATION_LESS;
        return damping > HYBRID_RESTORATION_LEAST_DAMPING ? damping
                                                          : HYBRID_RESTORATION_LEAST_DAMPING;
    }
    return ratio < HYBRID_RESTORATION_BAD ? damping * HYBRID_RESTORATION_MORE : damping;
}

int hybrid_root_step(hybrid_cold *cold) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    hybrid_root *root = &cold->root;
    double *units = cold->root_units, *slope = cold->root_slope, *D = cold->root_D;
    double *dw = cold->direction.dw, *step = cold->other.dw;
    double damping = root->damping, growth = HYBRID_RESTORATION_GROWTH;
    double least_unit = HYBRID_RESTORATION_UNIT * renew_units(cold, units);
    double alpha = 0.0, gain = 0.0, gained = 0.0, value;
    double reach = 1.0 + hybrid_largest(plan->n, at->w);
    int curved = root->curved;
    set_proximity(cold);
    value = value_of(cold, cold->at);
    if (!isfinite(hybrid_dot(plan->m, at->c, at->c))) /* nothing is known of a slope */
        return hybrid_no_way_on(cold, HYBRID_STALLED, HYBRID_NO_PROGRESS);
    if (is_flat(cold, units, slope)) return hybrid_root_closer(cold, units);
    if (curved && hybrid_curvature(&cold->form, at, at->c, cold->W)) return HYBRID_UNDEFINED;
    hybrid_stiffness(form, at, root->z_lower, root->z_upper, D);
    for (int i = 0; i < plan->n; i++) D[i] += cold->proximity[i];
    for (;; growth *= HYBRID_RESTORATION_FASTER) {
        int found;
        for (int i = 0; i < plan->n; i++)
            cold->D[i] = D[i] + damping * (units[i] > least_unit ? units[i] : least_unit);
        found = hybrid_factor(plan, curved ? cold->W : 0, cold->D, 0.0, at->A, 1.0, 0,
                              &cold->kernel);
        form->answer->factors++;
        /* A doubtful pivot can only spoil a step, and what a step gains is looked at. */
        if (!cold->kernel.inertia.singular && cold->kernel.inertia.negative == plan->m) found = 0;
        if (!found)
            found = hybrid_solve(plan, cold->force, at->c, &cold->kernel, dw, cold->direction.dy);
        if (found && curved) { /* once more, without the curvature */
            curved = 0;
            growth /= HYBRID_RESTORATION_FASTER;
            continue;
        }
        if (!found) {
            alpha = share(form, at, dw);
            for (int i = 0; i < plan->n; i++) step[i] = alpha * dw[i];
            if (hybrid_largest(plan->n, step) <= HYBRID_RESTORATION_STILL * reach)
                return hybrid_root_closer(cold, units);
            for (int i = 0; i < plan->n; i++) cold->trial->of.w[i] = at->w[i] + step[i];
            if (!hybrid_visit_problem(cold, cold->trial)) {
                gain = expected(cold, curved ? cold->W : 0, D, slope, step);
                gained = value - value_of(cold, cold->trial);
                if (gained > HYBRID_RESTORATION_GAINED * gain) break;
            }
        }
        if (damping < HYBRID_RESTORATION_REFUSED) damping = HYBRID_RESTORATION_REFUSED;
        damping *= growth;
        if (damping > HYBRID_RESTORATION_LARGEST_DAMPING) return hybrid_root_closer(cold, units);
    }
    return hybrid_root_take(cold, alpha, next_damping(damping, gained / gain, alpha), units);
}
