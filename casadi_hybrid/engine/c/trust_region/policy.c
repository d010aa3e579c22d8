/* Which step is due where there are equations alone: a composite step; where |c| does not halve in
 * some steps, the penalty is raised, and then the violation alone is reduced until |c| is down to
 * a target. With a penalty that is too small the penalty function has minimizers with c != 0. */
#include <math.h>

#include "feasibility/feasibility.h"
#include "trust_region/trust_region.h"

/* Whether the slope of |c| at a point is zero to a tolerance, relative to the size of A. */
static int is_stationary(hybrid_run *run, const hybrid_point *at, double tolerance) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    double steepest = hybrid_largest(plan->nnz_A, at->A), size = hybrid_largest(plan->m, at->c);
    double squares = 0.0, slope, least;
    if (steepest == 0.0) return 1;
    if (size < HYBRID_FORM_TINY) size = HYBRID_FORM_TINY;
    for (int i = 0; i < plan->m; i++) one->along[i] = at->c[i] / size;
    hybrid_times_At(plan, at->A, one->along, one->left);
    for (int k = 0; k < plan->nnz_A; k++)
        squares += (at->A[k] / steepest) * (at->A[k] / steepest);
    slope = tolerance * sqrt(squares);
    least = HYBRID_COMPOSITE_STATIONARY / steepest;
    if (slope < least) slope = least;
    return hybrid_norm(plan->n, one->left) / steepest <= slope * hybrid_norm(plan->m, one->along);
}

/* Reduces the violation alone from here on until |c| is down to the target. */
static void begin_reducing(hybrid_policy *of, double target_violation) {
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
    int status = hybrid_reduce_violation(run);
    if (status != HYBRID_INFEASIBLE && status != HYBRID_STALLED) return status;
    if (of->escapes < HYBRID_COMPOSITE_MAX_ESCAPES && hybrid_escape(run)) return HYBRID_SOLVED;
    return is_stationary(run, &run->at->of, HYBRID_CERTIFICATE_STATIONARY_VIOLATION)
               ? hybrid_no_way_on(run, HYBRID_INFEASIBLE, HYBRID_LEAST_SQUARES)
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
    if (violated && is_stationary(run, at, HYBRID_COMPOSITE_STATIONARY)) {
        begin_reducing(of, 0.5 * size);
    } else if (of->target_violation < 0.0) {
        watch(run, size);
    } else if (size <= of->target_violation || !violated) {
        of->target_violation = -1.0;
        run->search.begun = 0;
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
