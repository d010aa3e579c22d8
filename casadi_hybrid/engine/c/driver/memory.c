/* The memory of an attempt, the same for the barrier method and its elastic problem, and what is
 * made before the first iterate. The same functions count it and hand it out. */
#include <math.h>
#include <string.h>

#include "feasibility/feasibility.h"
#include "driver/driver.h"

static int longer(int a, int b) { return a > b ? a : b; }

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
    hybrid_place_iterate(plan, arena, &cold->now);
    hybrid_place_iterate(plan, arena, &cold->next);
    hybrid_place_iterate(plan, arena, &cold->watched);
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
    cold->w_now = hybrid_take(arena, plan->n);
    cold->least = hybrid_take(arena, plan->n);
    cold->slopes = hybrid_take(arena, hybrid_violation_slope_doubles(plan));
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
    hybrid_place_iterate(plan, arena, &state->now);
    hybrid_place_iterate(plan, arena, &state->best);
    hybrid_place_iterate(plan, arena, &state->feasible);
    hybrid_place_iterate(plan, arena, &state->beside);
    state->last_step = hybrid_take(arena, plan->n_x);
    state->x_undefined = hybrid_take(arena, plan->n_x);
    state->infeasibility = hybrid_take(arena, plan->m);
    state->best_x = hybrid_take(arena, plan->n_x);
    state->best_gradient = hybrid_take(arena, plan->n_x);
    state->best_g = hybrid_take(arena, plan->n_g);
    state->best_J = hybrid_take(arena, plan->nnz_J);
}

long long hybrid_state_doubles(const hybrid_plan *plan) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_state state;
    memset(&state, 0, sizeof state);
    place_state(plan, &arena, &state);
    return arena.used_doubles;
}

void hybrid_state_attach(const hybrid_plan *plan, double *doubles, hybrid_state *state) {
    hybrid_arena arena = {0, 0, 0, 0};
    arena.doubles = doubles;
    place_state(plan, &arena, state);
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
    state->now.t = state->best.t = -1;
    state->feasible.t = state->beside.t = -1;
    state->ray.reach = state->ray.least = INFINITY;
    state->ray.beyond = 0;
    for (int i = 0; i < plan->n_x; i++) state->x_undefined[i] = NAN;
    state->stepped = state->rows_dependent = state->undefined = 0;
    state->cause = state->proved = 0;
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
    cold->outward_limit = HYBRID_BARRIER_LEAP;
    memset(cold->zero, 0, (size_t)longer(plan->n, plan->m) * sizeof(double));
    hybrid_clear(&cold->now);
    clear_state(plan, state);
    if (functions->secants && !attempt->near) functions->secants->count = 0;
    answer->in_firsts = answer->in_seconds = 0.0;
    answer->steps = answer->firsts = answer->seconds = 0;
    answer->factors = answer->chosen = answer->doubts = 0;
    cold->kernel.answer = cold->inner->kernel.answer = answer;
    cold->kernel.low_rank = cold->inner->kernel.low_rank = &cold->form.low_rank;
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

void hybrid_place_composite(const hybrid_plan *plan, hybrid_arena *arena, hybrid_composite *one) {
    long long n = plan->n, m = plan->m, fewer = n < m ? n : m;
    hybrid_spectrum *both[2];
    both[0] = &one->here;
    both[1] = &one->there;
    for (int k = 0; k < 2; k++) {
        both[k]->U = hybrid_take(arena, m * fewer);
        both[k]->V = hybrid_take(arena, n * n);
        both[k]->sigma = hybrid_take(arena, fewer);
    }
    one->rows = hybrid_take(arena, n * m);
    one->tau = hybrid_take(arena, n);
    one->order = hybrid_take_ints(arena, m);
    one->directions = hybrid_take(arena, n * n);
    one->reduced = hybrid_take(arena, n * n);
    one->values = hybrid_take(arena, n);
    one->slope = hybrid_take(arena, n);
    one->t = hybrid_take(arena, n);
    one->newton = hybrid_take(arena, n);
    one->step = hybrid_take(arena, n);
    one->back = hybrid_take(arena, n);
    one->force = hybrid_take(arena, n);
    one->left = hybrid_take(arena, n);
    one->units = hybrid_take(arena, n);
    one->shares = hybrid_take(arena, fewer);
    one->rising = hybrid_take(arena, 2 * fewer);
    one->damped = hybrid_take(arena, fewer);
    one->along = hybrid_take(arena, m);
    one->y = hybrid_take(arena, m);
}

void hybrid_composite_memory(const hybrid_plan *plan, int dense, long long *bytes,
                             long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_composite one;
    hybrid_cold_memory(plan, dense, bytes, doubles, ints);
    hybrid_place_composite(plan, &arena, &one);
    *bytes += (long long)sizeof one;
    *doubles += arena.used_doubles;
    *ints += arena.used_ints;
}
