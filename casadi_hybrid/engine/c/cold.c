/* The cold mode: a primal-dual barrier method with a filter, as barrier/barrier.py and loop.py.
 *
 * What it does not do itself (restoration, rays, doubtful factorizations, functions that are not
 * defined) ends it with a status, and the state says where the careful path goes on: at the
 * iterate whose step could not be taken. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "cold.h"

static int longer(int a, int b) { return a > b ? a : b; }

static void place_iterate(const hybrid_plan *plan, hybrid_arena *arena, hybrid_iterate *it) {
    it->w = hybrid_take(arena, plan->n);
    it->y = hybrid_take(arena, plan->m);
    it->z_lower = hybrid_take(arena, plan->n);
    it->z_upper = hybrid_take(arena, plan->n);
    it->filter = hybrid_take(arena, 2 * HYBRID_FILTER);
}

static void place_direction(const hybrid_plan *plan, hybrid_arena *arena, hybrid_direction *d) {
    d->dw = hybrid_take(arena, plan->n);
    d->dy = hybrid_take(arena, plan->m);
    d->dz_lower = hybrid_take(arena, plan->n);
    d->dz_upper = hybrid_take(arena, plan->n);
}

static void place(const hybrid_plan *plan, int dense, hybrid_arena *arena, hybrid_cold *cold) {
    cold->plan = cold->form.plan = plan;
    hybrid_place_form(plan, arena, &cold->form);
    hybrid_place_kernel(plan, arena, &cold->kernel);
    for (int k = 0; k < HYBRID_SPOTS; k++) hybrid_place_point(plan, arena, &cold->spots[k].of);
    cold->at = &cold->spots[0];
    cold->kept = &cold->spots[1];
    cold->trial = &cold->spots[2];
    cold->bent = &cold->spots[3];
    place_iterate(plan, arena, &cold->now);
    place_iterate(plan, arena, &cold->next);
    place_iterate(plan, arena, &cold->watched);
    place_direction(plan, arena, &cold->direction);
    place_direction(plan, arena, &cold->other);
    cold->worth.gradient = hybrid_take(arena, plan->n);
    cold->W = hybrid_take(arena, plan->nnz_W);
    cold->D = hybrid_take(arena, plan->n);
    cold->force = hybrid_take(arena, plan->n);
    cold->zero = hybrid_take(arena, longer(plan->n, plan->m));
    cold->work = hybrid_take(arena, longer(plan->n, plan->n_x));
    cold->residual = hybrid_take(arena, plan->m);
    cold->sizes = hybrid_take(arena, longer(plan->n_g, plan->n_x));
    cold->x_now = hybrid_take(arena, plan->n_x);
    cold->guess = hybrid_take_ints(arena, plan->n);
    cold->sides = hybrid_take_ints(arena, plan->n);
    cold->dense = dense ? hybrid_take(arena, ((long long)plan->n + 1) * plan->m) : 0;
}

void hybrid_cold_memory(const hybrid_plan *plan, int dense, long long *bytes,
                        long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_cold cold;
    memset(&cold, 0, sizeof cold);
    place(plan, dense, &arena, &cold);
    *bytes = (long long)sizeof cold;
    *doubles = arena.used_doubles;
    *ints = arena.used_ints;
}

static void place_state(const hybrid_plan *plan, hybrid_arena *arena, hybrid_state *state) {
    place_iterate(plan, arena, &state->now);
    place_iterate(plan, arena, &state->watched);
    place_iterate(plan, arena, &state->best);
    place_iterate(plan, arena, &state->feasible);
    place_iterate(plan, arena, &state->beside);
    state->x_before = hybrid_take(arena, plan->n_x);
    state->last_step = hybrid_take(arena, plan->n_x);
}

long long hybrid_state_doubles(const hybrid_plan *plan) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_state state;
    memset(&state, 0, sizeof state);
    place_state(plan, &arena, &state);
    return arena.used_doubles;
}

void hybrid_state_attach(const hybrid_plan *plan, double *doubles, int *guess,
                         hybrid_state *state) {
    hybrid_arena arena = {0, 0, 0, 0};
    arena.doubles = doubles;
    place_state(plan, &arena, state);
    state->guess = guess;
}

void hybrid_copy_numbers(const hybrid_iterate *from, hybrid_iterate *to) {
    hybrid_iterate kept = *to;
    *to = *from;
    to->w = kept.w;
    to->y = kept.y;
    to->z_lower = kept.z_lower;
    to->z_upper = kept.z_upper;
    to->filter = kept.filter;
}

static void copy(int count, const double *from, double *to) {
    if (count) memcpy(to, from, (size_t)count * sizeof(double));
}

void hybrid_copy(const hybrid_plan *plan, const hybrid_iterate *from, const double *w,
                 hybrid_iterate *to) {
    hybrid_copy_numbers(from, to);
    if (w) copy(plan->n, w, to->w);
    copy(plan->m, from->y, to->y);
    copy(plan->n, from->z_lower, to->z_lower);
    copy(plan->n, from->z_upper, to->z_upper);
    copy(2 * from->entries, from->filter, to->filter);
}

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

/* --- the start ------------------------------------------------------------------------------- */

/* Inside the bounds; less far where a function is not defined there. */
static int first_point(hybrid_cold *cold) {
    static const double shares[] = {1.0, 1e-2, 1e-4};
    for (int k = 0; k < 3; k++) {
        copy(cold->plan->n, cold->work, cold->at->of.w);
        hybrid_interior(&cold->form, shares[k] * cold->attempt->push, cold->at->of.w);
        if (!hybrid_visit(cold, cold->at)) return HYBRID_SOLVED;
    }
    return HYBRID_UNDEFINED;
}

/* The given multipliers, those of bounds at least on the central path of nu, and with a small nu
 * only where they nearly solve this problem. */
static void nearby(hybrid_cold *cold) {
    const hybrid_form *form = &cold->form;
    const hybrid_point *at = &cold->at->of;
    hybrid_iterate *it = &cold->now;
    hybrid_error error;
    hybrid_multipliers_in(form, it->y, it->z_lower, it->z_upper);
    hybrid_measure(form, at, it, cold->work, &error);
    if (hybrid_error_at(&error, 0.0) > HYBRID_BARRIER_FAR_OFF &&
        it->nu < HYBRID_BARRIER_NU_FAR_OFF)
        it->nu = HYBRID_BARRIER_NU_FAR_OFF;
    for (int i = 0; i < cold->plan->n; i++) {
        double lower = form->has_lower[i] ? it->nu / at->below[i] : 0.0;
        double upper = form->has_upper[i] ? it->nu / at->above[i] : 0.0;
        if (it->z_lower[i] < lower) it->z_lower[i] = lower;
        if (it->z_upper[i] < upper) it->z_upper[i] = upper;
    }
    it->shift = HYBRID_BARRIER_SHIFT_NEARBY;
}

/* The first iterate; cold->work has the start. */
static int first_iterate(hybrid_cold *cold) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_attempt *attempt = cold->attempt;
    hybrid_iterate *it = &cold->now;
    int status = first_point(cold);
    if (status) return status;
    it->nu = attempt->nu;
    it->floor = attempt->floor;
    it->theta_start = cold->at->theta;
    it->t = attempt->t0;
    for (int i = 0; i < plan->n; i++) {
        it->z_lower[i] = form->has_lower[i] ? 1.0 : 0.0;
        it->z_upper[i] = form->has_upper[i] ? 1.0 : 0.0;
    }
    if (cold->dense)
        cold->state->rows_dependent =
            hybrid_rows_are_dependent(plan, cold->at->of.A, cold->dense);
    if (attempt->near) {
        nearby(cold);
        return HYBRID_SOLVED;
    }
    return hybrid_least_squares(cold, &cold->at->of, it->z_lower, it->z_upper, it->y);
}

/* |start| with slacks where their rows are, inside or not. */
static double size_of_start(const hybrid_cold *cold, const hybrid_point *start) {
    const hybrid_plan *plan = cold->plan;
    double size = hybrid_largest(plan->n_free, start->w);
    for (int k = 0; k < plan->n_slack; k++) {
        int i = plan->slack_row[k];
        double slack = fabs(start->raw_g[plan->row_at[i]] * cold->form.scale_c[i]);
        if (slack > size) size = slack;
    }
    return size;
}

static void clear_state(const hybrid_plan *plan, hybrid_state *state) {
    state->now.t = state->watched.t = state->best.t = -1;
    state->feasible.t = state->beside.t = -1;
    state->merit_before = 0.0;
    state->reach_before = INFINITY;
    state->looked = state->count = state->stepped = 0;
    state->rows_dependent = state->undefined = 0;
    memset(state->guess, 0, (size_t)plan->n * sizeof(int));
}

static void clear_numbers(hybrid_iterate *it) {
    hybrid_iterate none;
    memset(&none, 0, sizeof none);
    hybrid_copy_numbers(&none, it);
}

int hybrid_cold_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                      const hybrid_numbers *numbers, const hybrid_attempt *attempt, void *bytes,
                      double *doubles, int *ints, hybrid_state *state, hybrid_answer *answer) {
    hybrid_cold *cold = bytes;
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_point *start;
    int status;
    memset(cold, 0, sizeof *cold);
    arena.doubles = doubles;
    arena.ints = ints;
    place(plan, attempt->dense, &arena, cold);
    cold->form.functions = functions;
    cold->form.numbers = cold->numbers = numbers;
    cold->form.answer = cold->answer = answer;
    cold->attempt = attempt;
    cold->state = state;
    cold->began = hybrid_time(functions);
    cold->best_merit = INFINITY;
    memset(cold->zero, 0, (size_t)longer(plan->n, plan->m) * sizeof(double));
    clear_numbers(&cold->now);
    clear_state(plan, state);
    answer->in_firsts = answer->in_seconds = 0.0;
    answer->steps = answer->firsts = answer->seconds = answer->factors = answer->doubts = 0;
    start = &cold->trial->of;
    status = hybrid_make_form(&cold->form, start);
    if (status) return answer->status = status;
    copy(plan->n_x, start->raw_gradient, answer->gradient0);
    copy(plan->nnz_J, start->raw_J, answer->J0);
    copy(plan->n, start->w, cold->work);
    cold->first_size = size_of_start(cold, start);
    status = first_iterate(cold);
    return answer->status = status ? status : HYBRID_PAUSED;
}

/* --- looking at an iterate ------------------------------------------------------------------- */

static double reach_of(const hybrid_cold *cold) {
    return hybrid_largest(cold->plan->n_x, cold->at->of.x);
}

/* Whether the iterate is for the careful path to judge: a status, or 0. */
static int beyond(const hybrid_cold *cold, double reach) {
    const hybrid_attempt *attempt = cold->attempt;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    double along = 0.0, size = cold->first_size > 1.0 ? cold->first_size : 1.0;
    if (!(reach < HYBRID_RAYS_LARGE) || reach > attempt->divergence) return HYBRID_FAR;
    if (at->raw_f < -attempt->divergence) return HYBRID_FAR;
    if (!hybrid_all_finite(plan->m, cold->now.y)) return HYBRID_FAR;
    if (!(at->raw_f < 0.0 && reach >= HYBRID_LEAP_FROM * size)) return HYBRID_SOLVED;
    for (int i = 0; i < plan->n_x; i++) along += at->raw_gradient[i] * at->x[i];
    return -along >= HYBRID_RAYS_SLOPE * fabs(at->raw_f) ? HYBRID_FAR : HYBRID_SOLVED;
}

/* Writes what the lists and the log show of an iterate. */
static void write_row(hybrid_cold *cold, const hybrid_residuals *r) {
    hybrid_state *state = cold->state;
    const hybrid_iterate *it = &cold->now;
    const hybrid_point *at = &cold->at->of;
    double *row = state->rows + (long long)HYBRID_ROW * state->count++;
    double moved = 0.0, whole = state->looked ? 1.0 : 0.0;
    for (int i = 0; state->looked && i < cold->plan->n_x; i++) {
        double step = fabs(at->x[i] - state->x_before[i]);
        if (!(step <= moved)) moved = step;
    }
    row[0] = it->t;
    row[1] = at->raw_f;
    row[2] = r->feasibility;
    row[3] = r->stationarity;
    row[4] = r->complementarity;
    row[5] = it->crossed ? 0.0 : it->nu;
    row[6] = moved;
    row[7] = it->stepped ? it->alpha : whole;
    row[8] = it->stepped ? it->alpha_z : whole;
    row[9] = it->shift;
    row[10] = cold->elapsed;
}

/* Keeps the iterates that a verdict may ask for: see attempts/verdict.py. */
static void keep(hybrid_cold *cold, const hybrid_residuals *r, double merit) {
    hybrid_state *state = cold->state;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    const hybrid_iterate *it = &cold->now;
    double fits = hybrid_largest(plan->n_x, at->raw_gradient);
    if (merit < cold->best_merit || state->best.t < 0) {
        hybrid_copy(plan, it, at->w, &state->best);
        state->of_best = *r;
        cold->best_merit = merit;
    }
    if (state->looked) {
        int moved = 0;
        for (int i = 0; !moved && i < plan->n_x; i++) moved = at->x[i] != state->x_before[i];
        for (int i = 0; moved && i < plan->n_x; i++)
            state->last_step[i] = at->x[i] - state->x_before[i];
        state->stepped |= moved;
    }
    if (!(r->feasibility <= cold->numbers->feasibility)) return;
    fits = HYBRID_PACE_FITS * (fits > 1.0 ? fits : 1.0);
    if (fits < state->of_beside.stationarity) fits = state->of_beside.stationarity;
    if (r->feasibility >= HYBRID_PACE_OUTSIDE * HYBRID_PACE_BESIDE &&
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

/* The step of the mode that is due. Returns a status; where it is not HYBRID_SOLVED, the numbers
 * of cold->now are those from before. */
static int step(hybrid_cold *cold) {
    hybrid_iterate *it = &cold->now;
    hybrid_spot *new;
    int spent, idle, status;
    hybrid_lower_barrier(cold, it, it->t);
    status = hybrid_polish(cold, it, &spent);
    if (status == HYBRID_SOLVED) {
        cold->next.t = it->t + spent;
    } else {
        if (status != HYBRID_NO_SET) return status;
        idle = it->t + spent - it->mark.t;
        if (idle >= HYBRID_PACE_CRAWL && it->mark.theta > HYBRID_PACE_FEASIBLE)
            return HYBRID_BLOCKED;
        if (idle >= HYBRID_PACE_STALL) return HYBRID_BLOCKED;
        status = hybrid_newton(cold, it);
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

/* Copies the solution and its derivatives to the answer. */
static int deliver(hybrid_cold *cold, const hybrid_residuals *r) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    hybrid_answer *answer = cold->answer;
    copy(plan->n_x, at->x, answer->x);
    copy(plan->n_g, at->raw_g, answer->g);
    copy(plan->n_x, at->raw_gradient, answer->gradient);
    copy(plan->nnz_J, at->raw_J, answer->J);
    answer->end = *r;
    answer->largest_x = hybrid_largest(plan->n_x, answer->lam_x);
    answer->largest_g = hybrid_largest(plan->n_g, answer->lam_g);
    answer->steepest = hybrid_largest(plan->n_x, at->raw_gradient);
    answer->reach = hybrid_largest(plan->n_x, at->x);
    return HYBRID_SOLVED;
}

/* Says in the state where to go on; the row of that iterate is written again there. */
static int hand_over(hybrid_cold *cold, const hybrid_iterate *before, const int *guess,
                     int status) {
    hybrid_state *state = cold->state;
    const hybrid_plan *plan = cold->plan;
    hybrid_copy(plan, before, cold->at->of.w, &state->now);
    memcpy(state->guess, guess, (size_t)plan->n * sizeof(int));
    if (before->watching) hybrid_copy(plan, &cold->watched, cold->kept->of.w, &state->watched);
    return status;
}

/* Looks at the iterate and takes a step. Returns HYBRID_PAUSED to go on. */
static int advance(hybrid_cold *cold) {
    hybrid_state *state = cold->state;
    const hybrid_numbers *numbers = cold->numbers;
    hybrid_iterate before = cold->now;
    const int *guess = cold->guess;
    hybrid_residuals r;
    hybrid_error error;
    double reach = reach_of(cold), merit, plain = hybrid_judge(cold, &cold->at->of, &cold->now, &r);
    int settled, status;
    cold->elapsed = hybrid_time(cold->form.functions) - cold->began;
    status = beyond(cold, reach);
    merit = hybrid_merit(numbers, &r);
    hybrid_measure(&cold->form, &cold->at->of, &cold->now, cold->work, &error);
    /* Where rounding alone excuses a solution a few more steps are taken there. */
    if (!status && plain > 1.0 && merit <= 1.0 && hybrid_error_at(&error, 0.0) <= numbers->tol)
        status = HYBRID_EXCUSED;
    if (status) return hand_over(cold, &before, guess, status);
    write_row(cold, &r);
    settled = merit > 1.0 || cold->now.tiny > 0 || hybrid_error_at(&error, 0.0) <= numbers->tol;
    keep(cold, &r, settled ? merit : INFINITY);
    if (merit <= 1.0 && settled) return deliver(cold, &r);
    if (before.t >= numbers->max_iter || cold->elapsed >= cold->attempt->max_time)
        status = HYBRID_LIMIT;
    else if (before.t >= cold->attempt->patience &&
             !(merit < HYBRID_PACE_CONVERGING * state->merit_before))
        status = HYBRID_LIMIT;
    else {
        /* The arrays of `before` change hands with a step; its x is that of the point before. */
        copy(cold->plan->n_x, cold->at->of.x, cold->x_now);
        status = step(cold);
    }
    if (status) {
        state->count--;
        return hand_over(cold, &before, guess, status);
    }
    copy(cold->plan->n_x, cold->x_now, state->x_before);
    state->merit_before = merit;
    state->reach_before = reach;
    state->looked++;
    return HYBRID_PAUSED;
}

int hybrid_cold_run(void *bytes) {
    hybrid_cold *cold = bytes;
    hybrid_state *state = cold->state;
    hybrid_answer *answer = cold->answer;
    double began = hybrid_time(cold->form.functions);
    int status = HYBRID_PAUSED;
    state->count = 0;
    while (status == HYBRID_PAUSED && state->count < state->capacity) {
        status = advance(cold);
        if (hybrid_time(cold->form.functions) - began >= cold->attempt->pause) break;
    }
    answer->steps = cold->now.t;
    answer->elapsed = hybrid_time(cold->form.functions) - cold->began;
    return answer->status = status;
}
