/* Which step is due where there are equations alone: a composite step; where |c| does not halve in
 * some steps, the violation alone is reduced until it has. With a penalty that is too small the
 * penalty function has minimizers with c != 0. */
#include <math.h>

#include "feasibility/feasibility.h"
#include "trust_region/trust_region.h"

/* Whether the slope of |c| is zero, relative to the size of A, or to rounding. */
static int is_stationary(hybrid_run *run) {
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    double *slope = run->composite->left;
    double flat = HYBRID_CERTIFICATE_STATIONARY_VIOLATION * hybrid_norm(plan->nnz_A, at->A);
    hybrid_times_At(plan, at->A, at->c, slope);
    flat = hybrid_max(flat, HYBRID_EXACT);
    return hybrid_norm(plan->n, slope) <= flat * hybrid_norm(plan->m, at->c);
}

/* The progress test. Returns whether |c| has not halved in a few steps. */
static int is_slow(hybrid_policy *of, double size) {
    if (size > hybrid_max(of->reference, HYBRID_EXACT)) return of->patience-- <= 0;
    of->patience = HYBRID_POLICY_PATIENCE;
    of->reference = 0.5 * size;
    return 0;
}

int hybrid_trust_region_step(hybrid_run *run) {
    hybrid_policy *of = &run->composite->of;
    const double size = hybrid_norm(run->plan->m, run->at->of.c);
    const int violated = hybrid_largest(run->plan->m, run->at->of.c) > HYBRID_EXACT;
    int status = hybrid_reduced_model(run);
    if (status) return status;
    if (of->target_violation >= 0.0 && (size <= of->target_violation || !violated)) {
        of->target_violation = -1.0;
        run->search.begun = 0;
        of->reference = INFINITY;
    }
    if (violated && is_stationary(run)) of->target_violation = 0.5 * size;
    if (of->target_violation < 0.0 && is_slow(of, size)) of->target_violation = 0.5 * size;
    if (of->target_violation < 0.0) {
        status = hybrid_composite_step(run);
        if (status != HYBRID_NOT_NEARER) return status;
        if (!violated) return hybrid_no_way_on(run, HYBRID_STALLED, HYBRID_NO_GAIN);
        of->target_violation = 0.5 * size;
    }
    status = hybrid_reduce_violation(run);
    if (status != HYBRID_INFEASIBLE && status != HYBRID_STALLED) return status;
    return hybrid_escape(run) ? HYBRID_SOLVED : status; /* from a least violation */
}
