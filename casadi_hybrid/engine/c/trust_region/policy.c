/* Which step is due where there are equations alone: a composite step; where |c| does not halve in
 * some steps, the penalty is raised, and then the violation alone is reduced until |c| is down to
 * a target. With a penalty that is too small the penalty function has minimizers with c != 0. */
#include <math.h>

#include "trust_region/trust_region.h"

/* Reduces the violation alone from here on until |c| is down to the target. */
static void begin_reducing(hybrid_policy *of, double target_violation) {
    if (of->target_violation < 0.0) of->reference = INFINITY;
    of->target_violation = target_violation;
}

/* The progress test: raises the penalty, then reduces the violation alone, where |c| does not halve
 * in a few steps. Steps whose linear model removes most of |c| do not count: what is left is
 * curvature of c along a long step, and a larger penalty would only shorten the steps. */
static void watch(hybrid_run *run, double size) {
    hybrid_composite *one = run->composite;
    hybrid_policy *of = &one->of;
    const double least = HYBRID_COMPOSITE_TOL_FEASIBILITY;
    if (size <= (of->reference > least ? of->reference : least)) {
        of->patience = HYBRID_POLICY_PATIENCE;
        of->reference = 0.5 * size;
        of->raised = 0;
    } else if (of->promised > HYBRID_POLICY_PROMISING) {
        return;
    } else if (of->patience > 0) {
        of->patience--;
    } else if (!of->raised && one->here.rank < run->plan->n) {
        of->penalty *= HYBRID_POLICY_RAISE;
        of->patience = HYBRID_POLICY_PATIENCE;
        of->raised = 1;
    } else {
        begin_reducing(of, HYBRID_POLICY_DEEP * size);
    }
}

/* A step that reduces |c| alone; at a least violation a point beyond it. Returns a status. */
static int reduce(hybrid_run *run) {
    hybrid_policy *of = &run->composite->of;
    const hybrid_point *at = &run->at->of;
    const double size = hybrid_norm(run->plan->m, at->c);
    const int stationary = hybrid_is_stationary(run, at, HYBRID_COMPOSITE_CERTIFIED);
    int status = HYBRID_NOT_NEARER;
    if (size <= (1.0 - HYBRID_POLICY_SLOW) * of->reference) {
        of->reference = size;
        of->patience = HYBRID_POLICY_LONG_PATIENCE;
    } else {
        of->patience--;
    }
    /* A valley of |c| that leads to infinity never ends: its slope vanishes in the limit only. */
    if (!stationary || of->patience >= 0) status = hybrid_newton_on_violation(run);
    if (status != HYBRID_NOT_NEARER) return status;
    if (of->escapes < HYBRID_COMPOSITE_MAX_ESCAPES && hybrid_escape(run)) return HYBRID_SOLVED;
    return stationary ? hybrid_no_way_on(run, HYBRID_INFEASIBLE, HYBRID_LEAST_SQUARES)
                      : hybrid_no_way_on(run, HYBRID_STALLED, HYBRID_ROUNDED_VIOLATION);
}

int hybrid_trust_region_step(hybrid_run *run) {
    const hybrid_point *at = &run->at->of;
    hybrid_policy *of = &run->composite->of;
    const double size = hybrid_norm(run->plan->m, at->c);
    const double least = HYBRID_COMPOSITE_TOL_FEASIBILITY;
    const int violated = hybrid_largest(run->plan->m, at->c) > least;
    int status = hybrid_reduced_model(run);
    if (status) return status;
    if (violated && hybrid_is_stationary(run, at, HYBRID_COMPOSITE_STATIONARY)) {
        begin_reducing(of, 0.5 * size);
    } else if (of->target_violation < 0.0) {
        watch(run, size);
    } else if (size <= of->target_violation || !violated) {
        of->target_violation = of->reach = -1.0;
        of->reference = INFINITY;
        of->raised = 0;
    }
    if (of->target_violation < 0.0) {
        status = hybrid_composite_step(run);
        if (status != HYBRID_NOT_NEARER) return status;
        if (!(size > least)) return hybrid_no_way_on(run, HYBRID_STALLED, HYBRID_NO_GAIN);
        begin_reducing(of, 0.5 * size);
    }
    return reduce(run);
}
