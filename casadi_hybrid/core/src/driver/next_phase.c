/* The next phase after one that has found no solution.
 *
 * In this order, each at most once unless said otherwise:
 * - after a point without multipliers: a KKT point of equations that are perturbed by less than
 *   the tolerances, since there are multipliers next to it;
 * - if any feasible point is a solution (no objective, or no freedom for one), and none was found:
 *   least squares of the constraints first, by short steps, which stay in the basin of the start;
 * - at a local minimum of the violation, with an objective: the method without least squares;
 * - at a local minimum of the violation: least squares from other starts, up to three times, until
 *   one minimum is found twice, and then from x0. An affine g has no other minimum. With an
 *   objective only small problems have these starts, by short steps;
 * - diverged along infeasible points: least squares first;
 * - no interior, stalled early, or the domain of the functions left: wider bounds and a larger
 *   first barrier parameter;
 * - on from the best point, with the bounds as they are and scales taken there;
 * - at last, if a large problem has no feasible point yet: other first barrier parameters. They
 *   share half of the steps so far, as there may be no feasible point. */
#include <math.h>
#include <string.h>

#include "driver/phases.h"

/* A phase as the first one, with another patience. */
static hybrid_phase_start phase_of(const hybrid_solver *solver, int patience) {
    hybrid_phase_start phase;
    memset(&phase, 0, sizeof phase);
    phase.how = solver->options->first;
    phase.how.patience = patience;
    phase.method = HYBRID_INTERIOR;
    return phase;
}

/* A phase that finds a root of the constraints first. */
static hybrid_phase_start root_of(const hybrid_solver *solver) {
    hybrid_phase_start phase = phase_of(solver, HYBRID_PATIENCE);
    phase.setup.root = 1;
    phase.setup.unscaled = 1;
    return phase;
}

static int begin_at(hybrid_solver *solver, const double *x, hybrid_phase_start phase) {
    hybrid_copy(solver->plan->n_x, x, solver->start);
    solver->phase = phase;
    return 1;
}

static int begin_at_x0(hybrid_solver *solver, hybrid_phase_start phase) {
    phase.at_x0 = 1;
    return begin_at(solver, solver->given->x0, phase);
}

hybrid_phase_start hybrid_first_phase(const hybrid_solver *solver) {
    const int squares = solver->equations > solver->free && !solver->options->linear;
    hybrid_phase_start phase =
        squares ? root_of(solver) : phase_of(solver, solver->options->first.patience);
    phase.at_x0 = 1;
    return phase;
}

/* Returns whether any feasible point is a solution, as where there is no objective, or no
 * freedom for one; affine equations are met by one full step. */
static int any_root_will_do(const hybrid_solver *solver) {
    return !solver->options->linear &&
           (solver->options->first.feasibility || solver->equations >= solver->free);
}

/* Returns whether there was a phase with relaxed bounds, or else one that found a root first. */
static int a_phase_was(const hybrid_solver *solver, int relaxed) {
    for (int k = 0; k < solver->count; k++)
        if (relaxed ? solver->phases[k].setup.relaxation > 0.0 : solver->phases[k].setup.root)
            return 1;
    return 0;
}

/* Returns whether there is an objective, and all phases have looked for a root first. */
static int is_plain_phase_due(const hybrid_solver *solver) {
    for (int k = 0; k < solver->count; k++)
        if (!solver->phases[k].setup.root) return 0;
    return !solver->options->first.feasibility;
}

/* Returns whether two searches have ended at one local minimum of the violation. */
static int found_twice(const hybrid_solver *solver) {
    const double now = solver->outcomes[solver->count - 1].violation;
    for (int k = 0; k < solver->count - 1; k++) {
        const hybrid_outcome *one = &solver->outcomes[k];
        if (solver->phases[k].setup.root && one->stop == HYBRID_STOP_LOCALLY_INFEASIBLE &&
            fabs(one->violation - now) <= HYBRID_SAME_MINIMUM * now)
            return 1;
    }
    return 0;
}

/* Start number `number`, at a relative distance of up to this number from x. It is a point of the
 * additive sequence of the plastic number (Roberts, "The unreasonable effectiveness of quasirandom
 * sequences", 2018). */
static void move_away(const double *x, int number, int n, double *start) {
    for (int i = 0; i < n; i++) {
        const double draw = (i + 1) * 0.7548776662466927 + number * 0.5698402909980532;
        const double centred = 2.0 * (draw - floor(draw)) - 1.0;
        start[i] = x[i] + number * hybrid_max(fabs(x[i]), 1.0) * centred;
    }
}

/* A root from another start. */
static int escape(hybrid_solver *solver, int candidates) {
    const hybrid_phase_start *before = &solver->before;
    const int number = before->escapes;
    hybrid_phase_start phase = root_of(solver);
    phase.setup.cautious = !any_root_will_do(solver);
    phase.setup.unscaled = before->setup.unscaled;
    phase.escapes = number + 1;
    if (number >= candidates || (number && found_twice(solver))) {
        if (!candidates) return 0;
        for (int k = 0; k < solver->count; k++)
            if (solver->phases[k].setup.root && solver->phases[k].at_x0) return 0;
        return begin_at_x0(solver, phase);
    }
    move_away(solver->x, number + 1, solver->plan->n_x, solver->work);
    return begin_at(solver, solver->work, phase);
}

/* On from beside the present point with equations that are perturbed. */
static int perturb(hybrid_solver *solver) {
    hybrid_phase_start phase = phase_of(solver, 1);
    solver->tried_perturbed = 1;
    phase.method = HYBRID_PERTURBED;
    hybrid_copy(solver->plan->n_x, solver->near_lam_x, solver->lam_x);
    hybrid_copy(solver->plan->n_g, solver->near_lam_g, solver->lam_g);
    return begin_at(solver, solver->near_x, phase);
}

/* The phase after a search for a root from x0: the same by short steps. Returns 0 for none. */
static int after_root(hybrid_solver *solver) {
    hybrid_phase_start phase = solver->before;
    if (!phase.setup.root || phase.setup.cautious || phase.escapes || solver->options->linear)
        return 0;
    phase.setup.cautious = 1;
    return begin_at_x0(solver, phase);
}

/* Wider bounds and a larger first barrier parameter. */
static int widen(hybrid_solver *solver, int most) {
    hybrid_phase_start phase = phase_of(solver, most);
    phase.setup.relaxation = HYBRID_RELAXATION;
    phase.how.nu = HYBRID_RELAXED_NU;
    phase.how.push = HYBRID_RELAXED_PUSH;
    return begin_at_x0(solver, phase);
}

/* On from the best point and its multipliers, with which SQP begins. */
static int go_on_from_best(hybrid_solver *solver) {
    hybrid_phase_start phase = phase_of(solver, HYBRID_PATIENCE);
    phase.last = 1;
    phase.method = HYBRID_ACTIVE_SET;
    hybrid_copy(solver->plan->n_x, solver->answer->lam_x, solver->lam_x);
    hybrid_copy(solver->plan->n_g, solver->answer->lam_g, solver->lam_g);
    return begin_at(solver, solver->answer->x, phase);
}

/* Another first barrier parameter if no point of a large problem is feasible. A local minimum of
 * the violation proves nothing unless g is affine. */
static int doubt(hybrid_solver *solver) {
    const int steps = solver->answer->steps, relaxed = a_phase_was(solver, 1);
    hybrid_phase_start phase;
    if (solver->options->linear || any_root_will_do(solver)) return 0;
    if (solver->plan->n_x <= HYBRID_ESCAPES_UP_TO || solver->count >= HYBRID_PHASES) return 0;
    if (solver->answer->end.feasibility <= solver->given->feasibility) return 0;
    if (relaxed && !solver->small_nu) return 0;
    if (!solver->until) solver->until = steps + steps / 2;
    if (steps >= solver->until) return 0;
    if (relaxed) {
        phase = phase_of(solver, solver->until - steps);
        phase.how.nu = HYBRID_BARRIER_NU_START;
        solver->small_nu = 0;
        begin_at_x0(solver, phase);
    } else {
        widen(solver, solver->until - steps);
    }
    return solver->phase.last = 1;
}

/* The next phase but for doubt. Returns 0 for none. */
static int next_phase(hybrid_solver *solver) {
    const hybrid_outcome *last = &solver->outcomes[solver->count - 1];
    const int stop = last->stop, any_root = any_root_will_do(solver);
    const int unfinished = stop == HYBRID_STOP_STALLED || stop == HYBRID_STOP_ITERATION_LIMIT ||
                           stop == HYBRID_STOP_DIVERGED;
    /* The iterate has left the domain of the functions; it did not begin outside. */
    const int left = stop == HYBRID_STOP_EVALUATION_ERROR && last->steps > 0;
    int most = solver->given->max_iter - HYBRID_PATIENCE_AT_FIRST - HYBRID_PATIENCE;
    if (most < HYBRID_PATIENCE) most = HYBRID_PATIENCE;
    if (solver->count >= HYBRID_PHASES) return 0;
    if (last->near && !solver->tried_perturbed) return perturb(solver);
    if (solver->before.last) return 0;
    if (any_root && !a_phase_was(solver, 0)) return begin_at_x0(solver, root_of(solver));
    if (after_root(solver)) return 1;
    if (stop == HYBRID_STOP_LOCALLY_INFEASIBLE && is_plain_phase_due(solver))
        return begin_at_x0(solver, phase_of(solver, HYBRID_PATIENCE));
    if (stop == HYBRID_STOP_LOCALLY_INFEASIBLE || solver->before.escapes) {
        int any = any_root ||
                   (solver->plan->n_x <= HYBRID_ESCAPES_UP_TO && !solver->options->linear);
        return escape(solver, any ? HYBRID_ESCAPES : 0);
    }
    if (stop == HYBRID_STOP_DIVERGED && !a_phase_was(solver, 0)) {
        hybrid_phase_start phase = root_of(solver);
        phase.setup.unscaled = 0;
        return begin_at_x0(solver, phase);
    }
    if ((left || unfinished || stop == HYBRID_STOP_NO_MULTIPLIERS) && !a_phase_was(solver, 1))
        return widen(solver, most);
    return unfinished ? go_on_from_best(solver) : 0;
}

int hybrid_next_phase(hybrid_solver *solver) { return next_phase(solver) || doubt(solver); }
