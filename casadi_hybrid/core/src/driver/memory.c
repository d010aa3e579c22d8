/* The memory of a run, the same for the barrier method and its elastic problem, and what is
 * made before the first iterate. The same functions count it and hand it out. */
#include <math.h>
#include <string.h>

#include "feasibility/feasibility.h"
#include "driver/driver.h"

static void place_direction(const hybrid_plan *plan, hybrid_arena *arena, hybrid_direction *d) {
    HYBRID_PLACE(arena, plan->n, &d->dw, &d->dz_lower, &d->dz_upper);
    d->dy = hybrid_allocate(arena, plan->m);
}

/* Memory of the method but for K and the Hessian, which both runs share. */
static void place_run(const hybrid_plan *plan, hybrid_arena *arena, hybrid_run *run) {
    run->plan = run->form.plan = plan;
    hybrid_place_form(plan, arena, &run->form);
    for (int k = 0; k < HYBRID_TRIALS; k++) hybrid_place_point(plan, arena, &run->trials[k].of);
    run->at = &run->trials[0];
    run->trial = &run->trials[1];
    run->corrected = &run->trials[2];
    hybrid_place_iterate(plan, arena, &run->now);
    hybrid_place_iterate(plan, arena, &run->next);
    place_direction(plan, arena, &run->direction);
    place_direction(plan, arena, &run->other);
    HYBRID_PLACE(arena, plan->n, &run->pair.gradient, &run->D, &run->force, &run->Aty);
    run->work =
        hybrid_allocate(arena, hybrid_max_int(hybrid_max_int(plan->n, plan->n_x), plan->n_g));
    run->residual = hybrid_allocate(arena, plan->m);
}

/* All memory of a run: the method on the problem, and that on the elastic one. */
static void place_runs(const hybrid_plan *plan, int dense, hybrid_arena *arena, hybrid_run *run) {
    hybrid_run *inner = run->elastic.inner;
    place_run(plan, arena, run);
    hybrid_place_kkt(plan, arena, &run->kkt);
    run->W = hybrid_allocate(arena, plan->nnz_W);
    run->sizes = hybrid_allocate(arena, hybrid_max_int(plan->n_g, plan->n_x));
    HYBRID_PLACE(arena, plan->n_x, &run->history.x_now, &run->history.x_before);
    run->sides = hybrid_allocate_ints(arena, plan->n);
    run->dense = dense ? hybrid_allocate(arena, ((long long)plan->n + 1) * plan->m) : 0;
    hybrid_place_elastic(arena, run);
    hybrid_place_search(plan, arena, &run->search);
    run->history.w_now = hybrid_allocate(arena, plan->n);
    place_run(&run->elastic.plan, arena, inner);
    inner->kkt = run->kkt;
    inner->W = run->W;
    inner->elastic.outer = run;
}

void hybrid_interior_point_memory(const hybrid_plan *plan, int dense, long long *bytes,
                                  long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_run both[2] = {{.elastic.inner = &both[1]}};
    place_runs(plan, dense, &arena, &both[0]);
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

int hybrid_begin_run(const hybrid_plan *plan, const hybrid_functions *functions,
                     const hybrid_numbers *numbers, const hybrid_run_options *options,
                     const hybrid_run_setup *setup, void *bytes, hybrid_arena *arena,
                     hybrid_state *state, hybrid_answer *answer) {
    hybrid_run *run = bytes;
    hybrid_point *start;
    int status;
    memset(run, 0, 2 * sizeof *run);
    run->elastic.inner = run + 1;
    place_runs(plan, options->dense, arena, run);
    run->form.functions = functions;
    run->form.numbers = run->numbers = numbers;
    run->form.answer = run->answer = answer;
    run->form.relaxation = setup->relaxation;
    run->form.unscaled = setup->unscaled;
    run->form.placing = 1;
    run->options = options;
    run->setup = setup;
    run->state = state;
    run->history.began = hybrid_time(functions);
    run->history.best_merit = INFINITY;
    run->history.outward_limit = 1;
    hybrid_clear_iterate(&run->now);
    clear_state(plan, state);
    if (functions->secants && !options->near) functions->secants->count = 0;
    hybrid_clear_counts(answer);
    run->kkt.answer = run->elastic.inner->kkt.answer = answer;
    run->kkt.at_once = run->elastic.inner->kkt.at_once = functions->at_once;
    run->kkt.low_rank = run->elastic.inner->kkt.low_rank = &run->form.low_rank;
    start = &run->trial->of;
    status = hybrid_make_form(&run->form, start);
    if (status) return status;
    hybrid_find_bounds(&run->form);
    hybrid_copy(plan->n_x, start->raw_gradient, answer->gradient0);
    hybrid_copy(plan->nnz_J, start->raw_J, answer->J0);
    if (answer->x_start) hybrid_copy(plan->n_x, start->x, answer->x_start);
    hybrid_copy(plan->n, start->w, run->work);
    return HYBRID_SOLVED;
}
