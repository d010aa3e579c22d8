/* The memory of a phase, the same for the barrier method and its elastic problem, and what is
 * made before the first iterate. The same functions count it and hand it out. */
#include <math.h>
#include <string.h>

#include "feasibility/feasibility.h"
#include "driver/driver.h"

static void place_direction(const hybrid_plan *plan, hybrid_arena *arena, hybrid_direction *d) {
    HYBRID_PLACE(arena, plan->n, &d->dw, &d->dz_lower, &d->dz_upper);
    d->dy = hybrid_allocate(arena, plan->m);
}

/* Memory of the method but for K and the Hessian, which both phases share. */
static void place_phase(const hybrid_plan *plan, hybrid_arena *arena, hybrid_phase *phase) {
    phase->plan = phase->form.plan = plan;
    hybrid_place_form(plan, arena, &phase->form);
    for (int k = 0; k < HYBRID_TRIALS; k++) hybrid_place_point(plan, arena, &phase->trials[k].of);
    phase->at = &phase->trials[0];
    phase->trial = &phase->trials[1];
    phase->corrected = &phase->trials[2];
    hybrid_place_iterate(plan, arena, &phase->now);
    hybrid_place_iterate(plan, arena, &phase->next);
    place_direction(plan, arena, &phase->direction);
    place_direction(plan, arena, &phase->other);
    HYBRID_PLACE(arena, plan->n, &phase->pair.gradient, &phase->D, &phase->force, &phase->Aty);
    phase->work =
        hybrid_allocate(arena, hybrid_max_int(hybrid_max_int(plan->n, plan->n_x), plan->n_g));
    phase->residual = hybrid_allocate(arena, plan->m);
}

/* All memory of a phase: the method on the problem, and that on the elastic one. */
static void place_phases(const hybrid_plan *plan, int dense, hybrid_arena *arena,
                         hybrid_phase *phase) {
    hybrid_phase *inner = phase->elastic.inner;
    place_phase(plan, arena, phase);
    hybrid_place_kkt(plan, arena, &phase->kkt);
    phase->W = hybrid_allocate(arena, plan->nnz_W);
    phase->sizes = hybrid_allocate(arena, hybrid_max_int(plan->n_g, plan->n_x));
    HYBRID_PLACE(arena, plan->n_x, &phase->history.x_now, &phase->history.x_before);
    phase->sides = hybrid_allocate_ints(arena, plan->n);
    phase->dense = dense ? hybrid_allocate(arena, ((long long)plan->n + 1) * plan->m) : 0;
    hybrid_place_elastic(arena, phase);
    hybrid_place_search(plan, arena, &phase->search);
    phase->history.w_now = hybrid_allocate(arena, plan->n);
    place_phase(&phase->elastic.plan, arena, inner);
    inner->kkt = phase->kkt;
    inner->W = phase->W;
    inner->elastic.outer = phase;
}

void hybrid_interior_point_memory(const hybrid_plan *plan, int dense, long long *bytes,
                                  long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_phase both[2] = {{.elastic.inner = &both[1]}};
    place_phases(plan, dense, &arena, &both[0]);
    *bytes = (long long)sizeof both;
    *doubles = arena.used_doubles;
    *ints = arena.used_ints;
}

static void place_state(const hybrid_plan *plan, hybrid_arena *arena, hybrid_state *state) {
    hybrid_place_iterate(plan, arena, &state->now);
    hybrid_place_iterate(plan, arena, &state->best);
    hybrid_place_iterate(plan, arena, &state->feasible);
    hybrid_place_iterate(plan, arena, &state->nearby);
    HYBRID_PLACE(arena, plan->n_x, &state->last_step, &state->x_undefined);
    state->infeasibility = hybrid_allocate(arena, plan->m);
}

long long hybrid_state_doubles(const hybrid_plan *plan) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_state state;
    place_state(plan, &arena, &state);
    return arena.used_doubles;
}

void hybrid_state_attach(const hybrid_plan *plan, double *doubles, hybrid_state *state) {
    hybrid_arena arena = {doubles, 0, 0, 0};
    place_state(plan, &arena, state);
}

static void clear_state(const hybrid_plan *plan, hybrid_state *state) {
    state->now.t = state->best.t = state->feasible.t = state->nearby.t = -1;
    state->ray = (hybrid_ray){INFINITY, INFINITY, 0};
    for (int i = 0; i < plan->n_x; i++) state->x_undefined[i] = NAN;
    state->stepped = state->rows_dependent = state->undefined = state->cause = state->proved = 0;
}

int hybrid_begin_phase(const hybrid_plan *plan, const hybrid_functions *functions,
                       const hybrid_numbers *numbers, const hybrid_phase_options *options,
                       const hybrid_phase_setup *setup, void *bytes, hybrid_arena *arena,
                       hybrid_state *state, hybrid_answer *answer) {
    hybrid_phase *phase = bytes;
    hybrid_point *start;
    int status;
    memset(phase, 0, 2 * sizeof *phase);
    phase->elastic.inner = phase + 1;
    place_phases(plan, options->dense, arena, phase);
    phase->form.functions = functions;
    phase->form.numbers = phase->numbers = numbers;
    phase->form.answer = phase->answer = answer;
    phase->form.relaxation = setup->relaxation;
    phase->form.unscaled = setup->unscaled;
    phase->form.placing = 1;
    phase->options = options;
    phase->setup = setup;
    phase->state = state;
    phase->history.began = hybrid_time(functions);
    phase->history.best_merit = INFINITY;
    phase->history.outward_limit = 1;
    hybrid_clear_iterate(&phase->now);
    clear_state(plan, state);
    if (functions->secants && !options->near) functions->secants->count = 0;
    hybrid_clear_counts(answer);
    phase->kkt.answer = phase->elastic.inner->kkt.answer = answer;
    phase->kkt.at_once = phase->elastic.inner->kkt.at_once = functions->at_once;
    phase->kkt.low_rank = phase->elastic.inner->kkt.low_rank = &phase->form.low_rank;
    start = &phase->trial->of;
    status = hybrid_make_form(&phase->form, start);
    if (status) return status;
    hybrid_find_bounds(&phase->form);
    hybrid_copy(plan->n_x, start->raw_gradient, answer->gradient0);
    hybrid_copy(plan->nnz_J, start->raw_J, answer->J0);
    if (answer->x_start) hybrid_copy(plan->n_x, start->x, answer->x_start);
    hybrid_copy(plan->n, start->w, phase->work);
    return HYBRID_SOLVED;
}
