/* The least |c|_2 within the bounds: a root before anything else, or the restoration, which ends
 * where the filter accepts a point again. It minimizes
 *
 *     |c(w)|^2 / 2 + zeta/2 |R(w - w_R)|^2 - nu sum log(distances),    R = 1 / max(1, |w_R|),
 *
 * with zeta = 0 where a root is wanted, by damped steps of Gauss and Newton, or with the
 * curvature of c where these are slow (Fletcher and Xu, IMA J. Numer. Anal. 7, 1987), by the KKT
 * matrix with E = I. The damping is that of Levenberg and Marquardt in the units of the columns of
 * A (More, Lecture Notes in Mathematics 630, 1978). */
#include <math.h>

#include "feasibility/feasibility.h"

/* zeta R^2. */
static void set_proximity(hybrid_run *run) {
    double zeta = HYBRID_RESTORATION_PROXIMITY * sqrt(run->search.nu);
    if (!hybrid_is_restoration(run)) zeta = 0.0;
    for (int i = 0; i < run->plan->n; i++) {
        double size = hybrid_max(fabs(run->elastic.reference[i]), 1.0);
        run->elastic.proximity[i] = zeta / (size * size);
    }
}

/* The function that is minimized. */
static double value_of(const hybrid_run *run, const hybrid_trial *trial) {
    double away = 0.0;
    if (trial->outside) return INFINITY;
    for (int i = 0; i < run->plan->n; i++) {
        double step = trial->of.w[i] - run->elastic.reference[i];
        away += step * run->elastic.proximity[i] * step;
    }
    away += hybrid_dot(run->plan->m, trial->of.c, trial->of.c);
    return 0.5 * away - run->search.nu * trial->logs;
}

/* What the quadratic model says the step gains. `slope`: of the value; W: NULL for none. */
static double expected(hybrid_run *run, const double *W, const double *D, const double *slope,
                       const double *step) {
    const hybrid_plan *plan = run->plan;
    double bend, along = 0.0;
    hybrid_times_A(plan, run->at->of.A, step, run->residual);
    bend = hybrid_dot(plan->m, run->residual, run->residual);
    if (W) hybrid_times_W(plan, W, step, run->work);
    for (int i = 0; i < plan->n; i++) {
        bend += step[i] * D[i] * step[i];
        if (W) bend += step[i] * run->work[i];
        along += slope[i] * step[i];
    }
    return -along - 0.5 * bend;
}

/* The fraction to the boundary with the least tau. */
static double share(const hybrid_form *form, const hybrid_point *at, const double *dw) {
    double tau = HYBRID_BARRIER_TAU_LEAST;
    int n = form->plan->n;
    double below = hybrid_fraction_to_zero(n, at->below, dw, 1.0, form->has_lower, tau);
    double above = hybrid_fraction_to_zero(n, at->above, dw, -1.0, form->has_upper, tau);
    return below < above ? below : above;
}

/* The gradient of the function: without A'c in run->force, with it in `slope`. Returns whether that
 * counts as zero. */
static int is_flat(hybrid_run *run, double *slope) {
    const hybrid_form *form = &run->form;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    const double nu = run->search.nu, pushed = HYBRID_RESTORATION_PUSHED * nu;
    const double size = sqrt(hybrid_dot(plan->m, at->c, at->c));
    int flat = 1;
    hybrid_times_At(plan, at->A, at->c, slope);
    for (int i = 0; i < plan->n; i++) {
        double upper = form->has_upper[i] ? 1.0 / at->above[i] : 0.0;
        double lower = form->has_lower[i] ? 1.0 / at->below[i] : 0.0;
        double least = HYBRID_EXACT * sqrt(run->search.units[i]) * size;
        if (!(least > pushed)) least = pushed;
        run->force[i] = nu * (upper - lower);
        run->force[i] += run->elastic.proximity[i] * (at->w[i] - run->elastic.reference[i]);
        slope[i] += run->force[i];
        flat &= fabs(slope[i]) <= least;
    }
    return flat;
}

/* The squared norms of the columns here, and a part of those before where these were larger by far.
 * Returns the largest. */
static double renew_units(hybrid_run *run) {
    double *units = run->search.units, *new = run->search.slope, largest = 0.0;
    hybrid_column_norms(run->plan, &run->at->of, run->search.cautious, new);
    for (int i = 0; i < run->plan->n; i++) {
        units[i] *= HYBRID_RESTORATION_FORGET;
        if (!(new[i] < units[i])) units[i] = new[i];
        if (units[i] > largest) largest = units[i];
    }
    return largest > HYBRID_FORM_TINY ? largest : HYBRID_FORM_TINY;
}

/* After a step of length alpha that gained this share of what was expected. */
static double next_damping(double damping, double ratio, double alpha) {
    if (ratio > HYBRID_TRUST_REGION_GROW_ABOVE && alpha > HYBRID_STEP_LONG) {
        damping *= HYBRID_RESTORATION_LESS;
        return damping > HYBRID_RESTORATION_LEAST_DAMPING ? damping
                                                          : HYBRID_RESTORATION_LEAST_DAMPING;
    }
    return ratio < HYBRID_TRUST_REGION_SHRINK_BELOW ? damping * HYBRID_RESTORATION_GROWTH : damping;
}

int hybrid_root_step(hybrid_run *run) {
    const hybrid_form *form = &run->form;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    hybrid_search *search = &run->search;
    double *units = search->units, *slope = search->slope, *D = search->D;
    double *dw = run->direction.dw, *step = run->other.dw;
    double damping = search->damping, growth = HYBRID_RESTORATION_GROWTH;
    double least_unit = HYBRID_RESTORATION_NONE * renew_units(run);
    double alpha = 0.0, gain = 0.0, gained = 0.0, value;
    double reach = 1.0 + hybrid_largest(plan->n, at->w);
    int curved = search->curved;
    set_proximity(run);
    value = value_of(run, run->at);
    if (!isfinite(hybrid_dot(plan->m, at->c, at->c))) /* no slope can be found */
        return hybrid_no_way_on(run, HYBRID_STALLED, HYBRID_NO_PROGRESS);
    if (is_flat(run, slope)) return hybrid_root_closer(run);
    if (curved && hybrid_curvature(&run->form, at, at->c, run->W)) return HYBRID_UNDEFINED;
    hybrid_stiffness(form, at, search->z_lower, search->z_upper, D);
    for (int i = 0; i < plan->n; i++) D[i] += run->elastic.proximity[i];
    for (;; growth *= HYBRID_RESTORATION_FASTER) {
        int found;
        for (int i = 0; i < plan->n; i++)
            run->D[i] = D[i] + damping * (units[i] > least_unit ? units[i] : least_unit);
        found = hybrid_factor(plan, curved ? run->W : 0, run->D, 0.0, at->A, 1.0, 0, &run->kkt);
        form->answer->factors++;
        /* A doubtful pivot can only spoil a step, and what a step gains is tested. */
        if (!run->kkt.inertia.singular && run->kkt.inertia.negative == plan->m) found = 0;
        if (!found)
            found = hybrid_solve_kkt(plan, run->force, at->c, &run->kkt, dw, run->direction.dy);
        if (found && curved) { /* once more, without the curvature */
            curved = 0;
            growth /= HYBRID_RESTORATION_FASTER;
            continue;
        }
        if (!found) {
            alpha = share(form, at, dw);
            for (int i = 0; i < plan->n; i++) step[i] = alpha * dw[i];
            if (hybrid_largest(plan->n, step) <= HYBRID_RESTORATION_NONE * reach)
                return hybrid_root_closer(run);
            for (int i = 0; i < plan->n; i++) run->trial->of.w[i] = at->w[i] + step[i];
            if (!hybrid_visit_problem(run, run->trial)) {
                gain = expected(run, curved ? run->W : 0, D, slope, step);
                gained = value - value_of(run, run->trial);
                if (gained > HYBRID_TRUST_REGION_ACCEPT * gain) break;
            }
        }
        if (damping < HYBRID_RESTORATION_REFUSED) damping = HYBRID_RESTORATION_REFUSED;
        damping *= growth;
        if (damping > HYBRID_RESTORATION_LARGEST_DAMPING) return hybrid_root_closer(run);
    }
    return hybrid_root_accept(run, alpha, next_damping(damping, gained / gain, alpha));
}
