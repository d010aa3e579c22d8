/* The composite step of Byrd and Omojokun (Nocedal and Wright, Numerical Optimization, 2nd ed.,
 * section 18.5): with A = U Sigma Y' and Z spanning ker A
 *
 *     d_y = -Y (Sigma^2 + lambda)^-1 Sigma U'c,   |d_y| <= 0.8 Delta,
 *     d_z = -Z (Z'WZ + sigma I)^-1 Z'(grad f + W d_y),   |d| <= Delta,
 *
 * accepted by the penalty function f + penalty |c|_2, with one second-order correction. */
#include <float.h>
#include <math.h>

#include "globalization/globalization.h"
#include "trust_region/trust_region.h"

/* A step and what damps its two parts: of the radius, zero for none. */
typedef struct {
    double *d;
    double normal, tangential;
} composed;

/* A trial point, NULL where a function is not defined, and its ratio of decreases. */
typedef struct {
    hybrid_trial *trial;
    const double *d;
    double ratio;
} tried;

/* The penalty, and the predicted decrease of the penalty function f + penalty |c|_2. */
typedef struct {
    double penalty, predicted;
} prediction;

/* --- the model -------------------------------------------------------------------------------- */

/* out = W v. */
static void bend_along(hybrid_run *run, const double *v, double *out) {
    hybrid_times_W(run->plan, run->W, v, out);
    for (int i = 0; i < run->plan->n && run->identity; i++) out[i] += v[i];
}

/* The norm of Frobenius. */
static double size_of_W(const hybrid_run *run) {
    return run->identity ? sqrt(run->plan->n) : hybrid_norm(run->plan->nnz_W, run->W);
}

int hybrid_reduced_model(hybrid_run *run) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    const int n = plan->n, rank = one->here.rank, free = n - rank;
    const double *Z = one->here.V + (long long)rank * n;
    if (one->modelled) return HYBRID_SOLVED;
    if (hybrid_hessian_of_run(run)) return HYBRID_UNDEFINED;
    for (int j = 0; j < free; j++) {
        bend_along(run, Z + (long long)j * n, one->left);
        for (int i = 0; i < free; i++)
            one->reduced[(long long)j * free + i] = hybrid_dot(n, Z + (long long)i * n, one->left);
    }
    if (hybrid_symmetric(free, one->reduced, one->values, one->t))
        return hybrid_no_way_on(run, HYBRID_STALLED, HYBRID_NO_GAIN);
    for (int j = 0; j < free; j++)
        hybrid_combine(n, free, Z, one->reduced + (long long)j * free,
                       one->directions + (long long)j * n);
    if (free && one->values[0] < 0.0)
        hybrid_orient(n, free, 1, one->values, one->directions, one->t, one->left);
    one->modelled = 1;
    return HYBRID_SOLVED;
}

int hybrid_is_second_order(hybrid_run *run, int *status) {
    const hybrid_composite *one = run->composite;
    int free = run->plan->n - one->here.rank;
    double scale;
    if ((*status = hybrid_reduced_model(run)) != HYBRID_SOLVED || !free) return 1;
    scale = hybrid_largest(free, one->values);
    return !(one->values[0] < -HYBRID_FLAT * hybrid_max(scale, 1.0));
}

/* --- the step --------------------------------------------------------------------------------- */

/* The numbers, zero where they are no larger than rounding. */
static void beyond(int count, double noise, const double *from, double *to) {
    for (int i = 0; i < count; i++) to[i] = fabs(from[i]) <= noise ? 0.0 : from[i];
}

/* The composite step of a radius. */
static void compose(hybrid_run *run, double radius, composed *step) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    const int n = plan->n, free = n - one->here.rank;
    double room, noise, *force = one->force, *clear = one->left;
    step->normal = hybrid_gauss_newton(run, &one->here, at->c,
                                       HYBRID_COMPOSITE_NORMAL_SHARE * radius, step->d);
    room = radius * radius - hybrid_dot(n, step->d, step->d);
    bend_along(run, step->d, force);
    noise = HYBRID_ROUNDED * (hybrid_norm(n, at->gradient) + hybrid_norm(n, force));
    for (int i = 0; i < n; i++) force[i] += at->gradient[i];
    for (int j = 0; j < free; j++)
        one->slope[j] = hybrid_dot(n, one->directions + (long long)j * n, force);
    beyond(free, noise, one->slope, one->slope);
    beyond(free, HYBRID_ROUNDED * size_of_W(run), one->values, clear);
    step->tangential =
        hybrid_trust_region(free, clear, one->slope, sqrt(room > 0.0 ? room : 0.0), one->t);
    hybrid_combine(n, free, one->directions, one->t, one->left);
    for (int i = 0; i < n; i++) step->d[i] += one->left[i];
}

/* The undamped step. Returns the least radius at which that is the step; 0 where none is. */
static double undamped(hybrid_run *run, composed *step) {
    hybrid_composite *one = run->composite;
    const int n = run->plan->n;
    double normal = 0.0, whole;
    compose(run, HYBRID_UNLIMITED, step);
    if (step->normal != 0.0 || step->tangential != 0.0) return 0.0;
    for (int j = 0; j < one->here.rank; j++) {
        double along = hybrid_dot(n, one->here.V + (long long)j * n, step->d);
        normal += along * along;
    }
    normal = sqrt(normal) / HYBRID_COMPOSITE_NORMAL_SHARE;
    whole = hybrid_norm(n, step->d);
    return normal > whole ? normal : whole;
}

/* The functions a step away. Where noise of f may hide a decrease, the slopes at both ends of a
 * good step say what it is. */
static void measure(hybrid_run *run, const prediction *of, const double *d, hybrid_trial *trial,
                    tried *found) {
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    double size = hybrid_norm(plan->m, at->c), rise, off, actual, noise, ratio;
    *found = (tried){0, d, -INFINITY};
    for (int i = 0; i < plan->n; i++) trial->of.w[i] = at->w[i] + d[i];
    if (hybrid_try_problem(run, trial)) return;
    found->trial = trial;
    rise = trial->of.f - at->f;
    actual = of->penalty * (size - hybrid_norm(plan->m, trial->of.c)) - rise;
    /* Near a solution both decreases are rounding; that is added to both, and the step is taken. */
    noise = HYBRID_ROUNDED * (fabs(at->f) + of->penalty * size);
    found->ratio = (actual + noise) / (of->predicted + noise);
    if (found->ratio >= HYBRID_TRUST_REGION_ACCEPT) return;
    if (!hybrid_may_be_noise(run, rise, at->f) || hybrid_complete_problem(run, trial)) return;
    off = rise - 0.5 * (hybrid_dot(plan->n, at->gradient, d) +
                        hybrid_dot(plan->n, trial->of.gradient, d));
    ratio = (actual + off + noise) / (of->predicted + noise);
    if (hybrid_may_be_noise(run, off, at->f) && ratio >= HYBRID_TRUST_REGION_GROW_ABOVE)
        found->ratio = ratio;
}

/* --- a step that is accepted ------------------------------------------------------------------ */

/* Raises the penalty where f would rise by more than a part of its gain, and predicts the decrease.
 */
static void predict(hybrid_run *run, const double *d, prediction *of) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    double size = hybrid_norm(plan->m, at->c), q, gain;
    bend_along(run, d, one->left);
    q = hybrid_dot(plan->n, at->gradient, d) + 0.5 * hybrid_dot(plan->n, d, one->left);
    hybrid_times_A(plan, at->A, d, one->along);
    for (int i = 0; i < plan->m; i++) one->along[i] += at->c[i];
    gain = size - hybrid_norm(plan->m, one->along);
    if (gain > DBL_EPSILON * size && q > HYBRID_COMPOSITE_SHARE * of->penalty * gain)
        of->penalty = HYBRID_COMPOSITE_RAISE * q / (HYBRID_COMPOSITE_SHARE * gain);
    of->predicted = of->penalty * gain - q;
}

int hybrid_composite_step(hybrid_run *run) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    hybrid_policy *of = &one->of;
    const double reach = hybrid_norm(plan->n, run->at->of.w);
    composed newton = {one->newton, 0.0, 0.0}, shorter = {one->step, 0.0, 0.0};
    prediction is = {of->penalty, 0.0};
    double radius = of->radius, whole = undamped(run, &newton);
    double longest = 0.0, before = INFINITY, off = INFINITY; /* lengths of refused steps; f off its
                                                              * tangent by the last */
    int beyond;
    /* The radius says where the last model held. Where this one has a minimizer not much further
     * away, trying it costs one evaluation. */
    beyond = radius < whole && whole <= HYBRID_COMPOSITE_BEYOND * radius;
    while (radius > HYBRID_ROUNDED * (1.0 + reach)) {
        int end = hybrid_search_ends(run), full = beyond || (0.0 < whole && whole <= radius);
        const composed *step = full ? &newton : &shorter;
        double length;
        tried plain, taken;
        if (end) return end;
        if (!full) compose(run, radius, &shorter);
        predict(run, step->d, &is);
        measure(run, &is, step->d, run->trial, &plain);
        taken = plain;
        if (plain.ratio < HYBRID_TRUST_REGION_GROW_ABOVE && plain.trial && step->normal == 0.0) {
            /* Second-order correction for the curvature of c. */
            tried corrected;
            hybrid_gauss_newton(run, &one->here, plain.trial->of.c, radius, one->back);
            for (int i = 0; i < plan->n; i++) one->back[i] += step->d[i];
            measure(run, &is, one->back, run->corrected, &corrected);
            if (corrected.ratio > plain.ratio) taken = corrected;
        }
        if (beyond) {
            beyond = 0;
            if (taken.ratio < HYBRID_TRUST_REGION_SHRINK_BELOW) {
                is.penalty = of->penalty;
                continue;
            }
            radius = whole;
        }
        if (taken.ratio >= HYBRID_TRUST_REGION_ACCEPT && hybrid_complete_problem(run, taken.trial))
            taken = (tried){0, taken.d, -INFINITY};
        length = hybrid_norm(plan->n, taken.d);
        radius = hybrid_next_radius(radius, length < radius ? length : radius, taken.ratio);
        if (taken.trial && taken.ratio >= HYBRID_TRUST_REGION_ACCEPT) {
            of->radius = radius;
            of->penalty = is.penalty;
            hybrid_go_to(run, taken.trial);
            return HYBRID_SOLVED;
        }
        if (longest == 0.0) longest = length;
        if (taken.trial && length <= 0.5 * before) {
            if (hybrid_meets_noise(run, taken.trial, length / longest, off, &off))
                radius = of->radius;
            before = length;
        }
    }
    return HYBRID_NOT_NEARER;
}
