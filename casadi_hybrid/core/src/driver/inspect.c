/* What every run does with an iterate: residuals and error, a row for the observer, the
 * best iterates so far, and the termination test. */
#include <math.h>

#include "driver/driver.h"

/* Shows an iterate to the observer. Returns whether the solve is to end. */
static int write_row(hybrid_run *run, const hybrid_residuals *r) {
    const hybrid_iterate *it = &run->now;
    const hybrid_point *at = &run->at->of;
    hybrid_observer *to = run->form.functions->observer;
    double moved = 0.0, whole = run->history.inspected ? 1.0 : 0.0;
    int restoring = run->restoring || run->search.begun;
    if (!to) return 0;
    for (int i = 0; run->history.inspected && i < run->plan->n_x; i++) {
        double step = fabs(at->x[i] - run->history.x_before[i]);
        if (!(step <= moved)) moved = step;
    }
    const double row[HYBRID_ROW] = {
        it->t, at->raw_f, r->feasibility, r->stationarity, r->complementarity, it->nu, moved,
        restoring ? NAN : it->stepped ? it->alpha : whole,
        restoring ? NAN : it->stepped ? it->alpha_z : whole, it->shift, run->history.elapsed};
    const hybrid_view view = {row, at->x, at->raw_g, run->answer->lam_x, run->answer->lam_g,
                              restoring};
    return hybrid_observe(to, &view) ||
           hybrid_is_interrupted(to, run->history.began + run->history.elapsed);
}

/* Saves the iterates that are needed where the run ends: see outcome.c. */
static void keep_best_iterates(hybrid_run *run, const hybrid_residuals *r, double merit) {
    hybrid_state *state = run->state;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    const hybrid_iterate *it = &run->now;
    if (merit < run->history.best_merit || state->best.t < 0) {
        hybrid_copy_iterate(plan, it, at->w, &state->best);
        hybrid_copy_to_answer(&run->form, at);
        state->of_best = *r;
        run->history.best_merit = merit;
    }
    if (run->history.inspected) {
        int moved = 0;
        for (int i = 0; !moved && i < plan->n_x; i++) moved = at->x[i] != run->history.x_before[i];
        for (int i = 0; moved && i < plan->n_x; i++)
            state->last_step[i] = at->x[i] - run->history.x_before[i];
        state->stepped |= moved;
    }
    if (!(r->feasibility <= run->numbers->feasibility)) return;
    if (!run->restoring && !run->search.begun && r->feasibility >= HYBRID_NEARBY_VIOLATION &&
        (state->nearby.t < 0 || r->stationarity <= state->of_nearby.stationarity)) {
        hybrid_copy_iterate(plan, it, at->w, &state->nearby);
        state->of_nearby = *r;
    }
    if (state->feasible.t < 0 || at->raw_f <= state->least_f) {
        hybrid_copy_iterate(plan, it, at->w, &state->feasible);
        state->least_f = at->raw_f;
    }
}

/* Saves the iterate that was inspected as the last one of the run. Returns the status. */
static int end_run(hybrid_run *run, int status) {
    hybrid_copy_iterate(run->plan, &run->history.before, run->history.w_now, &run->state->now);
    return status;
}

int hybrid_inspect_iterate(hybrid_run *run, hybrid_inspection *seen) {
    const hybrid_numbers *numbers = run->numbers;
    double plain = hybrid_iterate_residuals(run, &run->at->of, &run->now, &seen->of), error;
    int solved, narrows; /* but for the gap; whether the run may go on for that, once */
    run->history.before = run->now;
    hybrid_copy(run->plan->n, run->at->of.w, run->history.w_now);
    run->history.elapsed = hybrid_time(run->form.functions) - run->history.began;
    seen->merit = hybrid_merit(numbers, &seen->of);
    hybrid_kkt_error(&run->form, &run->at->of, &run->now, run->Aty, &run->error);
    error = hybrid_error_at(&run->error, 0.0);
    seen->rounded =
        plain > 1.0 && (run->error.met ? hybrid_error_at(&run->error, run->now.nu) <= run->now.nu
                                       : seen->merit <= 1.0 && error <= numbers->tol);
    solved = seen->merit <= 1.0 && error <= numbers->tol;
    narrows = run->now.nu > HYBRID_BARRIER_NU_LEAST && !run->history.widened;
    run->history.wide = solved && narrows ? hybrid_gap(run) : 0.0;
    seen->settled = seen->merit > 1.0 || run->now.tiny > 0 ||
                    (error <= numbers->tol && !(run->history.wide > 1.0));
    /* A settled point of a larger nu is not that of the problem. */
    if (plain > 1.0 && run->at->of.inner > 0.0 && run->form.bounds)
        seen->settled &= run->now.nu <= run->now.nu_min;
    if (hybrid_all_finite(run->plan->n_x, run->at->of.x) &&
        hybrid_all_finite(run->plan->m, run->now.y))
        return HYBRID_SOLVED;
    return end_run(run, HYBRID_DIVERGED);
}

/* The limits of steps and time. Returns HYBRID_SOLVED where none is reached. */
static int limit_test(const hybrid_run *run, double merit) {
    const int t = run->history.before.t;
    const int converging = merit < 0.5 * run->history.merit_before; /* it is not given up then */
    /* Far from a feasible point multipliers of another problem lead to none sooner than x0 does. */
    const int vain = run->options->near && run->restoring && t >= HYBRID_RESTORATION_NEAR_STEPS;
    if (t >= run->numbers->max_iter) return HYBRID_LIMIT;
    if (run->history.elapsed >= run->setup->max_time) return HYBRID_LATE;
    return vain || (t >= run->options->patience && !converging) ? HYBRID_LIMIT : HYBRID_SOLVED;
}

int hybrid_log_iterate(hybrid_run *run, const hybrid_inspection *seen) {
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    const int end = write_row(run, &seen->of);
    int status;
    keep_best_iterates(run, &seen->of, seen->merit);
    status = hybrid_ray_test(&run->form, at, seen->merit, run->sizes, &run->corrected->of,
                             &run->state->ray);
    if (!status && seen->merit <= 1.0 && seen->settled) {
        run->answer->end = seen->of;
        hybrid_copy_to_answer(&run->form, at);
        return HYBRID_SOLVED;
    }
    if (!status)
        status = hybrid_divergence_test(plan, run->numbers, at, run->options->divergence,
                                        run->sizes);
    if (!status && end) status = HYBRID_STOPPED;
    if (!status) status = limit_test(run, seen->merit);
    if (status) return end_run(run, status);
    hybrid_copy(plan->n_x, at->x, run->history.x_now);
    return HYBRID_PAUSED;
}

int hybrid_after_step(hybrid_run *run, const hybrid_inspection *seen, int status) {
    if (status) return end_run(run, status);
    hybrid_copy(run->plan->n_x, run->history.x_now, run->history.x_before);
    run->history.merit_before = seen->merit;
    run->history.widened |= run->history.wide > 1.0;
    run->history.inspected++;
    return HYBRID_PAUSED;
}

int hybrid_finish_run(hybrid_run *run, int status) {
    run->answer->steps = run->now.t;
    run->answer->elapsed = hybrid_time(run->form.functions) - run->history.began;
    return run->answer->status = status;
}
