/* The start of an attempt by the barrier method: its memory, and the first iterate. */
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

/* What the mode works on; `inner` shares the kernel and the Hessian with the problem's. */
static void place(const hybrid_plan *plan, hybrid_arena *arena, hybrid_cold *cold) {
    cold->plan = cold->form.plan = plan;
    hybrid_place_form(plan, arena, &cold->form);
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
    cold->D = hybrid_take(arena, plan->n);
    cold->force = hybrid_take(arena, plan->n);
    cold->pull = hybrid_take(arena, plan->n);
    cold->work = hybrid_take(arena, longer(longer(plan->n, plan->n_x), plan->n_g));
    cold->residual = hybrid_take(arena, plan->m);
}

/* All memory of an attempt: the mode on the problem, and that on the elastic one. */
static void place_both(const hybrid_plan *plan, int dense, hybrid_arena *arena,
                       hybrid_cold *cold) {
    hybrid_cold *inner = cold->inner;
    place(plan, arena, cold);
    hybrid_place_kernel(plan, arena, &cold->kernel);
    cold->W = hybrid_take(arena, plan->nnz_W);
    cold->zero = hybrid_take(arena, longer(plan->n, plan->m));
    cold->sizes = hybrid_take(arena, longer(plan->n_g, plan->n_x));
    cold->x_now = hybrid_take(arena, plan->n_x);
    cold->x_before = hybrid_take(arena, plan->n_x);
    cold->guess = hybrid_take_ints(arena, plan->n);
    cold->sides = hybrid_take_ints(arena, plan->n);
    cold->dense = dense ? hybrid_take(arena, ((long long)plan->n + 1) * plan->m) : 0;
    hybrid_place_elastic(arena, cold);
    hybrid_place_root(plan, arena, &cold->root);
    cold->root_units = hybrid_take(arena, plan->n);
    cold->root_slope = hybrid_take(arena, plan->n);
    cold->root_D = hybrid_take(arena, plan->n);
    place(&cold->lifted, arena, inner);
    inner->kernel = cold->kernel;
    inner->W = cold->W;
    inner->outer = cold;
}

void hybrid_cold_memory(const hybrid_plan *plan, int dense, long long *bytes,
                        long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_cold both[2];
    memset(both, 0, sizeof both);
    both[0].inner = &both[1];
    place_both(plan, dense, &arena, &both[0]);
    *bytes = (long long)sizeof both;
    *doubles = arena.used_doubles;
    *ints = arena.used_ints;
}

static void place_state(const hybrid_plan *plan, hybrid_arena *arena, hybrid_state *state) {
    place_iterate(plan, arena, &state->now);
    place_iterate(plan, arena, &state->watched);
    place_iterate(plan, arena, &state->best);
    place_iterate(plan, arena, &state->feasible);
    place_iterate(plan, arena, &state->beside);
    hybrid_place_root(plan, arena, &state->root);
    state->x_before = hybrid_take(arena, plan->n_x);
    state->last_step = hybrid_take(arena, plan->n_x);
    state->x_undefined = hybrid_take(arena, plan->n_x);
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

void hybrid_set(int count, const double *from, double *to) {
    if (count) memcpy(to, from, (size_t)count * sizeof(double));
}

void hybrid_copy(const hybrid_plan *plan, const hybrid_iterate *from, const double *w,
                 hybrid_iterate *to) {
    hybrid_copy_numbers(from, to);
    if (w) hybrid_set(plan->n, w, to->w);
    hybrid_set(plan->m, from->y, to->y);
    hybrid_set(plan->n, from->z_lower, to->z_lower);
    hybrid_set(plan->n, from->z_upper, to->z_upper);
    hybrid_set(2 * from->entries, from->filter, to->filter);
}

/* Inside the bounds; less far where a function is not defined there. */
static int first_point(hybrid_cold *cold) {
    static const double shares[] = HYBRID_BARRIER_SHARES;
    for (int k = 0; k < HYBRID_BARRIER_SHARES_COUNT; k++) {
        hybrid_set(cold->plan->n, cold->work, cold->at->of.w);
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
    hybrid_multipliers_in(form, it->y, it->z_lower, it->z_upper, 0);
    hybrid_measure(form, at, it, cold->work, &error);
    if (hybrid_error_at(&error, 0.0) > HYBRID_BARRIER_FAR_OFF &&
        it->nu < HYBRID_BARRIER_NU_FAR_OFF)
        it->nu = HYBRID_BARRIER_NU_FAR_OFF;
    hybrid_central(form, at, it);
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
    hybrid_least_squares(cold, &cold->at->of, it->z_lower, it->z_upper, it->y);
    if (attempt->root && plan->m) hybrid_begin_root(cold);
    return HYBRID_SOLVED;
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
    state->seen = INFINITY;
    state->looked = state->count = state->stepped = 0;
    state->rows_dependent = state->undefined = state->root.begun = 0;
    memset(state->guess, 0, (size_t)plan->n * sizeof(int));
}

void hybrid_clear(hybrid_iterate *it) {
    hybrid_iterate none;
    memset(&none, 0, sizeof none);
    hybrid_copy_numbers(&none, it);
}

int hybrid_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                 const hybrid_numbers *numbers, const hybrid_attempt *attempt, int even,
                 void *bytes, hybrid_arena *arena, hybrid_state *state, hybrid_answer *answer) {
    hybrid_cold *cold = bytes;
    hybrid_point *start;
    int status;
    memset(cold, 0, 2 * sizeof *cold);
    cold->inner = cold + 1;
    place_both(plan, attempt->dense, arena, cold);
    cold->form.functions = functions;
    cold->form.numbers = cold->numbers = numbers;
    cold->form.answer = cold->answer = answer;
    cold->form.relaxation = attempt->relaxation;
    cold->form.unscaled = attempt->unscaled;
    cold->form.even = even;
    cold->form.placing = 1;
    cold->attempt = attempt;
    cold->state = state;
    cold->began = hybrid_time(functions);
    cold->best_merit = INFINITY;
    cold->reach_before = INFINITY;
    memset(cold->zero, 0, (size_t)longer(plan->n, plan->m) * sizeof(double));
    hybrid_clear(&cold->now);
    clear_state(plan, state);
    if (functions->secants && !attempt->near) functions->secants->count = 0;
    answer->in_firsts = answer->in_seconds = 0.0;
    answer->steps = answer->firsts = answer->seconds = 0;
    answer->factors = answer->chosen = answer->outside = answer->doubts = 0;
    hybrid_attend(&cold->form, &cold->kernel);
    hybrid_attend(&cold->form, &cold->inner->kernel);
    start = &cold->trial->of;
    status = hybrid_make_form(&cold->form, start);
    if (status) return status;
    hybrid_look_at_bounds(&cold->form);
    hybrid_set(plan->n_x, start->raw_gradient, answer->gradient0);
    hybrid_set(plan->nnz_J, start->raw_J, answer->J0);
    hybrid_set(plan->n, start->w, cold->work);
    cold->first_size = size_of_start(cold, start);
    return HYBRID_SOLVED;
}

int hybrid_cold_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                      const hybrid_numbers *numbers, const hybrid_attempt *attempt, void *bytes,
                      double *doubles, int *ints, hybrid_state *state, hybrid_answer *answer) {
    hybrid_arena arena = {0, 0, 0, 0};
    int status;
    arena.doubles = doubles;
    arena.ints = ints;
    status = hybrid_begin(plan, functions, numbers, attempt, 0, bytes, &arena, state, answer);
    if (!status) status = first_iterate(bytes);
    return answer->status = status ? status : HYBRID_PAUSED;
}
