/* The violation alone: the search for the least |c|, and the escape from there, by trial points
 * along the weakest right singular vectors of A, to both sides and at distances in geometric
 * progression, each followed by two damped Gauss-Newton corrections. Along these directions the
 * linear model is flat, and the quadratic part of c decides. The first point that at least halves
 * |c| is taken. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "feasibility/feasibility.h"
#include "trust_region/trust_region.h"

static double violation(const hybrid_run *run, const hybrid_trial *trial) {
    return hybrid_norm(run->plan->m, trial->of.c);
}

int hybrid_reduce_violation(hybrid_run *run) {
    const hybrid_trial *from;
    int status;
    if (!run->search.begun) hybrid_begin_root(run, run->at->theta);
    from = run->at;
    status = hybrid_root_step(run);
    if (status) return status;
    if (run->at == from) /* at a root, to rounding */
        return hybrid_no_way_on(run, HYBRID_STALLED, HYBRID_ROUNDED_VIOLATION);
    hybrid_arrive(run);
    return HYBRID_SOLVED;
}

/* Two corrections of a point at a distance; the trial of the last, NULL where a function is not
 * defined. */
static hybrid_trial *corrected(hybrid_run *run, double distance, const double *direction) {
    hybrid_composite *one = run->composite;
    const int n = run->plan->n;
    hybrid_trial *trial = run->trial, *next = run->corrected, *saved;
    for (int i = 0; i < n; i++) trial->of.w[i] = run->at->of.w[i] + distance * direction[i];
    if (hybrid_visit_problem(run, trial)) return 0;
    for (int corrections = 0; corrections < 2; corrections++) {
        hybrid_decompose_A(run, &trial->of, &one->there);
        hybrid_gauss_newton(run, &one->there, trial->of.c, fabs(distance), one->step);
        for (int i = 0; i < n; i++) next->of.w[i] = trial->of.w[i] + one->step[i];
        if (hybrid_visit_problem(run, next)) return 0;
        saved = trial;
        trial = next;
        next = saved;
    }
    return trial;
}

/* The two weakest right singular vectors, by hybrid_orient, into one->directions. Returns how many
 * they are with their diagonals. */
static int weakest(hybrid_run *run) {
    hybrid_composite *one = run->composite;
    const hybrid_spectrum *A = &one->here;
    const int n = run->plan->n;
    one->modelled = 0;
    for (int j = 0; j < n; j++) {
        hybrid_set(n, A->V + (long long)(n - 1 - j) * n, one->directions + (long long)j * n);
        one->values[j] = n - 1 - j < A->rank ? A->sigma[n - 1 - j] : 0.0;
    }
    hybrid_orient(n, n, 2, one->values, one->directions, one->t, one->left);
    return n > 1 ? 4 : 1;
}

/* The direction with a number. */
static void direct(const hybrid_composite *one, int n, int number, double *direction) {
    const double *first = one->directions, *second = first + n;
    const double sign = number == 3 ? -1.0 : 1.0;
    if (number < 2) hybrid_set(n, number ? second : first, direction);
    else
        for (int i = 0; i < n; i++) direction[i] = (first[i] + sign * second[i]) / sqrt(2.0);
}

/* Scans these directions. Returns the first trial where |c| is down to the target, or NULL. */
static hybrid_trial *scan(hybrid_run *run, double scale, double target_violation) {
    static const double distances[] = HYBRID_VIOLATION_SCAN_DISTANCES;
    hybrid_composite *one = run->composite;
    const int n = run->plan->n, count = weakest(run);
    for (int number = 0; number < count; number++) {
        direct(one, n, number, one->newton);
        for (int k = 0; k < 2 * HYBRID_COUNT(distances); k++) {
            const double distance = (k % 2 ? -scale : scale) * distances[k / 2];
            hybrid_trial *found = corrected(run, distance, one->newton);
            if (found && violation(run, found) <= target_violation) return found;
        }
    }
    return 0;
}

void hybrid_begin_policy(double radius, hybrid_policy *of) {
    *of = (hybrid_policy){radius, 1.0, INFINITY, -1.0, HYBRID_POLICY_PATIENCE};
}

int hybrid_escape(hybrid_run *run) {
    hybrid_composite *one = run->composite;
    const int n = run->plan->n;
    const double size = hybrid_norm(n, run->at->of.w), radius = one->of.radius;
    hybrid_trial *found = scan(run, hybrid_max(size, 1.0), 0.5 * violation(run, run->at));
    double length;
    if (!found) return 0;
    for (int i = 0; i < n; i++) one->step[i] = found->of.w[i] - run->at->of.w[i];
    length = hybrid_norm(n, one->step);
    hybrid_begin_policy(hybrid_max(length, radius), &one->of);
    hybrid_go_to(run, found);
    return 1;
}
