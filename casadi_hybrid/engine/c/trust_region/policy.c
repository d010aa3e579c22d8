/* Which step is due where there are equations alone: a composite step;
 * where |c| does not halve in some steps, the penalty is raised, and then the violation alone is
 * reduced until |c| is down to a goal. */
#include <math.h>

#include "trust_region/trust_region.h"

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

/* A step that reduces |c| alone; at a least violation a point beyond it. Returns a status. */
static int reduce(hybrid_cold *cold) {
    hybrid_guards *of = &hybrid_composite_of(cold)->of;
    const hybrid_point *at = &cold->at->of;
    const double size = hybrid_norm(cold->plan->m, at->c);
    const int stationary = hybrid_is_stationary(cold, at, HYBRID_LOOKAHEAD_CERTIFIED);
    int status = HYBRID_NOT_NEARER;
    if (size <= (1.0 - HYBRID_SAFEGUARDS_HARDLY) * of->mark) {
        of->mark = size;
        of->patience = HYBRID_SAFEGUARDS_LONG_PATIENCE;
    } else {
        of->patience--;
    }
    /* A valley of |c| that leads to infinity never ends: its slope vanishes in the limit only. */
    if (!stationary || of->patience >= 0) status = hybrid_newton_on_violation(cold);
    if (status != HYBRID_NOT_NEARER) return status;
    if (of->escapes < HYBRID_LOOKAHEAD_MAX_ESCAPES && hybrid_escape(cold)) return HYBRID_SOLVED;
    return stationary ? hybrid_no_way_on(cold, HYBRID_INFEASIBLE, HYBRID_LEAST_SQUARES)
                      : hybrid_no_way_on(cold, HYBRID_STALLED, HYBRID_ROUNDED_VIOLATION);
}

int hybrid_composite_step(hybrid_cold *cold) {
    const hybrid_point *at = &cold->at->of;
    hybrid_guards *of = &hybrid_composite_of(cold)->of;
    const double size = hybrid_norm(cold->plan->m, at->c);
    const double least = HYBRID_LOOKAHEAD_TOL_FEASIBILITY;
    const int violated = hybrid_largest(cold->plan->m, at->c) > least;
    int status = hybrid_reduced_model(cold);
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
        if (status != HYBRID_NOT_NEARER) return status;
        if (!(size > least)) return hybrid_no_way_on(cold, HYBRID_STALLED, HYBRID_NO_GAIN);
        begin_reducing(of, 0.5 * size);
    }
    return reduce(cold);
}
