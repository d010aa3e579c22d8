/* Begin and end of the search for the least |c|_2. It begins strictly inside the bounds. It ends at
 * a root, at a point that the filter accepts, or at a stationary violation: steps lead no further,
 * or hardly gain. */
#include <math.h>

#include "feasibility/feasibility.h"

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
        hybrid_least_squares_y(phase, &trial->of, next->z_lower, next->z_upper, next->y);
        next->tiny = 1;
        hybrid_iterate_residuals(phase, &trial->of, next, &residuals);
        if (hybrid_merit(phase->numbers, &residuals) <= 1.0) return;
    }
    hybrid_equal_multipliers(&phase->form, 1.0, next);
    next->tiny = 0;
    hybrid_least_squares_y(phase, &trial->of, next->z_lower, next->z_upper, next->y);
}

int hybrid_is_stationary(hybrid_phase *phase, const double *y) {
    return hybrid_violation_slope(&phase->form, &phase->at->of, phase->answer->J0, y, phase->W,
                                  phase->search.slopes) <= HYBRID_CERTIFICATE_STATIONARY;
}

int hybrid_end_least_squares(hybrid_phase *phase) {
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

int hybrid_accept_least_squares(hybrid_phase *phase, double alpha, double damping) {
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
