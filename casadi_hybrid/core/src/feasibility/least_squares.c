/* The least |c|_2 within the bounds: a root before anything else, or the restoration, which ends
 * once the filter accepts a point again. It minimizes
 *
 *     |c(w)|^2 / 2 - nu sum log(distances)
 *
 * by damped Gauss-Newton steps, or with the curvature of c if these are slow (Fletcher and Xu, IMA
 * J. Numer. Anal. 7, 1987), by the KKT matrix with E = I. The damping is that of Levenberg and
 * Marquardt in the units of the columns of A (More, Lecture Notes in Mathematics 630, 1978). */
#include <math.h>

#include "feasibility/feasibility.h"

/* The function that is minimized. */
static double objective_of(const hybrid_phase *phase, const hybrid_trial *trial) {
    const double *c = trial->of.c;
    if (trial->outside) return INFINITY;
    return 0.5 * hybrid_dot(phase->plan->m, c, c) - phase->search.nu * trial->logs;
}

/* The decrease that the quadratic model predicts for a step. `slope`: of the objective; W: NULL for
 * none. */
static double predicted_decrease(hybrid_phase *phase, const double *W, const double *D,
                                 const double *slope, const double *step) {
    const hybrid_plan *plan = phase->plan;
    double bend, along = 0.0;
    hybrid_multiply_A(plan, phase->at->of.A, step, phase->residual);
    bend = hybrid_dot(plan->m, phase->residual, phase->residual);
    if (W) hybrid_multiply_W(plan, W, step, phase->work);
    for (int i = 0; i < plan->n; i++) {
        bend += step[i] * D[i] * step[i];
        if (W) bend += step[i] * phase->work[i];
        along += slope[i] * step[i];
    }
    return -along - 0.5 * bend;
}

/* The gradient of the function: without A'c in phase->force, with it in `slope`. Returns whether
 * that counts as zero. */
static int is_stationary_point(hybrid_phase *phase, double *slope) {
    const hybrid_form *form = &phase->form;
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    const double nu = phase->search.nu, pushed = HYBRID_LEAST_SQUARES_KAPPA_EPSILON * nu;
    const double size = sqrt(hybrid_dot(plan->m, at->c, at->c));
    int flat = 1;
    hybrid_multiply_At(plan, at->A, at->c, slope);
    for (int i = 0; i < plan->n; i++) {
        double upper = form->has_upper[i] ? 1.0 / at->above[i] : 0.0;
        double lower = form->has_lower[i] ? 1.0 / at->below[i] : 0.0;
        double least = HYBRID_LEAST_SQUARES_COSINE * sqrt(phase->search.units[i]) * size;
        if (!(least > pushed)) least = pushed;
        phase->force[i] = nu * (upper - lower);
        slope[i] += phase->force[i];
        flat &= fabs(slope[i]) <= least;
    }
    return flat;
}

/* Squared norms of the columns of A; their mean in the place of each where steps are short. Returns
 * the largest. */
static double renew_units(hybrid_phase *phase) {
    const hybrid_plan *plan = phase->plan;
    const double *A = phase->at->of.A;
    double *units = phase->search.units, sum = 0.0;
    for (int i = 0; i < plan->n; i++) units[i] = 0.0;
    for (int k = 0; k < plan->nnz_A; k++) units[plan->A_cols[k]] += A[k] * A[k];
    for (int i = 0; i < plan->n; i++) sum += units[i];
    for (int i = 0; i < plan->n && phase->search.cautious; i++) units[i] = sum / plan->n;
    return hybrid_max(hybrid_norm_inf(plan->n, units), HYBRID_DIVISOR_TINY);
}

/* After a step that gained this share of what was expected. */
static double next_damping(double damping, double ratio) {
    if (ratio > HYBRID_LEAST_SQUARES_RATIO_GOOD)
        return hybrid_max(HYBRID_LEAST_SQUARES_DAMPING_FALL * damping,
                          HYBRID_LEAST_SQUARES_DAMPING_MIN);
    return ratio < HYBRID_LEAST_SQUARES_RATIO_POOR ? HYBRID_LEAST_SQUARES_DAMPING_GROWTH * damping
                                                   : damping;
}

int hybrid_least_squares_step(hybrid_phase *phase) {
    const hybrid_form *form = &phase->form;
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    hybrid_search *search = &phase->search;
    double *units = search->units, *slope = search->slope, *D = search->D;
    double *dw = phase->direction.dw, *step = phase->other.dw;
    double damping = search->damping, growth = HYBRID_LEAST_SQUARES_DAMPING_GROWTH;
    double least_unit = HYBRID_LEAST_SQUARES_UNIT_MIN * renew_units(phase);
    double alpha = 0.0, gain = 0.0, gained = 0.0, value;
    double reach = 1.0 + hybrid_norm_inf(plan->n, at->w);
    int curved = search->curved;
    value = objective_of(phase, phase->at);
    if (!isfinite(hybrid_dot(plan->m, at->c, at->c))) /* no slope can be found */
        return hybrid_fail(phase, HYBRID_STALLED, HYBRID_NO_PROGRESS);
    if (is_stationary_point(phase, slope)) return hybrid_end_least_squares(phase);
    if (curved && hybrid_curvature(&phase->form, at, at->c, phase->W)) return HYBRID_UNDEFINED;
    hybrid_barrier_diagonal(form, at, search->z_lower, search->z_upper, D);
    for (;; growth *= HYBRID_LEAST_SQUARES_DAMPING_GROWTH) {
        int result, end = hybrid_search_ends(phase);
        if (end) return end;
        for (int i = 0; i < plan->n; i++)
            phase->D[i] = D[i] + damping * (units[i] > least_unit ? units[i] : least_unit);
        result =
            hybrid_factor(plan, curved ? phase->W : 0, phase->D, 0.0, at->A, 1.0, 0, &phase->kkt);
        form->answer->factors++;
        /* A doubtful pivot can only spoil a step, and what a step gains is tested. */
        if (!phase->kkt.inertia.singular && phase->kkt.inertia.negative == plan->m)
            result = HYBRID_KKT_RIGHT;
        if (!result)
            result =
                hybrid_solve_kkt(plan, phase->force, at->c, &phase->kkt, dw, phase->direction.dy);
        if (result && curved) { /* once more, without the curvature */
            curved = 0;
            growth /= HYBRID_LEAST_SQUARES_DAMPING_GROWTH;
            continue;
        }
        if (!result) {
            alpha = hybrid_fraction_inside(form, at, dw, HYBRID_BARRIER_TAU_MIN);
            for (int i = 0; i < plan->n; i++) step[i] = alpha * dw[i];
            if (hybrid_norm_inf(plan->n, step) <= HYBRID_STEP_ROUNDING * reach)
                return hybrid_end_least_squares(phase);
            for (int i = 0; i < plan->n; i++) phase->trial->of.w[i] = at->w[i] + step[i];
            if (!hybrid_try_problem(phase, phase->trial)) {
                gain = predicted_decrease(phase, curved ? phase->W : 0, D, slope, step);
                gained = value - objective_of(phase, phase->trial);
                if (gained > HYBRID_LEAST_SQUARES_RATIO_ACCEPT * gain &&
                    !hybrid_complete_problem(phase, phase->trial))
                    break;
            }
        }
        damping *= growth;
        if (damping > HYBRID_LEAST_SQUARES_DAMPING_MAX) return hybrid_end_least_squares(phase);
    }
    return hybrid_accept_least_squares(phase, alpha, next_damping(damping, gained / gain));
}
