/* The interior-point run: a primal-dual barrier method with a filter line search (Waechter and
 * Biegler, Math. Program. 106, 2006), restorations and the extrapolation along rays.
 *
 * Where no step leads on it ends with a status, and the state has the iterate whose step could not
 * be taken. */

#include "active_set/active_set.h"
#include "driver/driver.h"

/* Returns whether the iterate is feasible where there is no objective: a solution, whatever the
 * barrier terms are; it is run->next then. */
static int at_root(hybrid_run *run) {
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    hybrid_iterate *root = &run->next;
    hybrid_residuals residuals;
    if (!run->options->feasibility) return 0;
    if (!(hybrid_norm_inf(plan->m, at->c) <= run->numbers->tol)) return 0;
    hybrid_copy_iterate(plan, &run->now, 0, root);
    hybrid_zero(plan->m, root->y);
    hybrid_zero(plan->n, root->z_lower);
    hybrid_zero(plan->n, root->z_upper);
    root->tiny = 1;
    hybrid_iterate_residuals(run, at, root, &residuals);
    return hybrid_merit(run->numbers, &residuals) <= 1.0;
}

/* Replaces implausible multipliers of dependent rows by multipliers of least squares: a step moves
 * y by up to |c| / epsilon, and no later one back. Not of more rows than unknowns, where such
 * multipliers lead to a root as a penalty does. */
static void renew_multipliers(hybrid_run *run) {
    const int m = run->plan->m;
    if (!run->state->rows_dependent || m > run->plan->n) return;
    if (!(hybrid_norm_inf(m, run->now.y) > run->options->lam_most)) return;
    hybrid_least_squares_y(run, &run->at->of, run->now.z_lower, run->now.z_upper, run->next.y);
    if (!(hybrid_norm_inf(m, run->next.y) > 0.0)) return;
    hybrid_copy(m, run->next.y, run->now.y);
    run->at->of.inner = 0.0; /* it was for the other multipliers */
}

/* The step that is due. Returns a status. */
static int step(hybrid_run *run) {
    hybrid_iterate *it = &run->now, plain;
    int idle, status;
    if (run->restoring || run->search.begun) return hybrid_restoration_step(run);
    if (hybrid_extrapolate(run)) {
        it->t++;
        return HYBRID_SOLVED;
    }
    hybrid_update_barrier(run, it);
    idle = it->t - it->reference.t;
    if (idle >= HYBRID_PROGRESS_STEPS && it->reference.theta > HYBRID_FEASIBLE_C)
        return hybrid_begin_restoration(run);
    if (idle >= HYBRID_PROGRESS_STEPS || it->reference.rounds >= HYBRID_PROGRESS_ROUNDS)
        return hybrid_fail(run, HYBRID_STALLED, HYBRID_NO_PROGRESS);
    plain = *it;
    status = hybrid_newton_step(run, it);
    if ((status == HYBRID_BLOCKED || status == HYBRID_NOT_NEARER) &&
        hybrid_drop_secants(run->form.functions->secants)) {
        *it = plain; /* secant pairs of points far from here mislead */
        status = hybrid_newton_step(run, it);
    }
    if (status == HYBRID_NOT_NEARER && run->at->theta <= run->numbers->tol) return HYBRID_STALLED;
    if (status == HYBRID_BLOCKED || status == HYBRID_NOT_NEARER) {
        *it = plain;
        return hybrid_begin_restoration(run);
    }
    if (status) return status;
    run->next.t = it->t + 1;
    hybrid_accept_next(run);
    hybrid_swap_trials(&run->at, &run->trial);
    if (at_root(run)) hybrid_accept_next(run);
    renew_multipliers(run);
    return HYBRID_SOLVED;
}

/* Inspects the iterate and takes a step. Returns HYBRID_PAUSED to go on. */
static int advance(hybrid_run *run) {
    hybrid_inspection seen;
    int status = hybrid_inspect_iterate(run, &seen);
    if (status) return status;
    if (seen.rounded && run->history.inspected && !run->restoring && !run->search.begun) {
        hybrid_refine_solution(run);
        hybrid_inspect_iterate(run, &seen);
    }
    status = hybrid_log_iterate(run, &seen);
    return status == HYBRID_PAUSED ? hybrid_after_step(run, &seen, step(run)) : status;
}

int hybrid_interior_point(const hybrid_plan *plan, const hybrid_functions *functions,
                          const hybrid_numbers *numbers, const hybrid_run_options *options,
                          const hybrid_run_setup *setup, void *bytes, double *doubles, int *ints,
                          hybrid_state *state, hybrid_answer *answer) {
    hybrid_arena arena = {doubles, ints, 0, 0};
    int status =
        hybrid_begin_run(plan, functions, numbers, options, setup, bytes, &arena, state, answer);
    if (!status) status = hybrid_first_iterate(bytes);
    if (status) return answer->status = status;
    while ((status = advance(bytes)) == HYBRID_PAUSED) {}
    if (((hybrid_run *)bytes)->now.curved && !functions->secants) answer->order = HYBRID_NECESSARY;
    return hybrid_finish_run(bytes, status);
}
