/* The least |c|_2 within the bounds: a root before anything else, or the restoration, which ends
 * once the filter accepts a point again. It minimizes
 *
 *     |c(w)|^2 / 2 - nu sum log(distances)
 *
 * by damped Gauss-Newton steps, or with the curvature of c if these are slow (Fletcher and Xu, IMA
 * J. Numer. Anal. 7, 1987), by the KKT matrix with E = I. The damping is that of Levenberg and
 * Marquardt in the units of the columns of A (More, Lecture Notes in Mathematics 630, 1978).
 *
 * The search begins strictly inside the bounds. It ends at a root, at a point that the filter
 * accepts, or at a stationary violation: steps lead no further, or hardly gain. */
#include <math.h>

#include "feasibility/feasibility.h"

/* --- begin and end ---------------------------------------------------------------------------- */

void hybrid_place_search(const hybrid_plan *plan, hybrid_arena *arena, hybrid_search *search) {
    HYBRID_PLACE(arena, plan->n, &search->z_lower, &search->z_upper, &search->units, &search->slope,
                 &search->D, &search->least);
    search->slopes = hybrid_allocate(arena, hybrid_violation_slope_doubles(plan));
}

/* Slacks get the values of their rows, and w moves a little inside its bounds. Next to them a
 * barrier lets an entry leave by no more than twice its distance a step. */
static void push_inside(hybrid_phase *phase, double theta) {
    hybrid_move_slacks(phase->plan, &phase->at->of, phase->trial->of.w);
    hybrid_push_inside(&phase->form, HYBRID_LEAST_SQUARES_PUSH * theta, phase->trial->of.w);
    if (!hybrid_evaluate_problem(phase, phase->trial))
        hybrid_swap_trials(&phase->at, &phase->trial);
}

void hybrid_begin_least_squares(hybrid_phase *phase, double theta) {
    const hybrid_form *form = &phase->form;
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at;
    hybrid_search *search = &phase->search;
    if (!(theta < 1.0)) theta = 1.0;
    if (form->bounds) push_inside(phase, theta);
    at = &phase->at->of;
    search->nu = form->bounds ? HYBRID_LEAST_SQUARES_NU_START * phase->now.nu * theta : 0.0;
    for (int i = 0; i < plan->n; i++) {
        search->z_lower[i] = form->has_lower[i] ? search->nu / at->below[i] : 0.0;
        search->z_upper[i] = form->has_upper[i] ? search->nu / at->above[i] : 0.0;
    }
    search->cautious = !phase->restoring && phase->setup->cautious;
    search->damping = HYBRID_LEAST_SQUARES_DAMPING_FIRST;
    search->reference = INFINITY;
    search->curved = search->steps = 0;
    search->begun = 1;
}

void hybrid_equal_multipliers(const hybrid_form *form, double z, hybrid_iterate *it) {
    for (int i = 0; i < form->plan->n; i++) {
        it->z_lower[i] = z * form->has_lower[i];
        it->z_upper[i] = z * form->has_upper[i];
    }
}

/* The search ends at a point, whose multipliers are those of least squares: phase->next at `trial`.
 * At a root those of the bounds may be zero: without an objective it is a solution then. */
static void end_search(hybrid_phase *phase, const hybrid_trial *trial) {
    const hybrid_plan *plan = phase->plan;
    hybrid_iterate *next = &phase->next;
    hybrid_residuals residuals;
    phase->search.begun = 0;
    hybrid_copy_iterate(plan, &phase->now, 0, next);
    if (!phase->restoring) {
        hybrid_equal_multipliers(&phase->form, 0.0, next);
        hybrid_least_squares_y(phase, &trial->of, next->z_lower, next->z_upper,
                               phase->options->lam_most, next->y);
        next->tiny = 1;
        hybrid_iterate_residuals(phase, &trial->of, next, &residuals);
        if (hybrid_merit(phase->numbers, &residuals) <= 1.0) return;
    }
    hybrid_equal_multipliers(&phase->form, 1.0, next);
    next->tiny = 0;
    hybrid_least_squares_y(phase, &trial->of, next->z_lower, next->z_upper,
                           phase->options->lam_most, next->y);
}

int hybrid_is_stationary(hybrid_phase *phase, const double *y) {
    return hybrid_violation_slope(&phase->form, &phase->at->of, phase->answer->J0, y, phase->W,
                                  phase->search.slopes) <= HYBRID_CERTIFICATE_STATIONARY;
}

/* Called if steps lead no further. Ends at a root or at a stationary violation; else goes on with a
 * smaller nu, by far if the violation is clearly stationary. Returns a status. */
static int end_least_squares(hybrid_phase *phase) {
    hybrid_search *search = &phase->search;
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    double violation = hybrid_norm_inf(plan->m, at->c);
    double size = sqrt(hybrid_dot(plan->m, at->c, at->c));
    double least = HYBRID_LEAST_SQUARES_NU_MIN * size * (size < 1.0 ? size : 1.0);
    int proved;
    if (!phase->restoring && violation <= HYBRID_FEASIBLE_C) {
        end_search(phase, phase->at);
        return HYBRID_SOLVED;
    }
    if (!(search->nu > least))
        return violation <= HYBRID_FEASIBLE_C
                   ? hybrid_fail(phase, HYBRID_STALLED, HYBRID_ROUNDED_VIOLATION)
                   : hybrid_fail(phase, HYBRID_INFEASIBLE, HYBRID_LEAST_SQUARES);
    proved = violation > HYBRID_FEASIBLE_C && hybrid_is_stationary(phase, 0);
    search->nu = proved ? 0.5 * least : HYBRID_LEAST_SQUARES_NU_FALL * search->nu;
    return HYBRID_SOLVED;
}

/* Multipliers of the bounds after a part alpha of the step. */
static void move_bounds(hybrid_phase *phase, double alpha) {
    const hybrid_form *form = &phase->form;
    hybrid_search *search = &phase->search;
    hybrid_direction *d = &phase->direction;
    hybrid_iterate of = phase->now;
    of.nu = search->nu;
    of.z_lower = search->z_lower;
    of.z_upper = search->z_upper;
    hybrid_dual_steps(form, &phase->at->of, &of, d);
    for (int i = 0; i < phase->plan->n; i++) {
        search->z_lower[i] += alpha * d->dz_lower[i];
        search->z_upper[i] += alpha * d->dz_upper[i];
    }
    hybrid_reset_duals(form, &phase->trial->of, search->nu, search->z_lower, search->z_upper);
}

/* Ends the search if the violation hardly falls any more, as if it tends to a limit at infinity.
 * Also if the steps from a stationary |c|_1 have found no stationary |c|_2. Returns a status. */
static int progress_test(hybrid_phase *phase, double now) {
    const double slow = HYBRID_LEAST_SQUARES_SLOW * HYBRID_LEAST_SQUARES_SLOW; /* of squares */
    const int steps = phase->search.steps + 1;
    if (phase->restoring && phase->search.has_least && steps >= HYBRID_LEAST_SQUARES_STEPS)
        return hybrid_fail(phase, HYBRID_STALLED, HYBRID_LEAST_SUM);
    if (steps % HYBRID_LEAST_SQUARES_STEPS || !(now > slow * phase->search.reference))
        return HYBRID_SOLVED;
    return hybrid_fail(phase, hybrid_is_stationary(phase, 0) ? HYBRID_INFEASIBLE : HYBRID_STALLED,
                       HYBRID_SLOW_VIOLATION);
}

/* Goes to the trial point. Returns a status: where it is not HYBRID_SOLVED, nothing has changed. */
static int accept_step(hybrid_phase *phase, double alpha, double damping) {
    const hybrid_plan *plan = phase->plan;
    hybrid_search *search = &phase->search;
    const double *c = phase->at->of.c, *new = phase->trial->of.c;
    double before = hybrid_dot(plan->m, c, c), now = hybrid_dot(plan->m, new, new);
    int status;
    if (phase->restoring ? hybrid_is_restored(phase, phase->trial)
                         : hybrid_norm_inf(plan->m, new) <= HYBRID_LEAST_SQUARES_ROOT) {
        end_search(phase, phase->trial);
        hybrid_swap_trials(&phase->at, &phase->trial);
        return HYBRID_SOLVED;
    }
    status = progress_test(phase, now);
    if (status) return status;
    move_bounds(phase, alpha);
    search->damping = damping;
    search->steps++;
    if (search->steps % HYBRID_LEAST_SQUARES_STEPS == 0) search->reference = now;
    search->curved = !(now <= HYBRID_LEAST_SQUARES_FAST * before);
    hybrid_swap_trials(&phase->at, &phase->trial);
    return HYBRID_SOLVED;
}

/* --- steps ------------------------------------------------------------------------------------ */

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
    if (is_stationary_point(phase, slope)) return end_least_squares(phase);
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
                return end_least_squares(phase);
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
        if (damping > HYBRID_LEAST_SQUARES_DAMPING_MAX) return end_least_squares(phase);
    }
    return accept_step(phase, alpha, next_damping(damping, gained / gain));
}
