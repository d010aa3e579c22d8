/* The outcome of a phase: its best point, the status of that, and whether it is the best of all
 * phases.
 *
 * A phase may be cut by a limit of the whole solve. Then its point is the last iterate, unless an
 * earlier one is a solution, or is feasible while the last one is not. The filter takes no step to
 * a point that is worse than an earlier one in theta and in phi. But residuals rise on the way to a
 * solution, and are least at an x0 where f is stationary.
 *
 * The point of any other phase is the iterate with the least residuals, each in units of its
 * tolerance. A feasible iterate contradicts a proof of infeasibility: then the feasible one with
 * the least f is taken.
 *
 * A feasible point is degenerate (Fritz John) if |lam|_2 > 1e3 and |J'lam_g + lam_x|_2 <= 1e-2
 * |lam|_2. */
#include <math.h>
#include <string.h>

#include "driver/phases.h"
#include "feasibility/feasibility.h"

static int stop_of(int status) {
    switch (status) {
    case HYBRID_SOLVED: return HYBRID_STOP_CONVERGED;
    case HYBRID_LARGE: return HYBRID_STOP_CONVERGED;
    case HYBRID_LIMIT: return HYBRID_STOP_ITERATION_LIMIT;
    case HYBRID_LATE: return HYBRID_STOP_TIME_LIMIT;
    case HYBRID_UNDEFINED: return HYBRID_STOP_EVALUATION_ERROR;
    case HYBRID_UNBOUNDED: return HYBRID_STOP_UNBOUNDED;
    case HYBRID_DIVERGED: return HYBRID_STOP_DIVERGED;
    case HYBRID_INFEASIBLE: return HYBRID_STOP_LOCALLY_INFEASIBLE;
    case HYBRID_STOPPED: return HYBRID_STOP_STOPPED_BY_USER;
    default: return HYBRID_STOP_STALLED;
    }
}

/* |how far g is outside its bounds|_2. */
static double violation_of(const hybrid_solver *solver) {
    const hybrid_numbers *of = solver->given;
    double sum = 0.0;
    for (int i = 0; i < solver->plan->n_g; i++) {
        double over = hybrid_max_violation(1, solver->found.g + i, of->lbg + i, of->ubg + i);
        sum += over * over;
    }
    return sqrt(sum);
}

/* Returns whether large multipliers all but cancel, as where constraints are degenerate. */
static int is_degenerate(const hybrid_solver *solver) {
    const hybrid_plan *plan = solver->plan;
    const hybrid_answer *found = &solver->found;
    double *Aty = solver->work, size;
    hybrid_copy(plan->n_x, found->lam_x, Aty);
    for (int k = 0; k < plan->nnz_J; k++)
        Aty[plan->J_cols[k]] += found->J[k] * found->lam_g[plan->J_rows[k]];
    size = hypot(hybrid_norm2(plan->n_x, found->lam_x), hybrid_norm2(plan->n_g, found->lam_g));
    return size > HYBRID_OUTCOME_DEGENERATE_LAM &&
           hybrid_norm2(plan->n_x, Aty) <= HYBRID_OUTCOME_DEGENERATE_SUM * size;
}

static int point_of(const hybrid_solver *solver) {
    const hybrid_numbers *of = solver->given;
    const hybrid_residuals *r = &solver->found.end;
    if (hybrid_merit(of, r) <= 1.0) return HYBRID_KKT_POINT;
    if (r->feasibility <= of->feasibility)
        return is_degenerate(solver) ? HYBRID_FRITZ_JOHN_POINT : HYBRID_FEASIBLE_NOT_STATIONARY;
    if (solver->found.certificate <= HYBRID_CERTIFICATE_STATIONARY)
        return HYBRID_INFEASIBLE_STATIONARY;
    return r->stationarity <= of->stationarity && r->complementarity <= of->stationarity
               ? HYBRID_STATIONARY_NOT_FEASIBLE
               : HYBRID_NOT_CONVERGED;
}

int hybrid_corrected_stop(int stop, int point) {
    if (stop == HYBRID_STOP_LOCALLY_INFEASIBLE && point != HYBRID_INFEASIBLE_STATIONARY)
        return HYBRID_STOP_STALLED;
    if (stop != HYBRID_STOP_STALLED) return stop;
    if (point == HYBRID_KKT_POINT) return HYBRID_STOP_CONVERGED; /* it need not improve */
    return point == HYBRID_FRITZ_JOHN_POINT ? HYBRID_STOP_NO_MULTIPLIERS : stop;
}

/* A start for perturbed equations: the iterate next to the point whose multipliers fit. Returns
 * whether there is one. */
static int find_near(hybrid_solver *solver) {
    hybrid_phase *phase = solver->memory;
    const hybrid_plan *plan = solver->plan;
    const hybrid_iterate *near = &solver->state.nearby;
    if (near->t < 0) return 0;
    hybrid_copy(plan->n, near->w, phase->corrected->of.w);
    if (hybrid_evaluate_problem(phase, phase->corrected)) return 0;
    hybrid_copy(plan->n_x, phase->corrected->of.x, solver->near_x);
    hybrid_multipliers_out(&phase->form, &phase->corrected->of, near->y, near->z_lower,
                           near->z_upper, solver->near_lam_x, solver->near_lam_g);
    return 1;
}

/* The outcome where a function is not defined at the first iterate: nothing but its x. */
static void nothing_known(hybrid_solver *solver, hybrid_outcome *outcome) {
    const hybrid_plan *plan = solver->plan;
    hybrid_answer *found = &solver->found;
    hybrid_clamp_vector(plan->n_x, solver->start, solver->given->lbx, solver->given->ubx, found->x);
    hybrid_copy(plan->n_x, solver->none, found->lam_x);
    hybrid_copy(plan->n_g, solver->none, found->lam_g);
    for (int i = 0; i < plan->n_g; i++) found->g[i] = NAN;
    found->end = (hybrid_residuals){NAN, INFINITY, INFINITY, INFINITY};
    outcome->stop = HYBRID_STOP_EVALUATION_ERROR;
    outcome->point = HYBRID_UNDEFINED_POINT;
    outcome->violation = INFINITY;
}

/* The functions at the best iterate, as they were saved. Returns 1 where they are not defined. */
static int recall_best(hybrid_solver *solver, hybrid_trial *trial) {
    const hybrid_plan *plan = solver->plan;
    const hybrid_answer *found = &solver->found;
    trial->of.raw_f = solver->state.of_best.f;
    hybrid_copy(plan->n_x, found->gradient, trial->of.raw_gradient);
    hybrid_copy(plan->n_g, found->g, trial->of.raw_g);
    hybrid_copy(plan->nnz_J, found->J, trial->of.raw_J);
    return hybrid_evaluate_known(solver->memory, trial, found->x);
}

/* Copies the last iterate of a phase that a limit has ended, by steps or by SQP alone, to
 * answer->last. A solve that goes on from there takes the next step. */
static void keep_last(hybrid_solver *solver, int status, int by_steps) {
    const hybrid_plan *plan = solver->plan;
    const hybrid_phase *phase = solver->memory;
    const hybrid_answer *found = &solver->found;
    double *x = solver->answer->last, *lam_x, *lam_g;
    if (!x || (status != HYBRID_LIMIT && status != HYBRID_LATE && status != HYBRID_STOPPED)) return;
    lam_x = x + plan->n_x;
    lam_g = lam_x + plan->n_x;
    hybrid_copy(plan->n_x, by_steps ? phase->at->of.x : found->x, x);
    if (by_steps) {
        hybrid_multipliers_out(&phase->form, &phase->at->of, phase->now.y, phase->now.z_lower,
                               phase->now.z_upper, lam_x, lam_g);
    } else {
        hybrid_copy(plan->n_x, found->lam_x, lam_x);
        hybrid_copy(plan->n_g, found->lam_g, lam_g);
    }
}

void hybrid_conclude_sqp(hybrid_solver *solver, int status, hybrid_outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    outcome->stop = stop_of(status);
    outcome->steps = solver->found.steps;
    solver->found.certificate = NAN;
    if (isnan(solver->found.start.f)) {
        nothing_known(solver, outcome);
        return;
    }
    keep_last(solver, status, 0);
    outcome->point = status == HYBRID_SOLVED ? HYBRID_KKT_POINT : point_of(solver);
    outcome->stop = hybrid_corrected_stop(outcome->stop, outcome->point);
    outcome->violation = violation_of(solver);
}

/* Returns whether the start of a phase from given multipliers is better than its best iterate. It
 * has smaller residuals or, in a phase that was cut, is feasible and no iterate is. Then its
 * multipliers are in *first, and its w in the trial. A phase that goes on from an unfinished point
 * has it already. */
static int is_start_best(hybrid_solver *solver, int cut, hybrid_iterate *first,
                         hybrid_trial *trial) {
    hybrid_form *form = &solver->memory->form;
    const hybrid_plan *plan = solver->plan;
    const hybrid_state *state = &solver->state;
    const hybrid_residuals *start = &solver->found.start;
    const double merit = hybrid_merit(solver->given, start);
    const int nearer =
        cut ? !solver->memory->history.goes_on && state->feasible.t < 0 &&
                  start->feasibility <= solver->given->feasibility
            : state->best.t < 0 || merit <= hybrid_merit(solver->given, &state->of_best);
    if (solver->phase.method != HYBRID_ACTIVE_SET || !nearer) return 0;
    hybrid_copy(plan->n_x, form->clipped, trial->of.x);
    if (hybrid_call_first(form, &trial->of)) return 0;
    hybrid_initial_w(form, &trial->of);
    hybrid_clear_iterate(first);
    hybrid_multipliers_in(form, first->y, first->z_lower, first->z_upper, 0);
    hybrid_copy(plan->n, trial->of.w, first->w);
    return 1;
}

/* Returns whether a limit of the whole solve has ended the phase, not one of the phase alone. */
static int is_cut(const hybrid_solver *solver, int status) {
    return status == HYBRID_LATE || status == HYBRID_STOPPED ||
           (status == HYBRID_LIMIT && solver->answer->steps >= solver->given->max_iter);
}

/* Returns whether an iterate was a solution but for the gap, or for a smaller nu: it stays one
 * where later steps lead no further. */
static int was_solved(const hybrid_solver *solver) {
    const hybrid_state *state = &solver->state;
    return state->best.t >= 0 && hybrid_merit(solver->given, &state->of_best) <= 1.0;
}

/* The point of a phase that was cut: its last iterate, unless an earlier one is a solution, or
 * feasible, and this is not. That with the least residuals needs no evaluation, for which there may
 * be no time. */
static const hybrid_iterate *point_of_cut(hybrid_solver *solver, int status) {
    hybrid_phase *phase = solver->memory;
    const hybrid_state *state = &solver->state;
    const double within = solver->given->feasibility;
    const int first = phase->history.goes_on ? phase->setup->t0 : -1; /* known to who goes on */
    hybrid_residuals last;
    hybrid_iterate_residuals(phase, &phase->at->of, &phase->now, &last);
    if (was_solved(solver) && !(hybrid_merit(solver->given, &last) <= 1.0)) return &state->best;
    if (last.feasibility <= within) return &phase->now;
    if (state->best.t > first && state->of_best.feasibility <= within) return &state->best;
    /* This needs an evaluation, which only a limit of steps allows. */
    return status == HYBRID_LIMIT && state->feasible.t > first ? &state->feasible : &phase->now;
}

/* The slope of the violation, of |c|_1 where a phase has ended at a proof that it is stationary. */
static double slope_at(hybrid_solver *solver, const hybrid_point *at, const hybrid_iterate *best) {
    hybrid_phase *phase = solver->memory;
    const hybrid_state *state = &solver->state;
    const int proved = state->proved && !memcmp(best->w, state->now.w,
                                                (size_t)solver->plan->n * sizeof(double));
    return hybrid_violation_slope(&phase->form, at, solver->found.J0,
                                  proved ? state->infeasibility : 0, phase->W,
                                  phase->search.slopes);
}

void hybrid_conclude_phase(hybrid_solver *solver, int status, hybrid_outcome *outcome) {
    hybrid_phase *phase = solver->memory;
    hybrid_answer *found = &solver->found;
    const hybrid_state *state = &solver->state;
    /* A proof is one of the last point, and where no step leads on that is where it ends. */
    const int is_last =
        !hybrid_is_ended(solver->functions) &&
        (status == HYBRID_INFEASIBLE || status == HYBRID_STALLED || status == HYBRID_UNBOUNDED);
    const hybrid_iterate *best = is_last ? &state->now : &state->best;
    hybrid_trial *trial = phase->trial;
    memset(outcome, 0, sizeof *outcome);
    if (status == HYBRID_STALLED && state->ray.beyond && state->feasible.t < 0)
        status = HYBRID_DIVERGED; /* the iterates have run away, until rounding ended that */
    outcome->stop = stop_of(status);
    outcome->cut = is_cut(solver, status);
    outcome->steps = found->steps - solver->phase.setup.t0;
    found->certificate = NAN;
    if (status == HYBRID_SOLVED) {
        outcome->point = HYBRID_KKT_POINT;
        return;
    }
    keep_last(solver, status, 1);
    if (is_last && outcome->stop == HYBRID_STOP_LOCALLY_INFEASIBLE && state->feasible.t >= 0) {
        best = &state->feasible; /* the constraints can be met: no proof that they cannot */
        outcome->stop = HYBRID_STOP_STALLED;
    }
    if (!is_last && is_start_best(solver, outcome->cut, &solver->state.now, trial))
        best = &solver->state.now;
    else if (outcome->cut)
        best = point_of_cut(solver, status);
    if (best == &phase->now) trial = phase->at;
    else if (best->t >= 0) hybrid_copy(solver->plan->n, best->w, trial->of.w);
    if (best->t < 0 ||
        (best == &state->best ? recall_best(solver, trial)
                              : best != &phase->now && hybrid_evaluate_problem(phase, trial))) {
        nothing_known(solver, outcome);
        return;
    }
    hybrid_iterate_residuals(phase, &trial->of, best, &found->end);
    if (best == &state->best) found->end = state->of_best; /* by what is known of the step to it */
    hybrid_copy_to_answer(&phase->form, &trial->of);
    outcome->violation = violation_of(solver);
    if (!(found->end.feasibility <= solver->given->feasibility))
        found->certificate = slope_at(solver, &trial->of, best);
    outcome->point = outcome->stop == HYBRID_STOP_UNBOUNDED
                         ? HYBRID_FEASIBLE_NOT_STATIONARY /* the ray is the proof */
                         : point_of(solver);
    if (outcome->point == HYBRID_FRITZ_JOHN_POINT ||
        (outcome->stop == HYBRID_STOP_STALLED && outcome->point == HYBRID_FEASIBLE_NOT_STATIONARY &&
         found->huge))
        outcome->near = find_near(solver);
    if (outcome->stop == HYBRID_STOP_ITERATION_LIMIT && !outcome->cut &&
        outcome->point == HYBRID_KKT_POINT)
        outcome->stop = HYBRID_STOP_STALLED; /* a limit of this phase alone */
    outcome->stop = hybrid_corrected_stop(outcome->stop, outcome->point);
}

static hybrid_rank rank_of(const hybrid_solver *solver, const hybrid_outcome *outcome) {
    const hybrid_residuals *r = &solver->found.end;
    hybrid_rank rank = {.kind = HYBRID_RANK_OTHER, .violation = r->feasibility};
    double merit = hybrid_merit(solver->given, r);
    if (outcome->point == HYBRID_KKT_POINT || outcome->stop == HYBRID_STOP_UNBOUNDED) {
        rank.kind = outcome->point == HYBRID_KKT_POINT ? HYBRID_RANK_KKT : HYBRID_RANK_UNBOUNDED;
        return rank;
    }
    rank.value = isnan(merit) ? INFINITY : merit;
    if (r->feasibility <= solver->given->feasibility) {
        rank.kind = HYBRID_RANK_FEASIBLE;
        rank.f = r->f;
    } else if (outcome->stop == HYBRID_STOP_LOCALLY_INFEASIBLE) {
        rank.kind = HYBRID_RANK_LEAST_VIOLATION;
        rank.value = outcome->violation;
    }
    return rank;
}

/* Returns whether f is less by a thousandth at the first, whose violation is no larger. */
static int is_lower(const hybrid_rank *one, const hybrid_rank *other) {
    const double apart = HYBRID_OUTCOME_LOWER_F * hybrid_max(fabs(one->f), fabs(other->f));
    return one->f < other->f - apart && one->violation <= other->violation;
}

static int is_better(const hybrid_rank *one, const hybrid_rank *other) {
    if (one->kind != other->kind) return one->kind < other->kind;
    if (is_lower(one, other)) return 1;
    if (is_lower(other, one)) return 0;
    return one->value < other->value;
}

void hybrid_keep_best(hybrid_solver *solver, const hybrid_outcome *outcome) {
    const hybrid_rank rank = rank_of(solver, outcome), *other = &solver->rank;
    const int by_violation =
        outcome->cut && rank.kind == HYBRID_RANK_OTHER && other->kind == HYBRID_RANK_OTHER;
    if (by_violation ? rank.violation >= other->violation : !is_better(&rank, other)) return;
    solver->rank = rank;
    solver->answer->stop = outcome->stop;
    hybrid_take_found(solver, outcome);
}

void hybrid_take_found(hybrid_solver *solver, const hybrid_outcome *outcome) {
    const hybrid_plan *plan = solver->plan;
    const hybrid_answer *from = &solver->found;
    hybrid_answer *to = solver->answer;
    hybrid_copy(plan->n_x, from->x, to->x);
    hybrid_copy(plan->n_g, from->g, to->g);
    hybrid_copy(plan->n_x, from->lam_x, to->lam_x);
    hybrid_copy(plan->n_g, from->lam_g, to->lam_g);
    hybrid_copy(plan->n_x, from->gradient, to->gradient);
    hybrid_copy(plan->nnz_J, from->J, to->J);
    if (!solver->phase.last) { /* else the solve has begun elsewhere */
        hybrid_copy(plan->n_x, from->gradient0, to->gradient0);
        hybrid_copy(plan->nnz_J, from->J0, to->J0);
        if (to->x_start) hybrid_copy(plan->n_x, from->x_start, to->x_start);
        to->start = from->start;
    }
    to->end = from->end;
    to->status = from->status;
    to->point = outcome->point;
    to->certificate = from->certificate;
    to->largest_lam = from->largest_lam;
    to->huge = from->huge;
    to->order = from->order;
    to->newton = from->newton;
    to->ended = to->steps;
    to->moved = from->moved;
    to->cause = solver->stepped ? solver->state.cause : 0;
    to->stepped = solver->stepped && solver->state.stepped;
    if (to->step && to->stepped) hybrid_copy(plan->n_x, solver->state.last_step, to->step);
    for (int i = 0; to->x_undefined && i < plan->n_x; i++)
        to->x_undefined[i] = solver->stepped ? solver->state.x_undefined[i] : NAN;
    to->method = solver->phase.method;
}
