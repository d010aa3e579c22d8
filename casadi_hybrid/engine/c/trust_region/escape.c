/* The escape from a least violation: first the undamped Gauss-Newton step
 * and then Newton steps on |c|^2 / 2, which lead back from far out on an asymptote; else along the
 * weakest right singular vectors of A, to both sides and to distances in geometric progression, each
 * followed by two damped Gauss-Newton corrections. Along these directions the linear model says
 * nothing, and the quadratic part of c decides. The first point that at least halves |c| is taken. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "globalization/globalization.h"
#include "trust_region/trust_region.h"

static double violation(const hybrid_cold *cold, const hybrid_spot *spot) {
    return hybrid_norm(cold->plan->m, spot->of.c);
}

/* Exchanges the iterate's point with the one that is kept. */
static void exchange(hybrid_cold *cold) {
    hybrid_spot *kept = cold->kept;
    cold->kept = cold->at;
    cold->at = kept;
}

/* Newton steps from the point at cold->kept. Returns whether they have led to cold->at, where |c| is
 * down to the goal, with the iterate's point at cold->kept; else all is as it was. */
static int is_reduced(hybrid_cold *cold, double goal) {
    hybrid_composite *one = hybrid_composite_of(cold);
    const size_t rows = (size_t)cold->plan->m * sizeof(double);
    if (hybrid_visit_problem(cold, cold->kept)) return 0;
    exchange(cold);
    memcpy(one->y, cold->now.y, rows);
    one->of.reach = -1.0;
    for (int steps = 0; steps < HYBRID_VIOLATION_RESCUE_STEPS; steps++) {
        if (violation(cold, cold->at) <= goal) return 1;
        if (hybrid_newton_on_violation(cold)) break;
    }
    exchange(cold);
    memcpy(cold->now.y, one->y, rows);
    one->modelled = 0;
    hybrid_decompose_A(cold, &cold->at->of, HYBRID_LOOKAHEAD_RANK_TOLERANCE, &one->here);
    return 0;
}

/* The same from where the undamped step leads, if that is away and not too far. */
static int is_back(hybrid_cold *cold, double scale, double goal) {
    hybrid_composite *one = hybrid_composite_of(cold);
    const int n = cold->plan->n;
    const hybrid_point *at = &cold->at->of;
    double *w = cold->kept->of.w;
    hybrid_decompose_A(cold, at, DBL_EPSILON, &one->there);
    hybrid_gauss_newton(cold, &one->there, at->c, INFINITY, one->step);
    for (int i = 0; i < n; i++) w[i] = at->w[i] + one->step[i];
    return hybrid_norm(n, one->step) > HYBRID_VIOLATION_OFF * scale &&
           hybrid_norm(n, w) <= HYBRID_VIOLATION_BACK * scale && is_reduced(cold, goal);
}

/* Two corrections of a point at a distance; the spot of the last, NULL where a function is not
 * defined. */
static hybrid_spot *corrected(hybrid_cold *cold, double distance, const double *direction) {
    hybrid_composite *one = hybrid_composite_of(cold);
    const int n = cold->plan->n;
    hybrid_spot *spot = cold->trial, *next = cold->bent, *kept;
    for (int i = 0; i < n; i++) spot->of.w[i] = cold->at->of.w[i] + distance * direction[i];
    if (hybrid_visit_problem(cold, spot)) return 0;
    for (int corrections = 0; corrections < 2; corrections++) {
        hybrid_decompose_A(cold, &spot->of, HYBRID_LOOKAHEAD_RANK_TOLERANCE, &one->there);
        hybrid_gauss_newton(cold, &one->there, spot->of.c, fabs(distance), one->step);
        for (int i = 0; i < n; i++) next->of.w[i] = spot->of.w[i] + one->step[i];
        if (hybrid_visit_problem(cold, next)) return 0;
        kept = spot;
        spot = next;
        next = kept;
    }
    return spot;
}

/* The weakest right singular vectors, as no rounding chooses them, the first in one->directions.
 * Returns how many. */
static int weakest(hybrid_cold *cold) {
    hybrid_composite *one = hybrid_composite_of(cold);
    const hybrid_spectrum *A = &one->here;
    const int n = cold->plan->n;
    const int count = n < HYBRID_VIOLATION_SCAN_DIRECTIONS ? n : HYBRID_VIOLATION_SCAN_DIRECTIONS;
    one->modelled = 0;
    for (int j = 0; j < n; j++) {
        hybrid_set(n, A->V + (long long)(n - 1 - j) * n, one->directions + (long long)j * n);
        one->values[j] = n - 1 - j < A->rank ? A->sigma[n - 1 - j] : 0.0;
    }
    hybrid_orient(n, n, count, one->values, one->directions, one->t, one->left);
    return count;
}

/* The direction of a number: a singular vector, or halfway between the first two. */
static void direct(const hybrid_composite *one, int n, int count, int number, double *direction) {
    const double *first = one->directions, *second = first + n;
    const double sign = number == count ? 1.0 : -1.0;
    if (number < count) hybrid_set(n, first + (long long)number * n, direction);
    else
        for (int i = 0; i < n; i++) direction[i] = (first[i] + sign * second[i]) / sqrt(2.0);
}

/* Looks along these directions. Returns the first spot where |c| is down to the goal, or NULL. */
static hybrid_spot *scan(hybrid_cold *cold, double scale, double goal) {
    static const double distances[] = HYBRID_VIOLATION_SCAN_DISTANCES;
    hybrid_composite *one = hybrid_composite_of(cold);
    const int n = cold->plan->n, count = weakest(cold), all = count > 1 ? count + 2 : count;
    for (int number = 0; number < all; number++) {
        direct(one, n, count, number, one->newton);
        for (int k = 0; k < 2 * HYBRID_VIOLATION_SCAN_DISTANCES_COUNT; k++) {
            const double distance = (k % 2 ? -scale : scale) * distances[k / 2];
            hybrid_spot *found = corrected(cold, distance, one->newton);
            if (found && violation(cold, found) <= goal) return found;
        }
    }
    return 0;
}

void hybrid_begin_guards(double radius, int escapes, hybrid_guards *of) {
    of->radius = radius;
    of->penalty = 1.0;
    of->promised = 0.0;
    of->goal = of->reach = -1.0;
    of->patience = HYBRID_SAFEGUARDS_PATIENCE;
    of->mark = of->error = INFINITY;
    of->raised = of->saddles = 0;
    of->escapes = escapes;
}

int hybrid_escape(hybrid_cold *cold) {
    hybrid_composite *one = hybrid_composite_of(cold);
    const int n = cold->plan->n;
    const double size = hybrid_norm(n, cold->at->of.w), scale = size > 1.0 ? size : 1.0;
    const double goal = 0.5 * violation(cold, cold->at), radius = one->of.radius;
    const hybrid_spot *from = cold->at;
    double length;
    if (!is_back(cold, scale, goal)) {
        hybrid_spot *found = scan(cold, scale, goal);
        if (!found) return 0;
        hybrid_go_to(cold, found, 0);
    }
    for (int i = 0; i < n; i++) one->step[i] = cold->at->of.w[i] - from->of.w[i];
    length = hybrid_norm(n, one->step);
    hybrid_begin_guards(length > radius ? length : radius, one->of.escapes + 1, &one->of);
    hybrid_decompose_A(cold, &cold->at->of, HYBRID_LOOKAHEAD_RANK_TOLERANCE, &one->here);
    hybrid_fit(cold, &cold->at->of, &one->here, cold->now.y);
    return 1;
}
