/* What every phase does with an iterate: residuals and error, a row for the observer, the
 * best iterates so far, and the termination test. */
#include <math.h>

#include "driver/driver.h"

/* Shows an iterate to the observer. Returns whether the solve is to end. */
static int write_row(hybrid_phase *phase, const hybrid_residuals *r) {
    const hybrid_iterate *it = &phase->now;
    const hybrid_point *at = &phase->at->of;
    hybrid_observer *to = phase->form.functions->observer;
    double moved = 0.0, whole = phase->history.inspected ? 1.0 : 0.0;
    int restoring = phase->restoring || phase->search.begun;
    if (!to) return 0;
    for (int i = 0; phase->history.inspected && i < phase->plan->n_x; i++) {
        double step = fabs(at->x[i] - phase->history.x_before[i]);
        if (!(step <= moved)) moved = step;
    }
    const double row[HYBRID_ROW] = {it->t,
                                    at->raw_f,
                                    r->feasibility,
                                    r->stationarity,
                                    r->complementarity,
                                    it->nu,
                                    moved,
                                    restoring     ? NAN
                                    : it->stepped ? it->alpha
                                                  : whole,
                                    restoring     ? NAN
                                    : it->stepped ? it->alpha_z
                                                  : whole,
                                    it->shift,
                                    phase->history.elapsed};
    const hybrid_view view = {
        row, at->x, at->raw_g, phase->answer->lam_x, phase->answer->lam_g, restoring};
    return hybrid_observe(to, &view) ||
           hybrid_is_interrupted(to, phase->history.began + phase->history.elapsed);
}

/* Saves the iterates that are needed where the phase ends: see outcome.c. */
static void keep_best_iterates(hybrid_phase *phase, const hybrid_residuals *r, double merit) {
    hybrid_state *state = phase->state;
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    const hybrid_iterate *it = &phase->now;
    if (merit < phase->history.best_merit || state->best.t < 0) {
        hybrid_copy_iterate(plan, it, at->w, &state->best);
        hybrid_copy_to_answer(&phase->form, at);
        state->of_best = *r;
        phase->history.best_merit = merit;
    }
    if (phase->history.inspected) {
        int moved = 0;
        for (int i = 0; !moved && i < plan->n_x; i++)
            moved = at->x[i] != phase->history.x_before[i];
        for (int i = 0; moved && i < plan->n_x; i++)
            state->last_step[i] = at->x[i] - phase->history.x_before[i];
        state->stepped |= moved;
    }
    if (!(r->feasibility <= phase->numbers->feasibility)) return;
    if (!phase->restoring && !phase->search.begun && r->feasibility >= HYBRID_NEARBY_VIOLATION &&
        (state->nearby.t < 0 || r->stationarity <= state->of_nearby.stationarity)) {
        hybrid_copy_iterate(plan, it, at->w, &state->nearby);
        state->of_nearby = *r;
    }
    if (state->feasible.t < 0 || at->raw_f <= state->least_f) {
        hybrid_copy_iterate(plan, it, at->w, &state->feasible);
        state->least_f = at->raw_f;
    }
}

/* Saves the iterate that was inspected as the last one of the phase. Returns the status. */
static int end_phase(hybrid_phase *phase, int status) {
    hybrid_copy_iterate(phase->plan, &phase->history.before, phase->history.w_now,
                        &phase->state->now);
    return status;
}

int hybrid_inspect_iterate(hybrid_phase *phase, hybrid_inspection *seen) {
    const hybrid_numbers *numbers = phase->numbers;
    double plain = hybrid_iterate_residuals(phase, &phase->at->of, &phase->now, &seen->of), error;
    int solved, narrows; /* but for the gap; whether the phase may go on for that, once */
    phase->history.before = phase->now;
    hybrid_copy(phase->plan->n, phase->at->of.w, phase->history.w_now);
    phase->history.elapsed = hybrid_time(phase->form.functions) - phase->history.began;
    seen->merit = hybrid_merit(numbers, &seen->of);
    hybrid_kkt_error(&phase->form, &phase->at->of, &phase->now, phase->Aty, &phase->error);
    error = hybrid_error_at(&phase->error, 0.0);
    seen->rounded =
        plain > 1.0 &&
        (phase->error.met ? hybrid_error_at(&phase->error, phase->now.nu) <= phase->now.nu
                          : seen->merit <= 1.0 && error <= numbers->tol);
    solved = seen->merit <= 1.0 && error <= numbers->tol;
    narrows = phase->now.nu > HYBRID_BARRIER_NU_LEAST && !phase->history.widened;
    phase->history.wide = solved && narrows ? hybrid_gap(phase) : 0.0;
    seen->settled = seen->merit > 1.0 || phase->now.tiny > 0 ||
                    (error <= numbers->tol && !(phase->history.wide > 1.0));
    /* A settled point of a larger nu is not that of the problem. */
    if (plain > 1.0 && phase->at->of.inner > 0.0 && phase->form.bounds)
        seen->settled &= phase->now.nu <= phase->now.nu_min;
    if (hybrid_all_finite(phase->plan->n_x, phase->at->of.x) &&
        hybrid_all_finite(phase->plan->m, phase->now.y))
        return HYBRID_SOLVED;
    return end_phase(phase, HYBRID_DIVERGED);
}

/* The limits of steps and time. Returns HYBRID_SOLVED where none is reached. */
static int limit_test(const hybrid_phase *phase, double merit) {
    const int t = phase->history.before.t;
    const int converging = merit < 0.5 * phase->history.merit_before; /* it is not given up then */
    /* Far from a feasible point multipliers of another problem lead to none sooner than x0 does. */
    const int vain = phase->options->near && phase->restoring && t >= HYBRID_RESTORATION_NEAR_STEPS;
    if (t >= phase->numbers->max_iter) return HYBRID_LIMIT;
    if (phase->history.elapsed >= phase->setup->max_time) return HYBRID_LATE;
    return vain || (t >= phase->options->patience && !converging) ? HYBRID_LIMIT : HYBRID_SOLVED;
}

int hybrid_log_iterate(hybrid_phase *phase, const hybrid_inspection *seen) {
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    const int end = write_row(phase, &seen->of);
    int status;
    keep_best_iterates(phase, &seen->of, seen->merit);
    status = hybrid_ray_test(&phase->form, at, seen->merit, phase->sizes, &phase->corrected->of,
                             &phase->state->ray);
    if (!status && seen->merit <= 1.0 && seen->settled) {
        phase->answer->end = seen->of;
        hybrid_copy_to_answer(&phase->form, at);
        return HYBRID_SOLVED;
    }
    if (!status)
        status = hybrid_divergence_test(plan, phase->numbers, at, phase->options->divergence,
                                        phase->sizes);
    if (!status && end) status = HYBRID_STOPPED;
    if (!status) status = limit_test(phase, seen->merit);
    if (status) return end_phase(phase, status);
    hybrid_copy(plan->n_x, at->x, phase->history.x_now);
    return HYBRID_PAUSED;
}

int hybrid_after_step(hybrid_phase *phase, const hybrid_inspection *seen, int status) {
    if (status) return end_phase(phase, status);
    hybrid_copy(phase->plan->n_x, phase->history.x_now, phase->history.x_before);
    phase->history.merit_before = seen->merit;
    phase->history.widened |= phase->history.wide > 1.0;
    phase->history.inspected++;
    return HYBRID_PAUSED;
}

int hybrid_finish_phase(hybrid_phase *phase, int status) {
    phase->answer->steps = phase->now.t;
    phase->answer->elapsed = hybrid_time(phase->form.functions) - phase->history.began;
    return phase->answer->status = status;
}
