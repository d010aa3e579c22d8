/* The cold mode: a primal-dual barrier method with a filter, as barrier/barrier.py and loop.py.
 *
 * What it does not do itself (restoration, rays, doubtful factorizations, functions that are not
 * defined) ends it with a status, and the state says where the careful path goes on: at the
 * iterate whose step could not be taken. */
#include <math.h>
#include <string.h>

#include "cold.h"

double hybrid_judge(hybrid_cold *cold, const hybrid_point *at, const hybrid_iterate *it,
                    hybrid_residuals *found) {
    hybrid_answer *answer = cold->answer;
    double plain;
    hybrid_multipliers_out(&cold->form, at, it->y, it->z_lower, it->z_upper, answer->lam_x,
                           answer->lam_g);
    hybrid_residuals_at(&cold->form, at, answer->lam_x, answer->lam_g, cold->work, found);
    plain = hybrid_merit(cold->numbers, found);
    hybrid_excuse(&cold->form, at, answer->lam_x, answer->lam_g, cold->work, cold->sizes, found);
    return plain;
}

/* --- looking at an iterate ------------------------------------------------------------------- */

static double reach_of(const hybrid_cold *cold) {
    return hybrid_largest(cold->plan->n_x, cold->at->of.x);
}

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

/* --- a step ---------------------------------------------------------------------------------- */

/* Without an objective a feasible point is a solution, whatever the barrier still wants. */
static int at_root(hybrid_cold *cold) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    hybrid_iterate *root = &cold->next;
    hybrid_residuals residuals;
    if (!cold->attempt->feasibility) return 0;
    if (!(hybrid_largest(plan->m, at->c) <= cold->numbers->tol)) return 0;
    hybrid_copy(plan, &cold->now, 0, root);
    memset(root->y, 0, (size_t)plan->m * sizeof(double));
    memset(root->z_lower, 0, (size_t)plan->n * sizeof(double));
    memset(root->z_upper, 0, (size_t)plan->n * sizeof(double));
    root->tiny = 1;
    hybrid_judge(cold, at, root, &residuals);
    return hybrid_merit(cold->numbers, &residuals) <= 1.0;
}

static void swap_iterates(hybrid_cold *cold) {
    hybrid_iterate kept = cold->now;
    cold->now = cold->next;
    cold->next = kept;
}

/* Says in the state where to go on; the row of that iterate is written again there. */
static int hand_over(hybrid_cold *cold, int status) {
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

/* The largest factor by which a row would be scaled less with the scales of now. */
static double eased(hybrid_cold *cold) {
    const hybrid_plan *plan = cold->plan;
    double *old = cold->residual, *now = cold->penalty, found = 0.0;
    for (int i = 0; i < plan->m; i++) old[i] = now[i] = HYBRID_FORM_SCALE_GOAL;
    for (int k = 0; k < plan->kept_A; k++) {
        int row = plan->A_rows[k], of_J = plan->A_of_J[k];
        double before = fabs(cold->answer->J0[of_J]), size = fabs(cold->at->of.raw_J[of_J]);
        if (before > old[row]) old[row] = before;
        if (size > now[row]) now[row] = size;
    }
    for (int i = 0; i < plan->m; i++)
        if (old[i] / now[i] > found) found = old[i] / now[i];
    return found;
}

/* A step of the restoration; where it ends the barrier method goes on. */
static int restore(hybrid_cold *cold, int t) {
    int status = hybrid_elastic_step(cold);
    if (status) return status;
    cold->now.stepped = cold->now.crossed = 0;
    cold->now.t = t;
    if (hybrid_restored(cold)) {
        hybrid_end_elastic(cold);
        cold->restoring = 0;
        cold->now.mark.t = t;
        cold->now.mark.rounds++;
    }
    return HYBRID_SOLVED;
}

/* A step of the search for a root; where it ends the barrier method goes on. */
static int seek(hybrid_cold *cold, int t) {
    int status = hybrid_root_step(cold);
    if (status) return status;
    if (!cold->root.begun) {
        swap_iterates(cold);
        cold->now.mark.t = t;
        cold->now.mark.rounds++;
    }
    cold->now.stepped = cold->now.crossed = 0;
    cold->now.t = t;
    return HYBRID_SOLVED;
}

/* Reduces the violation alone from step t on. */
static int block(hybrid_cold *cold, int t) {
    const hybrid_plan *plan = cold->plan;
    hybrid_iterate *it = &cold->now;
    double size = hybrid_largest(plan->n, cold->at->of.w);
    int status;
    if (cold->at->theta <= 1e-11 * (size > 1.0 ? size : 1.0)) return HYBRID_BLOCKED;
    if (plan->m > plan->n) return HYBRID_BLOCKED;
    if (cold->attempt->rescale && eased(cold) >= HYBRID_FORM_EASED) return HYBRID_BLOCKED;
    hand_over(cold, HYBRID_BLOCKED);
    hybrid_weigh(&cold->form, cold->at, it->nu, &cold->worth);
    if (hybrid_extend(&cold->worth, it)) return HYBRID_FULL;
    it->cut = it->watching = 0;
    hybrid_begin_elastic(cold, cold->worth.theta);
    cold->restoring = 1;
    status = restore(cold, t + 1);
    return status;
}

/* The step of the mode that is due. Returns a status; where it is not HYBRID_SOLVED, the state
 * can be handed over. */
static int step(hybrid_cold *cold) {
    hybrid_iterate *it = &cold->now, plain;
    hybrid_spot *new;
    int spent, idle, status;
    if (cold->restoring) return restore(cold, it->t + 1);
    if (cold->root.begun) return seek(cold, it->t + 1);
    hybrid_lower_barrier(cold, it, it->t);
    status = hybrid_polish(cold, it, &spent);
    if (status == HYBRID_SOLVED) {
        cold->next.t = it->t + spent;
    } else {
        if (status != HYBRID_NO_SET) return status;
        if (spent && it->t + spent >= cold->numbers->max_iter) {
            it->t += spent;
            return HYBRID_SOLVED;
        }
        idle = it->t + spent - it->mark.t;
        if (idle >= HYBRID_PACE_CRAWL && it->mark.theta > HYBRID_PACE_FEASIBLE)
            return block(cold, it->t + spent);
        if (idle >= HYBRID_PACE_STALL || it->mark.rounds >= HYBRID_PACE_ROUNDS)
            return HYBRID_NOT_NEARER;
        plain = *it;
        status = hybrid_newton(cold, it);
        if (status == HYBRID_NOT_NEARER && cold->at->theta <= cold->numbers->tol) return status;
        if (status == HYBRID_BLOCKED || status == HYBRID_NOT_NEARER) {
            *it = plain;
            return block(cold, it->t + spent);
        }
        if (status) return status;
        cold->next.t = it->t + spent + 1;
    }
    swap_iterates(cold);
    new = cold->trial;
    cold->trial = cold->at;
    cold->at = new;
    if (!cold->now.crossed && at_root(cold)) swap_iterates(cold);
    return HYBRID_SOLVED;
}

int hybrid_see(hybrid_cold *cold, hybrid_sight *sight) {
    const hybrid_numbers *numbers = cold->numbers;
    double plain = hybrid_judge(cold, &cold->at->of, &cold->now, &sight->of), error;
    int status;
    sight->reach = reach_of(cold);
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
    return status ? hand_over(cold, status) : HYBRID_SOLVED;
}

int hybrid_record(hybrid_cold *cold, const hybrid_sight *sight) {
    const hybrid_attempt *attempt = cold->attempt;
    const double merit = sight->merit;
    write_row(cold, &sight->of);
    keep(cold, &sight->of, sight->leaves ? INFINITY : merit);
    if (merit <= 1.0 && sight->settled && !(attempt->alone && hybrid_runs_away(cold, sight->reach))) {
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
        return hand_over(cold, status);
    }
    hybrid_set(cold->plan->n_x, cold->x_now, cold->x_before);
    cold->merit_before = sight->merit;
    cold->reach_before = sight->reach;
    cold->looked++;
    return HYBRID_PAUSED;
}

/* Looks at the iterate and takes a step. Returns HYBRID_PAUSED to go on. */
static int advance(hybrid_cold *cold) {
    hybrid_sight sight;
    int status = hybrid_see(cold, &sight);
    if (status) return status;
    status = hybrid_record(cold, &sight);
    return status == HYBRID_PAUSED ? hybrid_went(cold, &sight, step(cold)) : status;
}

int hybrid_ended(hybrid_cold *cold, int status) {
    cold->answer->steps = cold->now.t;
    cold->answer->elapsed = hybrid_time(cold->form.functions) - cold->began;
    return cold->answer->status = status;
}

int hybrid_cold_run(void *bytes) {
    hybrid_cold *cold = bytes;
    hybrid_state *state = cold->state;
    double began = hybrid_time(cold->form.functions);
    int status = HYBRID_PAUSED;
    state->count = 0;
    while (status == HYBRID_PAUSED && state->count < state->capacity) {
        status = advance(cold);
        if (hybrid_time(cold->form.functions) - began >= cold->attempt->pause) break;
    }
    return hybrid_ended(cold, status);
}
