/* Attempts by composite steps where there are equations alone: as barrier/composite.py, which has
 * the form, and iterations/lookahead.py and safeguards.py, which say which step is due.
 *
 * What leaves a stationary violation, or a saddle in one of several directions, is the careful
 * path's. */
#include "composite.h"

#include <math.h>
#include <string.h>

/* Whether these singular values are found sooner than by LAPACK. */
static int is_small(const hybrid_plan *plan) {
    return plan->n + plan->m <= HYBRID_COMPOSITE_FEW;
}

static void place(const hybrid_plan *plan, hybrid_arena *arena, hybrid_composite *one) {
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

void hybrid_combine(int n, int count, const double *columns, const double *t, double *out) {
    for (int i = 0; i < n; i++) out[i] = 0.0;
    for (int j = 0; j < count; j++, columns += n)
        for (int i = 0; i < n; i++) out[i] += t[j] * columns[i];
}

void hybrid_decompose_A(hybrid_cold *cold, const hybrid_point *at, hybrid_spectrum *found) {
    hybrid_composite *one = hybrid_composite_of(cold);
    const hybrid_plan *plan = cold->plan;
    memset(one->rows, 0, (size_t)plan->n * (size_t)plan->m * sizeof(double));
    for (int k = 0; k < plan->nnz_A; k++)
        one->rows[(long long)plan->A_rows[k] * plan->n + plan->A_cols[k]] += at->A[k];
    hybrid_singular(plan->m, plan->n, one->rows, HYBRID_LOOKAHEAD_RANK_TOLERANCE, one->tau,
                    one->order, found);
}

void hybrid_fit(hybrid_cold *cold, const hybrid_point *at, const hybrid_spectrum *A, double *y) {
    hybrid_composite *one = hybrid_composite_of(cold);
    const hybrid_plan *plan = cold->plan;
    for (int j = 0; j < A->rank; j++)
        one->shares[j] =
            -(hybrid_dot(plan->n, A->V + (long long)j * plan->n, at->gradient) / A->sigma[j]);
    hybrid_combine(plan->m, A->rank, A->U, one->shares, y);
}

void hybrid_orient(int n, double *direction) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += direction[i] / (i + HYBRID_TRUST_REGION_TURN);
    for (int i = 0; i < n && sum < 0.0; i++) direction[i] = -direction[i];
}

void hybrid_go_to(hybrid_cold *cold, hybrid_spot *spot, int known) {
    hybrid_composite *one = hybrid_composite_of(cold);
    hybrid_spectrum kept = one->here;
    if (!known) hybrid_decompose_A(cold, &spot->of, &one->there);
    one->here = one->there;
    one->there = kept;
    one->modelled = 0;
    if (spot == cold->trial) cold->trial = cold->at;
    else cold->bent = cold->at;
    cold->at = spot;
    if (one->of.goal < 0.0) hybrid_fit(cold, &spot->of, &one->here, cold->now.y);
    else memset(cold->now.y, 0, (size_t)cold->plan->m * sizeof(double)); /* f waits */
}

/* --- which step is due ------------------------------------------------------------------------ */

/* Turns to the violation alone until |c| is down to the goal, or goes on with it. */
static void begin_reducing(hybrid_guards *of, double goal) {
    if (of->goal < 0.0) of->mark = INFINITY;
    of->goal = goal;
}

/* Raises the penalty, then turns to the violation alone, where |c| does not halve in a few steps. */
static void watch(hybrid_cold *cold, double size) {
    hybrid_composite *one = hybrid_composite_of(cold);
    hybrid_guards *of = &one->of;
    const double least = HYBRID_LOOKAHEAD_TOL_FEASIBILITY;
    if (size <= (of->mark > least ? of->mark : least)) {
        of->patience = HYBRID_SAFEGUARDS_PATIENCE;
        of->mark = 0.5 * size;
        of->raised = 0;
    } else if (of->promised > HYBRID_SAFEGUARDS_PROMISING) {
        return;
    } else if (of->patience > 0) {
        of->patience--;
    } else if (!of->raised && one->here.rank < cold->plan->n) {
        of->penalty *= HYBRID_SAFEGUARDS_RAISE;
        of->patience = HYBRID_SAFEGUARDS_PATIENCE;
        of->raised = 1;
    } else {
        begin_reducing(of, HYBRID_SAFEGUARDS_DEEP * size);
    }
}

/* Begins at cold->at. */
static void begin(hybrid_cold *cold) {
    hybrid_composite *one = hybrid_composite_of(cold);
    double size = 0.5 * hybrid_norm(cold->plan->n, cold->at->of.w);
    one->of.radius = size > 1.0 ? size : 1.0;
    one->of.penalty = 1.0;
    one->of.promised = 0.0;
    one->of.goal = one->of.reach = -1.0;
    one->of.patience = HYBRID_SAFEGUARDS_PATIENCE;
    one->of.mark = one->of.error = INFINITY;
    one->of.raised = one->of.saddles = one->modelled = 0;
    hybrid_decompose_A(cold, &cold->at->of, &one->here);
    hybrid_fit(cold, &cold->at->of, &one->here, cold->now.y);
}

/* Takes a step of what is due. Returns a status. */
static int step(hybrid_cold *cold) {
    const hybrid_point *at = &cold->at->of;
    hybrid_guards *of = &hybrid_composite_of(cold)->of;
    const double size = hybrid_norm(cold->plan->m, at->c);
    const double least = HYBRID_LOOKAHEAD_TOL_FEASIBILITY;
    const int violated = hybrid_largest(cold->plan->m, at->c) > least;
    int status;
    if (hybrid_extrapolate(cold)) {
        begin(cold);
        return HYBRID_SOLVED;
    }
    status = hybrid_reduced_model(cold);
    if (status) return status;
    if (violated && hybrid_is_stationary(cold, at, HYBRID_LOOKAHEAD_STATIONARY)) {
        begin_reducing(of, 0.5 * size);
    } else if (of->goal < 0.0) {
        watch(cold, size);
    } else if (size <= of->goal || !violated) {
        of->goal = of->reach = -1.0;
        of->mark = INFINITY;
        of->raised = 0;
    }
    if (of->goal < 0.0) {
        status = hybrid_look_ahead(cold);
        if (status != HYBRID_NOT_NEARER || !(size > least)) return status;
        begin_reducing(of, 0.5 * size);
    }
    return hybrid_reduce(cold);
}

/* --- an attempt ------------------------------------------------------------------------------- */

static int advance(hybrid_cold *cold) {
    hybrid_sight sight;
    int status;
    cold->state->guards = hybrid_composite_of(cold)->of;
    status = hybrid_see(cold, &sight);
    if (!status && sight.merit <= 1.0) sight.leaves = !hybrid_at_rest(cold, &status);
    if (status) return hybrid_hand_over(cold, status);
    status = hybrid_record(cold, &sight);
    if (status != HYBRID_PAUSED) return status;
    status = step(cold);
    if (!status) cold->now.t++;
    return hybrid_went(cold, &sight, status == HYBRID_NOT_NEARER ? HYBRID_ELSEWHERE : status);
}

int hybrid_composite_run(void *bytes) {
    hybrid_cold *cold = bytes;
    int status = HYBRID_PAUSED;
    double began = hybrid_time(cold->form.functions);
    cold->state->count = 0;
    while (status == HYBRID_PAUSED && cold->state->count < cold->state->capacity) {
        status = advance(cold);
        if (hybrid_time(cold->form.functions) - began >= cold->attempt->pause) break;
    }
    return hybrid_ended(cold, status);
}

void hybrid_composite_memory(const hybrid_plan *plan, int dense, long long *bytes,
                             long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_composite one;
    hybrid_cold_memory(plan, dense, bytes, doubles, ints);
    if (is_small(plan)) place(plan, &arena, &one);
    *bytes += (long long)sizeof one;
    *doubles += arena.used_doubles;
    *ints += arena.used_ints;
}

int hybrid_composite_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                           const hybrid_numbers *numbers, const hybrid_attempt *attempt,
                           void *bytes, double *doubles, int *ints, hybrid_state *state,
                           hybrid_answer *answer) {
    hybrid_cold *cold = bytes;
    hybrid_composite *one = hybrid_composite_of(cold);
    hybrid_arena arena = {0, 0, 0, 0};
    int status;
    if (!is_small(plan)) return answer->status = HYBRID_ELSEWHERE;
    arena.doubles = doubles;
    arena.ints = ints;
    status = hybrid_begin(plan, functions, numbers, attempt, 1, bytes, &arena, state, answer);
    memset(one, 0, sizeof *one);
    place(plan, &arena, one);
    if (status) return answer->status = status;
    hybrid_set(plan->n, cold->work, cold->at->of.w);
    if (hybrid_visit_problem(cold, cold->at)) return answer->status = HYBRID_UNDEFINED;
    cold->now.theta_start = cold->at->theta;
    cold->now.t = attempt->t0;
    begin(cold);
    memset(cold->now.z_lower, 0, (size_t)plan->n * sizeof(double));
    memset(cold->now.z_upper, 0, (size_t)plan->n * sizeof(double));
    return answer->status = HYBRID_PAUSED;
}
