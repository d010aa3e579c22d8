/* The interior-point phase: a primal-dual barrier method with a filter line search (Waechter and
 * Biegler, Math. Program. 106, 2006), restorations and the extrapolation along rays.
 *
 * If no step leads on it ends with a status, and the state has the iterate whose step could not be
 * taken. */

#include "active_set/active_set.h"
#include "driver/driver.h"

/* Returns whether the iterate is feasible where there is no objective: a solution, whatever the
 * barrier terms are; it is phase->next then. */
static int at_root(hybrid_phase *phase) {
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    hybrid_iterate *root = &phase->next;
    hybrid_residuals residuals;
    if (!phase->options->feasibility) return 0;
    if (!(hybrid_norm_inf(plan->m, at->c) <= phase->numbers->tol)) return 0;
    hybrid_copy_iterate(plan, &phase->now, 0, root);
    hybrid_zero(plan->m, root->y);
    hybrid_zero(plan->n, root->z_lower);
    hybrid_zero(plan->n, root->z_upper);
    root->tiny = 1;
    hybrid_iterate_residuals(phase, at, root, &residuals);
    return hybrid_merit(phase->numbers, &residuals) <= 1.0;
}

/* Replaces implausible multipliers of dependent rows by smaller ones of least squares: a step moves
 * y by up to |c| / epsilon, and no later one back. Not of more rows than unknowns, where such
 * multipliers lead to a root as a penalty does. */
static void renew_multipliers(hybrid_phase *phase) {
    const int m = phase->plan->m;
    double largest;
    if (!phase->state->rows_dependent || m > phase->plan->n) return;
    largest = hybrid_norm_inf(m, phase->now.y);
    if (!(largest > phase->options->lam_most)) return;
    hybrid_least_squares_y(phase, &phase->at->of, phase->now.z_lower, phase->now.z_upper, largest,
                           phase->next.y);
    if (!(hybrid_norm_inf(m, phase->next.y) > 0.0)) return;
    hybrid_copy(m, phase->next.y, phase->now.y);
    phase->at->of.inner = 0.0; /* it was for the other multipliers */
}

/* The step that is due. Returns a status. */
static int step(hybrid_phase *phase) {
    hybrid_iterate *it = &phase->now, plain;
    int idle, status;
    if (phase->restoring || phase->search.begun) return hybrid_restoration_step(phase);
    if (hybrid_extrapolate(phase)) {
        it->t++;
        return HYBRID_SOLVED;
    }
    hybrid_update_barrier(phase, it);
    idle = it->t - it->reference.t;
    if (idle >= HYBRID_PROGRESS_STEPS && it->reference.theta > HYBRID_FEASIBLE_C)
        return hybrid_begin_restoration(phase);
    if (idle >= HYBRID_PROGRESS_STEPS || it->reference.rounds >= HYBRID_PROGRESS_ROUNDS)
        return hybrid_fail(phase, HYBRID_STALLED, HYBRID_NO_PROGRESS);
    plain = *it;
    status = hybrid_newton_step(phase, it);
    if ((status == HYBRID_BLOCKED || status == HYBRID_NOT_NEARER) &&
        hybrid_drop_secants(phase->form.functions->secants)) {
        *it = plain; /* secant pairs of points far from here mislead */
        status = hybrid_newton_step(phase, it);
    }
    if (status == HYBRID_NOT_NEARER && phase->at->theta <= phase->numbers->tol)
        return HYBRID_STALLED;
    if (status == HYBRID_BLOCKED || status == HYBRID_NOT_NEARER) {
        *it = plain;
        return hybrid_begin_restoration(phase);
    }
    if (status) return status;
    phase->next.t = it->t + 1;
    hybrid_accept_next(phase);
    hybrid_swap_trials(&phase->at, &phase->trial);
    if (at_root(phase)) hybrid_accept_next(phase);
    renew_multipliers(phase);
    return HYBRID_SOLVED;
}

/* Inspects the iterate and takes a step. Returns HYBRID_PAUSED to go on. */
static int advance(hybrid_phase *phase) {
    hybrid_inspection seen;
    int status = hybrid_inspect_iterate(phase, &seen);
    if (status) return status;
    if (seen.rounded && phase->history.inspected && !phase->restoring && !phase->search.begun) {
        hybrid_refine_solution(phase);
        hybrid_inspect_iterate(phase, &seen);
    }
    status = hybrid_log_iterate(phase, &seen);
    return status == HYBRID_PAUSED ? hybrid_after_step(phase, &seen, step(phase)) : status;
}

int hybrid_interior_point(const hybrid_plan *plan, const hybrid_functions *functions,
                          const hybrid_numbers *numbers, const hybrid_phase_options *options,
                          const hybrid_phase_setup *setup, void *bytes, double *doubles, int *ints,
                          hybrid_state *state, hybrid_answer *answer) {
    hybrid_arena arena = {doubles, ints, 0, 0};
    int status =
        hybrid_begin_phase(plan, functions, numbers, options, setup, bytes, &arena, state, answer);
    if (!status) status = hybrid_first_iterate(bytes);
    if (status) return answer->status = status;
    while ((status = advance(bytes)) == HYBRID_PAUSED) {}
    if (((hybrid_phase *)bytes)->now.curved && !functions->secants)
        answer->order = HYBRID_NECESSARY;
    return hybrid_finish_phase(bytes, status);
}
