/* What every cold search does with an iterate: residuals and error, a row of the record, the best
 * iterates so far, whether it is a solution or a limit is met. */
#include <math.h>
#include <string.h>

#include "feasibility/feasibility.h"
#include "driver/driver.h"

/* Hands a row on to who looks on; returns whether the solve is to end. */
static int show(hybrid_cold *cold, double *row, int restoring) {
    hybrid_observer *to = cold->form.functions->observer;
    const hybrid_point *at = &cold->at->of;
    const hybrid_view view = {row, at->x, at->raw_g, cold->answer->lam_x, cold->answer->lam_g,
                              restoring};
    return to && (hybrid_observe(to, &view) ||
                  hybrid_is_interrupted(to, cold->began + cold->elapsed));
}

/* Shows an iterate to who looks on. Returns whether the solve is to end. */
static int write_row(hybrid_cold *cold, const hybrid_residuals *r) {
    const hybrid_iterate *it = &cold->now;
    const hybrid_point *at = &cold->at->of;
    double row[HYBRID_ROW], moved = 0.0, whole = cold->looked ? 1.0 : 0.0;
    int aside = cold->restoring || cold->root.begun;
    if (!cold->form.functions->observer) return 0;
    for (int i = 0; cold->looked && i < cold->plan->n_x; i++) {
        double step = fabs(at->x[i] - cold->x_before[i]);
        if (!(step <= moved)) moved = step;
    }
    row[0] = it->t;
    row[1] = at->raw_f;
    row[2] = r->feasibility;
    row[3] = r->stationarity;
    row[4] = r->complementarity;
    row[5] = it->crossed ? 0.0 : it->nu;
    row[6] = moved;
    row[7] = aside ? NAN : it->stepped ? it->alpha : whole;
    row[8] = aside ? NAN : it->stepped ? it->alpha_z : whole;
    row[9] = it->shift;
    row[10] = cold->elapsed;
    return show(cold, row, aside);
}

static void keep_best(const hybrid_plan *plan, const hybrid_point *at, hybrid_state *state) {
    state->best_f = at->raw_f;
    hybrid_set(plan->n_x, at->x, state->best_x);
    hybrid_set(plan->n_x, at->raw_gradient, state->best_gradient);
    hybrid_set(plan->n_g, at->raw_g, state->best_g);
    hybrid_set(plan->nnz_J, at->raw_J, state->best_J);
}

/* Keeps the iterates that are asked for where the run ends: see outcome.c. */
static void keep(hybrid_cold *cold, const hybrid_residuals *r, double merit) {
    hybrid_state *state = cold->state;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    const hybrid_iterate *it = &cold->now;
    double fits;
    if (merit < cold->best_merit || state->best.t < 0) {
        hybrid_copy(plan, it, at->w, &state->best);
        keep_best(plan, at, state);
        state->of_best = *r;
        cold->best_merit = merit;
    }
    if (cold->looked) {
        int moved = 0;
        for (int i = 0; !moved && i < plan->n_x; i++) moved = at->x[i] != cold->x_before[i];
        for (int i = 0; moved && i < plan->n_x; i++)
            state->last_step[i] = at->x[i] - cold->x_before[i];
        state->stepped |= moved;
    }
    if (!(r->feasibility <= cold->numbers->feasibility)) return;
    fits = hybrid_largest(plan->n_x, at->raw_gradient);
    fits = HYBRID_PACE_FITS * (fits > 1.0 ? fits : 1.0);
    if (fits < state->of_beside.stationarity) fits = state->of_beside.stationarity;
    if (!cold->restoring && !cold->root.begun &&
        r->feasibility >= HYBRID_PACE_OUTSIDE * HYBRID_PACE_BESIDE &&
        (state->beside.t < 0 || r->stationarity <= fits)) {
        hybrid_copy(plan, it, at->w, &state->beside);
        state->of_beside = *r;
    }
    if (state->feasible.t < 0 || at->raw_f <= state->least_f) {
        hybrid_copy(plan, it, at->w, &state->feasible);
        state->least_f = at->raw_f;
    }
}

int hybrid_end_there(hybrid_cold *cold, int status) {
    hybrid_copy(cold->plan, &cold->before, cold->w_now, &cold->state->now);
    return status;
}

int hybrid_see(hybrid_cold *cold, hybrid_sight *sight) {
    const hybrid_numbers *numbers = cold->numbers;
    double plain = hybrid_judge(cold, &cold->at->of, &cold->now, &sight->of), error;
    cold->before = cold->now;
    hybrid_set(cold->plan->n, cold->at->of.w, cold->w_now);
    cold->elapsed = hybrid_time(cold->form.functions) - cold->began;
    sight->merit = hybrid_merit(numbers, &sight->of);
    hybrid_measure(&cold->form, &cold->at->of, &cold->now, cold->pull, &cold->error);
    error = hybrid_error_at(&cold->error, 0.0);
    sight->excused = plain > 1.0 && sight->merit <= 1.0 && error <= numbers->tol;
    sight->leaves = 0;
    sight->settled = sight->merit > 1.0 || cold->now.tiny > 0 || error <= numbers->tol;
    if (hybrid_all_finite(cold->plan->n_x, cold->at->of.x) &&
        hybrid_all_finite(cold->plan->m, cold->now.y))
        return HYBRID_SOLVED;
    return hybrid_end_there(cold, HYBRID_DIVERGED);
}

/* The limits of steps and time. Returns HYBRID_SOLVED where none is reached. */
static int limit_test(const hybrid_cold *cold, double merit) {
    int t = cold->before.t, converging = merit < HYBRID_PACE_CONVERGING * cold->merit_before;
    if (t >= cold->numbers->max_iter) return HYBRID_LIMIT;
    if (cold->elapsed >= cold->attempt->max_time) return HYBRID_LATE;
    return t >= cold->attempt->patience && !converging ? HYBRID_LIMIT : HYBRID_SOLVED;
}

/* The iterate becomes the answer. */
static void deliver(hybrid_cold *cold, const hybrid_sight *sight) {
    cold->answer->end = sight->of;
    hybrid_deliver(&cold->form, &cold->at->of);
}

int hybrid_record(hybrid_cold *cold, const hybrid_sight *sight) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    const int end = write_row(cold, &sight->of);
    int status;
    keep(cold, &sight->of, sight->leaves ? INFINITY : sight->merit);
    status = hybrid_ray_test(plan, cold->numbers, at, sight->merit, cold->sizes, &cold->state->ray);
    if (!status && sight->merit <= 1.0 && sight->settled && !sight->leaves) {
        deliver(cold, sight);
        return HYBRID_SOLVED;
    }
    if (!status)
        status = hybrid_divergence_test(plan, cold->numbers, at, cold->attempt->divergence,
                                    cold->sizes);
    if (!status && end) status = HYBRID_STOPPED;
    if (!status) status = limit_test(cold, sight->merit);
    if (status) return hybrid_end_there(cold, status);
    hybrid_set(plan->n_x, at->x, cold->x_now);
    return HYBRID_PAUSED;
}

int hybrid_went(hybrid_cold *cold, const hybrid_sight *sight, int status) {
    if (status) return hybrid_end_there(cold, status);
    hybrid_set(cold->plan->n_x, cold->x_now, cold->x_before);
    cold->merit_before = sight->merit;
    cold->looked++;
    return HYBRID_PAUSED;
}

int hybrid_ended(hybrid_cold *cold, int status) {
    cold->answer->steps = cold->now.t;
    cold->answer->elapsed = hybrid_time(cold->form.functions) - cold->began;
    return cold->answer->status = status;
}
