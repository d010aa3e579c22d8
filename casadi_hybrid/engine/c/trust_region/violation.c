/* The violation alone: the Newton step on |c|^2 / 2,
 *
 *     min d'G d / 2 + (A'c)'d  s.t.  |D d| <= Delta,   G = A'A + sum_i c_i grad^2 c_i,
 *
 * in units D of the columns of A and the diagonal of G - A'A (Conn, Gould and Toint, Trust-Region
 * Methods, sections 6.7 and 7.3), with a correction along curved valleys, the geodesic acceleration
 * of Transtrum, Machta and Sethna (Phys. Rev. E 83, 2011). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "globalization/globalization.h"
#include "trust_region/trust_region.h"

int hybrid_is_stationary(hybrid_run *run, const hybrid_point *at, double tolerance) {
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
    least = HYBRID_RESIDUALS_FLAT / steepest;
    if (slope < least) slope = least;
    return hybrid_norm(plan->n, one->left) / steepest <= slope * hybrid_norm(plan->m, one->along);
}

/* The eigenvalues of the Hessian of |c|^2 / 2 in units D, in one->directions its eigenvectors in w,
 * and in one->slope the slopes along them. Returns a status. */
static int model(hybrid_run *run, double *D) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    const int n = plan->n;
    double *M = one->directions;
    if (hybrid_curvature(&run->form, at, at->c, run->W)) return HYBRID_UNDEFINED;
    memset(M, 0, (size_t)n * (size_t)n * sizeof(double));
    for (int i = 0; i < n; i++) D[i] = 0.0;
    for (int k = 0; k < plan->nnz_W; k++)
        if (plan->W_rows[k] == plan->W_cols[k]) D[plan->W_rows[k]] += run->W[k];
    for (int i = 0; i < n; i++) D[i] = fabs(D[i]);
    for (int k = 0; k < plan->nnz_A; k++) D[plan->A_cols[k]] += at->A[k] * at->A[k];
    for (int i = 0; i < n; i++) D[i] = D[i] > 0.0 ? sqrt(D[i]) : 1.0;
    memset(one->rows, 0, (size_t)n * (size_t)plan->m * sizeof(double));
    for (int k = 0; k < plan->nnz_A; k++)
        one->rows[(long long)plan->A_rows[k] * n + plan->A_cols[k]] += at->A[k];
    for (int row = 0; row < plan->m; row++) {
        const double *of = one->rows + (long long)row * n;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n && of[j] != 0.0; i++) M[(long long)j * n + i] += of[j] * of[i];
    }
    for (int k = 0; k < plan->nnz_W; k++)
        M[(long long)plan->W_cols[k] * n + plan->W_rows[k]] += run->W[k];
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) M[(long long)j * n + i] /= D[i] * D[j];
    if (hybrid_symmetric(n, M, one->values, one->t))
        return hybrid_no_way_on(run, HYBRID_STALLED, HYBRID_NO_GAIN);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) M[(long long)j * n + i] /= D[i];
    if (one->values[0] < 0.0) hybrid_orient(n, n, 1, one->values, M, one->t, one->left);
    hybrid_times_At(plan, at->A, at->c, one->force);
    for (int j = 0; j < n; j++)
        one->slope[j] = hybrid_dot(n, M + (long long)j * n, one->force);
    return HYBRID_SOLVED;
}

/* The functions a step away. Returns the ratio of the decrease of |c|^2 / 2 to what was predicted;
 * -1 where they are not defined. */
static double measure(hybrid_run *run, const double *step, double predicted, hybrid_trial *trial) {
    const int n = run->plan->n, m = run->plan->m;
    const double *c = run->at->of.c;
    for (int i = 0; i < n; i++) trial->of.w[i] = run->at->of.w[i] + step[i];
    if (hybrid_visit_problem(run, trial)) return -1.0;
    return 0.5 * (hybrid_dot(m, c, c) - hybrid_dot(m, trial->of.c, trial->of.c)) / predicted;
}

/* The step one->step corrected along a curved valley, in one->back: less the damped solution for
 * the part of c at its end that is not linear. Returns whether that is short enough. */
static int bend(hybrid_run *run, double shift, double size) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    hybrid_times_A(plan, at->A, one->step, one->along);
    for (int i = 0; i < plan->m; i++)
        one->along[i] = run->trial->of.c[i] - at->c[i] - one->along[i];
    hybrid_times_At(plan, at->A, one->along, one->left);
    for (int j = 0; j < plan->n; j++)
        one->newton[j] = hybrid_dot(plan->n, one->directions + (long long)j * plan->n, one->left) /
                         (one->values[j] + shift);
    if (!(hybrid_norm(plan->n, one->newton) <= HYBRID_VIOLATION_ACCELERATION * size)) return 0;
    hybrid_combine(plan->n, plan->n, one->directions, one->newton, one->back);
    for (int i = 0; i < plan->n; i++) one->back[i] = one->step[i] - one->back[i];
    return 1;
}

/* A Newton step whose gain in |c| is less than rounding is taken where it halves the slope A'c. */
static int last_step(hybrid_run *run) {
    hybrid_composite *one = run->composite;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    double slope;
    if (hybrid_is_stationary(run, at, HYBRID_VIOLATION_FLAT)) return HYBRID_NOT_NEARER;
    for (int i = 0; i < plan->n; i++) run->trial->of.w[i] = at->w[i] + one->step[i];
    if (hybrid_visit_problem(run, run->trial)) return HYBRID_NOT_NEARER;
    hybrid_times_At(plan, at->A, at->c, one->left);
    slope = hybrid_norm(plan->n, one->left);
    hybrid_times_At(plan, run->trial->of.A, run->trial->of.c, one->left);
    if (!(hybrid_norm(plan->n, one->left) <= 0.5 * slope)) return HYBRID_NOT_NEARER;
    hybrid_go_to(run, run->trial, 0);
    return HYBRID_SOLVED;
}

int hybrid_newton_on_violation(hybrid_run *run) {
    hybrid_composite *one = run->composite;
    const int n = run->plan->n;
    const hybrid_point *at = &run->at->of;
    double *D = one->units;
    const double size_c = hybrid_norm(run->plan->m, at->c), size_w = hybrid_norm(n, at->w);
    double radius = one->of.reach < 0.0 ? size_c : one->of.reach, smallest, longest;
    int status = model(run, D);
    if (status) return status;
    for (int i = 0; i < n; i++) one->left[i] = D[i] * at->w[i];
    smallest = DBL_EPSILON * hybrid_norm(n, one->left);
    longest = size_w > HYBRID_VIOLATION_FAR ? size_w : HYBRID_VIOLATION_FAR;
    while (radius > smallest) {
        double shift, size, length, predicted = 0.0, ratio, better = -1.0;
        hybrid_trial *new = run->trial;
        shift = hybrid_trust_region(n, one->values, one->slope, radius, one->t);
        for (int j = 0; j < n; j++)
            predicted -= one->slope[j] * one->t[j] + 0.5 * one->values[j] * one->t[j] * one->t[j];
        size = hybrid_norm(n, one->t);
        hybrid_combine(n, n, one->directions, one->t, one->step);
        length = hybrid_norm(n, one->step);
        if (length > longest) {
            radius = 0.5 * size * longest / length;
            continue;
        }
        if (!(predicted > HYBRID_VIOLATION_NEGLIGIBLE * 0.5 * size_c * size_c)) {
            one->of.reach = radius;
            return shift == 0.0 ? last_step(run) : HYBRID_NOT_NEARER;
        }
        ratio = measure(run, one->step, predicted, run->trial);
        if (ratio != -1.0 && ratio < HYBRID_VIOLATION_MEDIOCRE && one->values[0] + shift > 0.0 &&
            bend(run, shift, size))
            better = measure(run, one->back, predicted, run->corrected);
        if (better > ratio) {
            ratio = better;
            new = run->corrected;
        }
        radius = hybrid_next_radius(radius, size, ratio);
        if (ratio >= HYBRID_TRUST_REGION_ACCEPT) {
            one->of.reach = radius;
            hybrid_go_to(run, new, 0);
            return HYBRID_SOLVED;
        }
    }
    return HYBRID_NOT_NEARER;
}
