/* One solve: phases one after another, and the best point of all.
 *
 *     opening:  SQP from given multipliers (then the interior-point method from them)
 *     then:     the interior-point method from x0, and the phases of next_phase.c
 *     at last:  the least multipliers on the active set of a solution with huge ones
 *
 * The solve ends with a solution, a proof, a limit, or if no phase is left. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "driver/phases.h"

/* The solver's own arrays; those of its phases follow them. */
static void place(const hybrid_plan *plan, hybrid_arena *arena, hybrid_solver *solver) {
    hybrid_answer *found = &solver->found;
    HYBRID_PLACE(arena, plan->n_x, &solver->start, &solver->x, &solver->work, &solver->lam_x,
                 &solver->near_x, &solver->near_lam_x, &found->x, &found->lam_x, &found->gradient,
                 &found->gradient0, &found->x_start);
    HYBRID_PLACE(arena, plan->n_g, &solver->lam_g, &solver->near_lam_g, &found->g, &found->lam_g);
    HYBRID_PLACE(arena, plan->nnz_J, &found->J, &found->J0);
    solver->none = hybrid_allocate(arena, hybrid_max_int(plan->n_x, plan->n_g));
}

/* Bytes of the solver; those of its phases follow them, aligned. */
#define OWN_BYTES (((long long)sizeof(hybrid_solver) + 15) / 16 * 16)

void hybrid_solve_memory(const hybrid_plan *plan, const hybrid_options *options, long long *bytes,
                         long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_solver solver;
    long long of_warm, ints_of_warm;
    place(plan, &arena, &solver);
    hybrid_sqp_memory(plan, &of_warm, &ints_of_warm);
    hybrid_interior_point_memory(plan, options->first.dense, bytes, doubles, ints);
    if (of_warm > *doubles) *doubles = of_warm;
    if (ints_of_warm > *ints) *ints = ints_of_warm;
    *doubles += arena.used_doubles + hybrid_state_doubles(plan);
    *bytes += OWN_BYTES;
}

/* Places the solver in its memory, with none of its numbers. */
static hybrid_solver *lay_out(const hybrid_plan *plan, const hybrid_options *options, char *bytes,
                              double *doubles, int *ints) {
    hybrid_arena arena = {doubles, 0, 0, 0};
    hybrid_solver *solver = (hybrid_solver *)(void *)bytes;
    memset(solver, 0, sizeof *solver);
    place(plan, &arena, solver);
    solver->plan = plan;
    solver->options = options;
    solver->memory = (hybrid_phase *)(void *)(bytes + OWN_BYTES);
    hybrid_state_attach(plan, doubles + arena.used_doubles, &solver->state);
    solver->doubles = doubles + arena.used_doubles + hybrid_state_doubles(plan);
    solver->ints = ints;
    hybrid_zero(hybrid_max_int(plan->n_x, plan->n_g), solver->none);
    return solver;
}

/* --- one phase -------------------------------------------------------------------------------- */

/* Adds the evaluations and factorizations of a part of the solve to the answer; make_phase counts
 * its steps. */
static void add_counts(hybrid_solver *solver) {
    const hybrid_answer *found = &solver->found;
    hybrid_answer *answer = solver->answer;
    answer->firsts += found->firsts;
    answer->values += found->values;
    answer->seconds += found->seconds;
    answer->factors += found->factors;
    answer->chosen += found->chosen;
    answer->doubts += found->doubts;
    answer->in_firsts += found->in_firsts;
    answer->in_values += found->in_values;
    answer->in_seconds += found->in_seconds;
}

static double seconds_left(const hybrid_solver *solver) {
    if (!(solver->given->max_time > 0.0)) return INFINITY;
    return solver->given->max_time - (hybrid_time(solver->functions) - solver->began);
}

/* Returns whether there are no steps, or no time, left. */
static int is_spent(const hybrid_solver *solver) {
    return solver->answer->steps >= solver->given->max_iter || !(seconds_left(solver) > 0.0) ||
           hybrid_is_ended(solver->functions);
}

/* SQP by active sets from solver->start. Returns a status. */
static int by_active_set(hybrid_solver *solver) {
    int status = hybrid_run_sqp(solver->plan, solver->functions, &solver->numbers, &solver->task,
                                solver->doubles, solver->ints, &solver->found);
    add_counts(solver);
    if (status == HYBRID_LARGE) status = HYBRID_SOLVED; /* least multipliers: after all phases */
    return status;
}

/* The interior-point method. Returns a status. */
static int by_interior_points(hybrid_solver *solver) {
    int status = hybrid_interior_point(
        solver->plan, solver->functions, &solver->numbers, &solver->phase.how, &solver->phase.setup,
        solver->memory, solver->doubles, solver->ints, &solver->state, &solver->found);
    add_counts(solver);
    solver->answer->undefined += solver->state.undefined;
    return status;
}

/* The numbers of the phase: the caller's, with its own start, multipliers, set and limits. */
static void prepare(hybrid_solver *solver) {
    hybrid_numbers *numbers = &solver->numbers;
    const int method = solver->phase.method;
    hybrid_observer *observer = solver->functions->observer;
    *numbers = *solver->given;
    if (observer) {
        observer->before = solver->answer->steps;
        observer->seconds = hybrid_time(solver->functions) - solver->began;
    }
    numbers->x0 = solver->start;
    numbers->lam_x0 = numbers->lam_g0 = solver->none;
    numbers->max_iter -= solver->answer->steps;
    solver->phase.setup.max_time = seconds_left(solver);
    if (solver->given->max_time > 0.0) /* zero would be no limit */
        numbers->max_time = fmax(solver->phase.setup.max_time, DBL_MIN);
    solver->task.least = method == HYBRID_LEAST_MULTIPLIERS;
    solver->task.curved = method == HYBRID_CURVATURE ? solver->phase.sign : 0;
    solver->task.perturbed = method == HYBRID_PERTURBED ? HYBRID_PERTURBED_STEPS : 0;
    if (solver->task.least || solver->task.curved) {
        numbers->lam_x0 = solver->answer->lam_x;
        numbers->lam_g0 = solver->answer->lam_g;
    }
    if (method == HYBRID_ACTIVE_SET || method == HYBRID_PERTURBED) {
        numbers->lam_x0 = solver->lam_x;
        numbers->lam_g0 = solver->lam_g;
    }
    if (!solver->opening || method != HYBRID_ACTIVE_SET) numbers->side_x = numbers->side_g = 0;
}

/* Returns whether the solve cannot go on at all. */
static int is_refused(int status) {
    return status == HYBRID_BAD_NUMBERS || status == HYBRID_OTHER_PATTERN;
}

/* Returns whether SQP has led to nothing, so that the interior-point method is due. */
static int is_in_vain(int status) {
    return status == HYBRID_NO_GUESS || status == HYBRID_UNDEFINED || status == HYBRID_NO_SET ||
           status == HYBRID_NOT_NEARER;
}

/* Keeps a feasible point of SQP that is better than the start as a candidate for the answer: a
 * limit may end the solve before the interior-point method finds one. */
static void keep_feasible(hybrid_solver *solver, int status, hybrid_outcome *outcome) {
    const hybrid_answer *found = &solver->found;
    if (status != HYBRID_NO_SET && status != HYBRID_NOT_NEARER) return;
    if (!(found->end.feasibility <= solver->given->feasibility)) return;
    if (!(hybrid_merit(solver->given, &found->end) < hybrid_merit(solver->given, &found->start)))
        return;
    solver->stepped = 0;
    hybrid_conclude_sqp(solver, status, outcome);
    hybrid_keep_best(solver, outcome);
}

/* Makes the phase that is due. Returns a status. */
static int make_phase(hybrid_solver *solver, hybrid_outcome *outcome) {
    const int method = solver->phase.method;
    const int by_sets = method != HYBRID_INTERIOR;
    int status = HYBRID_NO_GUESS, stepped = !by_sets;
    prepare(solver);
    solver->phase.setup.t0 = 0;
    if (by_sets) {
        status = by_active_set(solver);
        stepped = method == HYBRID_ACTIVE_SET && is_in_vain(status) &&
                  !hybrid_is_ended(solver->functions);
        solver->phase.setup.t0 = status == HYBRID_NO_GUESS ? 0 : solver->found.steps;
    }
    if (stepped) {
        if (by_sets) keep_feasible(solver, status, outcome);
        status = by_interior_points(solver);
    }
    solver->stepped = stepped;
    solver->answer->steps += solver->found.steps;
    if (is_refused(status)) return status;
    if (stepped) hybrid_conclude_phase(solver, status, outcome);
    else hybrid_conclude_sqp(solver, status, outcome);
    return status;
}

/* --- the solve -------------------------------------------------------------------------------- */

static int is_final(int stop) {
    return stop == HYBRID_STOP_CONVERGED || stop == HYBRID_STOP_UNBOUNDED ||
           stop == HYBRID_STOP_TIME_LIMIT || stop == HYBRID_STOP_STOPPED_BY_USER;
}

/* Prepares the opening: SQP from given multipliers or a given working set. Returns whether there
 * are any. */
static int prepare_opening(hybrid_solver *solver) {
    const hybrid_plan *plan = solver->plan;
    const hybrid_numbers *of = solver->given;
    if (!hybrid_has_guess(plan, of)) return 0;
    solver->phase.how = solver->options->near;
    solver->phase.method = HYBRID_ACTIVE_SET;
    solver->phase.at_x0 = 1;
    hybrid_copy(plan->n_x, of->lam_x0, solver->lam_x);
    hybrid_copy(plan->n_g, of->lam_g0, solver->lam_g);
    return 1;
}

/* Saves a phase on which the choice of the next one rests. */
static void remember(hybrid_solver *solver, const hybrid_outcome *outcome) {
    solver->before = solver->phases[solver->count] = solver->phase;
    solver->outcomes[solver->count++] = *outcome;
    solver->small_nu |= solver->memory->small_nu;
    solver->tried_perturbed = 0;
    hybrid_copy(solver->plan->n_x, solver->found.x, solver->x);
}

/* The phases until one is the last. Returns a status: HYBRID_SOLVED where all could be made. */
static int make_phases(hybrid_solver *solver, hybrid_outcome *outcome) {
    hybrid_copy(solver->plan->n_x, solver->given->x0, solver->start);
    solver->opening = prepare_opening(solver);
    if (!solver->opening) solver->phase = hybrid_first_phase(solver);
    for (;;) {
        const int status = make_phase(solver, outcome);
        solver->answer->phases++;
        if (is_refused(status)) return status;
        hybrid_keep_best(solver, outcome);
        if (is_final(outcome->stop) || solver->answer->steps >= solver->given->max_iter) return 0;
        if (hybrid_is_ended(solver->functions)) return 0;
        if (solver->opening) {
            solver->opening = 0;
            solver->phase = hybrid_first_phase(solver);
            continue;
        }
        if (solver->phase.method != HYBRID_PERTURBED) remember(solver, outcome);
        if (!hybrid_next_phase(solver)) return 0;
    }
}

/* Takes the least multipliers of the solution, if they are found: dependent rows and bounds share
 * one multiplier in any parts, however large. */
static void lessen_multipliers(hybrid_solver *solver) {
    hybrid_answer *answer = solver->answer;
    hybrid_outcome outcome;
    memset(&solver->phase, 0, sizeof solver->phase);
    solver->phase.method = HYBRID_LEAST_MULTIPLIERS;
    solver->phase.last = 1;
    hybrid_copy(solver->plan->n_x, answer->x, solver->start);
    make_phase(solver, &outcome);
    if (outcome.stop == HYBRID_STOP_CONVERGED && solver->found.largest_lam < answer->largest_lam)
        hybrid_take_found(solver, &outcome);
}

/* A phase from a lower point along negative curvature, by its own sign first. Returns whether that
 * has led to a lower KKT point, or to the proof that f has no bound: the answer then. */
static int follow_negative_curvature(hybrid_solver *solver, int sign) {
    hybrid_answer *answer = solver->answer;
    const double f = answer->end.f;
    hybrid_outcome outcome;
    memset(&solver->phase, 0, sizeof solver->phase);
    solver->phase.method = HYBRID_CURVATURE;
    solver->phase.sign = sign;
    hybrid_copy(solver->plan->n_x, answer->x, solver->start);
    solver->sloped = make_phase(solver, &outcome) == HYBRID_PAUSED;
    if (sign > 0) {
        answer->order = solver->found.order;
        answer->newton = solver->found.newton;
    }
    if (!solver->sloped) return 0;
    hybrid_copy(solver->plan->n_x, solver->found.x, solver->start);
    solver->phase = hybrid_first_phase(solver);
    solver->phase.how.patience = HYBRID_PATIENCE;
    solver->phase.last = 1;
    make_phase(solver, &outcome);
    answer->phases++;
    if ((outcome.stop != HYBRID_STOP_CONVERGED && outcome.stop != HYBRID_STOP_UNBOUNDED) ||
        !(solver->found.end.f < f - solver->given->tol * hybrid_max(fabs(f), 1.0)))
        return 0;
    answer->stop = outcome.stop;
    hybrid_take_found(solver, &outcome);
    return 1;
}

/* Leaves saddle points and maxima, one after another, as long as that leads to lower ones. The
 * inertia is computed if no factorization of the phase has shown it. It is also computed if the
 * gradient of f at the start hardly exceeded the tolerance, which many points meet then. Not if
 * given multipliers are those of a solution. */
static void leave_saddles(hybrid_solver *solver) {
    hybrid_answer *answer = solver->answer;
    const int warm = answer->method == HYBRID_ACTIVE_SET;
    const double slope = warm ? 0.0 : hybrid_norm_inf(solver->plan->n_x, answer->gradient0);
    const int faint = slope > 0.0 && slope * HYBRID_OUTCOME_FAINT_GRADIENT <= solver->given->tol;
    if (!solver->plan->nnz_W) { /* all is linear */
        answer->order = HYBRID_NECESSARY;
        if (faint)
            answer->newton = answer->end.complementarity / slope /
                             hybrid_max(hybrid_norm_inf(solver->plan->n_x, answer->x), 1.0);
        return;
    }
    if (solver->options->first.feasibility) return;
    if (solver->functions->secants || (warm && !answer->steps)) return;
    for (int left = 0; left < HYBRID_PHASES && (faint || !answer->order); left++) {
        for (int sign = 1; !follow_negative_curvature(solver, sign); sign = -1) {
            if (!faint) answer->newton = NAN;
            if (sign < 0 || !solver->sloped || is_spent(solver)) return;
        }
        if (answer->point != HYBRID_KKT_POINT) return; /* f has no bound */
    }
}

/* Completes the answer after the last phase, whose outcome is `last`. */
static void complete(hybrid_solver *solver, const hybrid_outcome *last) {
    hybrid_answer *answer = solver->answer;
    const hybrid_numbers *given = solver->given;
    if (answer->point == HYBRID_KKT_POINT) {
        if (answer->method == HYBRID_PERTURBED || is_spent(solver)) return;
        if (answer->huge) lessen_multipliers(solver);
        else leave_saddles(solver);
        return;
    }
    if (is_spent(solver) &&
        (last->stop == HYBRID_STOP_ITERATION_LIMIT || last->stop == HYBRID_STOP_TIME_LIMIT))
        answer->stop = last->stop;
    else if (answer->stop == HYBRID_STOP_ITERATION_LIMIT && answer->steps < given->max_iter)
        /* a limit of one phase alone */
        answer->stop = hybrid_corrected_stop(HYBRID_STOP_STALLED, answer->point);
}

/* The solver and the answer before the first phase. */
static void begin(hybrid_solver *solver) {
    const hybrid_plan *plan = solver->plan;
    const hybrid_numbers *of = solver->given;
    hybrid_answer *answer = solver->answer;
    hybrid_observer *observer = solver->functions->observer;
    solver->began = hybrid_time(solver->functions);
    if (observer) {
        observer->ended = observer->shown = 0;
        observer->last = -1;
        observer->asked = solver->began;
    }
    solver->rank.kind = HYBRID_RANK_NONE;
    hybrid_clear_counts(answer);
    answer->undefined = answer->phases = 0;
    for (int i = 0; i < plan->n_x; i++) {
        solver->free += of->lbx[i] < of->ubx[i];
        if (answer->x_undefined) answer->x_undefined[i] = NAN;
    }
    for (int i = 0; i < plan->n_g; i++)
        solver->equations += of->lbg[i] == of->ubg[i];
}

int hybrid_solve(const hybrid_plan *plan, const hybrid_functions *functions,
                 const hybrid_numbers *numbers, const hybrid_options *options, void *bytes,
                 double *doubles, int *ints, hybrid_answer *answer) {
    hybrid_solver *solver = lay_out(plan, options, bytes, doubles, ints);
    hybrid_outcome last;
    int status;
    solver->functions = functions;
    solver->given = numbers;
    solver->answer = answer;
    begin(solver);
    status = make_phases(solver, &last);
    if (!status) complete(solver, &last);
    answer->elapsed = hybrid_time(functions) - solver->began;
    answer->rows = functions->observer ? functions->observer->shown : 0;
    return answer->status = status ? status : answer->status;
}
