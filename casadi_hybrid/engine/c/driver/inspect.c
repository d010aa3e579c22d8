/* What every cold search does with an iterate: residuals and error, a row of the record, the best
 * iterates so far, whether it is a solution or a limit is met, or the run is handed over. */
#include <math.h>
#include <string.h>

#include "feasibility/feasibility.h"
#include "driver/driver.h"

/* Writes what the lists and the log show of an iterate. */
static void write_row(hybrid_cold *cold, const hybrid_residuals *r) {
    hybrid_state *state = cold->state;
    const hybrid_iterate *it = &cold->now;
    const hybrid_point *at = &cold->at->of;
    double *row = state->rows + (long long)HYBRID_ROW * state->count++;
    double moved = 0.0, whole = cold->looked ? 1.0 : 0.0;
    int aside = cold->restoring || cold->root.begun;
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
}

/* Keeps the iterates that a verdict may ask for: see attempts/verdict.py. */
static void keep(hybrid_cold *cold, const hybrid_residuals *r, double merit) {
    hybrid_state *state = cold->state;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    const hybrid_iterate *it = &cold->now;
    double fits;
    if (merit < cold->best_merit || state->best.t < 0) {
        hybrid_copy(plan, it, at->w, &state->best);
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

int hybrid_hand_over(hybrid_cold *cold, int status) {
    hybrid_state *state = cold->state;
    const hybrid_plan *plan = cold->plan;
    /* A restoration is begun again where it began. */
    if (cold->restoring) return status;
    hybrid_copy(plan, &cold->before, cold->at->of.w, &state->now);
    memcpy(state->guess, cold->guess_before, (size_t)plan->n * sizeof(int));
    if (cold->before.watching)
        hybrid_copy(plan, &cold->watched, cold->kept->of.w, &state->watched);
    hybrid_copy_root(plan, &cold->root, &state->root);
    hybrid_set(plan->n_x, cold->x_before, state->x_before);
    state->merit_before = cold->merit_before;
    state->reach_before = cold->reach_before;
    state->looked = cold->looked;
    return status;
}

int hybrid_see(hybrid_cold *cold, hybrid_sight *sight) {
    const hybrid_numbers *numbers = cold->numbers;
    double plain = hybrid_judge(cold, &cold->at->of, &cold->now, &sight->of), error;
    int status;
    sight->reach = hybrid_largest(cold->plan->n_x, cold->at->of.x);
    cold->before = cold->now;
    cold->guess_before = cold->guess;
    cold->elapsed = hybrid_time(cold->form.functions) - cold->began;
    sight->merit = hybrid_merit(numbers, &sight->of);
    status = hybrid_beyond(cold, sight);
    hybrid_measure(&cold->form, &cold->at->of, &cold->now, cold->pull, &cold->error);
    /* Where rounding alone excuses a solution a few more steps are taken there. */
    error = hybrid_error_at(&cold->error, 0.0);
    if (!status && !cold->attempt->alone && plain > 1.0 && sight->merit <= 1.0 &&
        error <= numbers->tol)
        status = HYBRID_EXCUSED;
    sight->leaves = 0;
    sight->settled = sight->merit > 1.0 || cold->now.tiny > 0 || error <= numbers->tol;
    return status ? hybrid_hand_over(cold, status) : HYBRID_SOLVED;
}

int hybrid_record(hybrid_cold *cold, const hybrid_sight *sight) {
    const hybrid_attempt *attempt = cold->attempt;
    const double merit = sight->merit;
    write_row(cold, &sight->of);
    keep(cold, &sight->of, sight->leaves ? INFINITY : merit);
    if (merit <= 1.0 && sight->settled && !sight->leaves &&
        !(attempt->alone && hybrid_runs_away(cold, sight->reach))) {
        cold->answer->end = sight->of;
        hybrid_deliver(&cold->form, &cold->at->of);
        return HYBRID_SOLVED;
    }
    if (cold->before.t >= cold->numbers->max_iter || cold->elapsed >= attempt->max_time ||
        (cold->before.t >= attempt->patience &&
         !(merit < HYBRID_PACE_CONVERGING * cold->merit_before)))
        return hybrid_went(cold, sight, HYBRID_LIMIT);
    hybrid_set(cold->plan->n_x, cold->at->of.x, cold->x_now);
    return HYBRID_PAUSED;
}

int hybrid_went(hybrid_cold *cold, const hybrid_sight *sight, int status) {
    if (status) {
        cold->state->count--;
        return hybrid_hand_over(cold, status);
    }
    hybrid_set(cold->plan->n_x, cold->x_now, cold->x_before);
    cold->merit_before = sight->merit;
    cold->reach_before = sight->reach;
    cold->looked++;
    return HYBRID_PAUSED;
}

int hybrid_ended(hybrid_cold *cold, int status) {
    cold->answer->steps = cold->now.t;
    cold->answer->elapsed = hybrid_time(cold->form.functions) - cold->began;
    return cold->answer->status = status;
}
