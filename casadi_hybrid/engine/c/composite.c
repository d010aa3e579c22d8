/* Composite steps where there are equations alone: as barrier/composite.py, which has the form, and
 * iterations/lookahead.py, which has the steps.
 *
 * What reduces the violation alone, escapes from it or leaves a saddle in either direction is the
 * careful path's, which then begins at the start. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "cold.h"
#include "spectra.h"

typedef struct {
    hybrid_spectrum here, there; /* of A at the iterate, and at a trial point */
    double *rows, *tau;          /* n m, n + m: A', for its decomposition */
    int *order;                  /* m */
    double *directions, *reduced; /* n n: in x, and in ker A */
    double *values, *slope, *t;  /* n: eigenvalues, and the slope of the model along directions */
    double *newton, *step, *back; /* n: steps */
    double *force, *left;        /* n: what pulls along directions; room */
    double *shares, *rising, *damped; /* the shorter of n and m: of the part in range A' */
    double *along, *y;           /* m */
    hybrid_guards of;            /* what is carried from step to step */
    int modelled;                /* whether W and the eigenvectors are those of the iterate */
} hybrid_composite;

/* A step and what damps its two parts: of the radius, zero for none. */
typedef struct {
    double *d;
    double normal, tangential;
} composed;

/* A trial point and its ratio of decreases; NULL where a function is not defined. */
typedef struct {
    hybrid_spot *spot;
    const double *d;
    double ratio;
} tried;

/* What the penalty function f + penalty |c|_2 is to gain. */
typedef struct {
    double penalty, predicted;
} promise;


static hybrid_composite *of_cold(hybrid_cold *cold) { return (hybrid_composite *)(cold + 2); }

/* Whether these singular values are found sooner than by LAPACK. */
static int is_small(const hybrid_plan *plan) {
    return plan->n + plan->m <= HYBRID_COMPOSITE_FEW;
}

static void place(const hybrid_plan *plan, hybrid_arena *arena, hybrid_composite *one) {
    long long n = plan->n, m = plan->m, fewer = n < m ? n : m;
    hybrid_spectrum *both[2];
    both[0] = &one->here;
    both[1] = &one->there;
    for (int k = 0; k < 2; k++) {
        both[k]->U = hybrid_take(arena, m * fewer);
        both[k]->V = hybrid_take(arena, n * n);
        both[k]->sigma = hybrid_take(arena, fewer);
    }
    one->rows = hybrid_take(arena, n * m);
    one->tau = hybrid_take(arena, n);
    one->order = hybrid_take_ints(arena, m);
    one->directions = hybrid_take(arena, n * n);
    one->reduced = hybrid_take(arena, n * n);
    one->values = hybrid_take(arena, n);
    one->slope = hybrid_take(arena, n);
    one->t = hybrid_take(arena, n);
    one->newton = hybrid_take(arena, n);
    one->step = hybrid_take(arena, n);
    one->back = hybrid_take(arena, n);
    one->force = hybrid_take(arena, n);
    one->left = hybrid_take(arena, n);
    one->shares = hybrid_take(arena, fewer);
    one->rising = hybrid_take(arena, 2 * fewer);
    one->damped = hybrid_take(arena, fewer);
    one->along = hybrid_take(arena, m);
    one->y = hybrid_take(arena, m);
}

static double norm(int count, const double *v) { return sqrt(hybrid_dot(count, v, v)); }

/* out = the first `count` columns of n numbers, times t. */
static void combine(int n, int count, const double *columns, const double *t, double *out) {
    for (int i = 0; i < n; i++) out[i] = 0.0;
    for (int j = 0; j < count; j++, columns += n)
        for (int i = 0; i < n; i++) out[i] += t[j] * columns[i];
}

static void decompose(hybrid_cold *cold, const hybrid_point *at, hybrid_spectrum *found) {
    hybrid_composite *one = of_cold(cold);
    const hybrid_plan *plan = cold->plan;
    memset(one->rows, 0, (size_t)plan->n * (size_t)plan->m * sizeof(double));
    for (int k = 0; k < plan->nnz_A; k++)
        one->rows[(long long)plan->A_rows[k] * plan->n + plan->A_cols[k]] += at->A[k];
    hybrid_singular(plan->m, plan->n, one->rows, HYBRID_LOOKAHEAD_RANK_TOLERANCE, one->tau,
                    one->order, found);
}

/* y of least squares. */
static void multipliers(hybrid_cold *cold, const hybrid_point *at, const hybrid_spectrum *A,
                        double *y) {
    hybrid_composite *one = of_cold(cold);
    const hybrid_plan *plan = cold->plan;
    for (int j = 0; j < A->rank; j++)
        one->shares[j] =
            -(hybrid_dot(plan->n, A->V + (long long)j * plan->n, at->gradient) / A->sigma[j]);
    combine(plan->m, A->rank, A->U, one->shares, y);
}

/* The larger of |c| and of the slope of L with multipliers of least squares. */
static double error_at(hybrid_cold *cold, const hybrid_point *at, const hybrid_spectrum *A) {
    hybrid_composite *one = of_cold(cold);
    const hybrid_plan *plan = cold->plan;
    double of_c = norm(plan->m, at->c), of_slope;
    multipliers(cold, at, A, one->y);
    hybrid_slope_of_L(plan, at, one->y, one->left);
    of_slope = norm(plan->n, one->left);
    return of_c > of_slope ? of_c : of_slope;
}

/* --- the model -------------------------------------------------------------------------------- */

/* Eigenvalues and directions of the Hessian of L on ker A at the iterate. Returns a status. */
static int model(hybrid_cold *cold) {
    hybrid_composite *one = of_cold(cold);
    const hybrid_plan *plan = cold->plan;
    const int n = plan->n, rank = one->here.rank, free = n - rank;
    const double *Z = one->here.V + (long long)rank * n;
    if (one->modelled) return HYBRID_SOLVED;
    if (hybrid_hessian(&cold->form, &cold->at->of, cold->now.y, 1.0, cold->W))
        return HYBRID_UNDEFINED;
    for (int j = 0; j < free; j++) {
        hybrid_times_W(plan, cold->W, Z + (long long)j * n, one->left);
        for (int i = 0; i < free; i++)
            one->reduced[(long long)j * free + i] = hybrid_dot(n, Z + (long long)i * n, one->left);
    }
    if (hybrid_symmetric(free, one->reduced, one->values, one->t)) return HYBRID_DOUBT;
    for (int j = 0; j < free; j++)
        combine(n, free, Z, one->reduced + (long long)j * free, one->directions + (long long)j * n);
    one->modelled = 1;
    return HYBRID_SOLVED;
}

/* Whether a KKT point is no saddle point or maximizer, as far as steps have shown. */
static int at_rest(hybrid_cold *cold, int *status) {
    const hybrid_composite *one = of_cold(cold);
    int free = cold->plan->n - one->here.rank;
    double scale;
    if (one->of.saddles >= HYBRID_LOOKAHEAD_MAX_SADDLES) return 1;
    if ((*status = model(cold)) != HYBRID_SOLVED || !free) return 1;
    scale = hybrid_largest(free, one->values);
    return !(one->values[0] < -HYBRID_LOOKAHEAD_CURVED * (scale > 1.0 ? scale : 1.0));
}

/* --- the step --------------------------------------------------------------------------------- */

/* d = -V (Sigma^2 + damping)^-1 Sigma U'h with |d| <= radius. Returns the damping, zero inside. */
static double gauss_newton(hybrid_cold *cold, const double *h, double radius, double *d) {
    hybrid_composite *one = of_cold(cold);
    const hybrid_spectrum *A = &one->here;
    const int n = cold->plan->n, m = cold->plan->m, rank = A->rank;
    double *squares = one->rising, *slope = one->rising + rank, damping = 0.0;
    for (int j = 0; j < rank; j++) {
        one->damped[j] = hybrid_dot(m, A->U + (long long)j * m, h);
        one->shares[j] = -one->damped[j] / A->sigma[j];
    }
    if (norm(rank, one->shares) > radius) {
        for (int j = 0; j < rank; j++) { /* rising */
            squares[rank - 1 - j] = A->sigma[j] * A->sigma[j];
            slope[rank - 1 - j] = A->sigma[j] * one->damped[j];
        }
        hybrid_trust_region(rank, squares, slope, radius, one->damped, &damping);
        for (int j = 0; j < rank; j++) one->shares[j] = one->damped[rank - 1 - j];
    }
    combine(n, rank, A->V, one->shares, d);
    return damping;
}

/* The numbers, zero where they are no larger than the noise. */
static void beyond(int count, double noise, const double *from, double *to) {
    for (int i = 0; i < count; i++) to[i] = fabs(from[i]) <= noise ? 0.0 : from[i];
}

/* The composite step of a radius. Returns a status. */
static int compose(hybrid_cold *cold, double radius, composed *step) {
    hybrid_composite *one = of_cold(cold);
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    const int n = plan->n, free = n - one->here.rank;
    double room, noise, *force = one->force, *clear = one->left;
    step->normal = gauss_newton(cold, at->c, HYBRID_COMPOSITE_NORMAL_SHARE * radius, step->d);
    room = radius * radius - hybrid_dot(n, step->d, step->d);
    hybrid_times_W(plan, cold->W, step->d, force);
    noise = 8.0 * DBL_EPSILON * (norm(n, at->gradient) + norm(n, force));
    for (int i = 0; i < n; i++) force[i] += at->gradient[i];
    for (int j = 0; j < free; j++)
        one->slope[j] = hybrid_dot(n, one->directions + (long long)j * n, force);
    beyond(free, noise, one->slope, one->slope);
    beyond(free, 8.0 * DBL_EPSILON * norm(plan->nnz_W, cold->W), one->values, clear);
    if (hybrid_trust_region(free, clear, one->slope, sqrt(room > 0.0 ? room : 0.0), one->t,
                            &step->tangential))
        return HYBRID_ELSEWHERE;
    combine(n, free, one->directions, one->t, one->left);
    for (int i = 0; i < n; i++) step->d[i] += one->left[i];
    return HYBRID_SOLVED;
}

/* The undamped step, and the least radius at which it is that of the radius; 0 where none is. */
static int undamped(hybrid_cold *cold, composed *step, double *whole) {
    hybrid_composite *one = of_cold(cold);
    const int n = cold->plan->n;
    double normal = 0.0;
    int status = compose(cold, HYBRID_COMPOSITE_UNLIMITED, step);
    *whole = 0.0;
    if (status || step->normal != 0.0 || step->tangential != 0.0) return status;
    for (int j = 0; j < one->here.rank; j++) {
        double along = hybrid_dot(n, one->here.V + (long long)j * n, step->d);
        normal += along * along;
    }
    normal = sqrt(normal) / HYBRID_COMPOSITE_NORMAL_SHARE;
    *whole = norm(n, step->d);
    if (normal > *whole) *whole = normal;
    return HYBRID_SOLVED;
}

/* The functions a step away. */
static void measure(hybrid_cold *cold, const promise *of, const double *d, hybrid_spot *spot,
                    tried *found) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    double size = norm(plan->m, at->c), actual, noise;
    found->d = d;
    found->spot = 0;
    found->ratio = -INFINITY;
    for (int i = 0; i < plan->n; i++) spot->of.w[i] = at->w[i] + d[i];
    if (hybrid_visit_problem(cold, spot)) return;
    found->spot = spot;
    actual = at->f - spot->of.f + of->penalty * (size - norm(plan->m, spot->of.c));
    /* Near a solution both decreases drown in rounding; equal noise on both means accept. */
    noise = 10.0 * DBL_EPSILON * (fabs(at->f) + of->penalty * size);
    found->ratio = (actual + noise) / (of->predicted + noise);
}

/* --- a step that is accepted ------------------------------------------------------------------ */

/* Goes to a point, where A is decomposed in `there` if `known`. */
static void go_to(hybrid_cold *cold, hybrid_spot *spot, int known) {
    hybrid_composite *one = of_cold(cold);
    hybrid_spectrum kept = one->here;
    if (!known) decompose(cold, &spot->of, &one->there);
    one->here = one->there;
    one->there = kept;
    one->modelled = 0;
    if (spot == cold->trial) cold->trial = cold->at;
    else cold->bent = cold->at;
    cold->at = spot;
    multipliers(cold, &spot->of, &one->here, cold->now.y);
}

/* Raises the penalty where f would rise by more than it gains; what the step promises. */
static double promised(hybrid_cold *cold, const double *d, double *gain, promise *of) {
    hybrid_composite *one = of_cold(cold);
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    double size = norm(plan->m, at->c), along = hybrid_dot(plan->n, at->gradient, d), q;
    hybrid_times_W(plan, cold->W, d, one->left);
    q = along + 0.5 * hybrid_dot(plan->n, d, one->left);
    hybrid_times_A(plan, at->A, d, one->along);
    for (int i = 0; i < plan->m; i++) one->along[i] += at->c[i];
    *gain = size - norm(plan->m, one->along);
    if (*gain > DBL_EPSILON * size && q > HYBRID_LOOKAHEAD_SHARE * of->penalty * *gain)
        of->penalty = 1.5 * q / (HYBRID_LOOKAHEAD_SHARE * *gain);
    of->predicted = of->penalty * *gain - q;
    return along;
}

/* Whether a Newton step halves the least error so far, where the penalty function refuses it: that
 * can happen only finitely often before the error is zero. */
static int is_halved(hybrid_cold *cold, hybrid_spot *spot) {
    hybrid_composite *one = of_cold(cold);
    double before = error_at(cold, &cold->at->of, &one->here), error;
    decompose(cold, &spot->of, &one->there);
    error = error_at(cold, &spot->of, &one->there);
    if (one->of.error < before) before = one->of.error;
    if (!(error <= 0.5 * before)) return 0;
    one->of.error = error;
    return 1;
}

/* The first acceptable composite step, with a radius that shrinks until there is one. Returns a
 * status; where it is HYBRID_SOLVED, cold->at is the new point. */
static int look_ahead(hybrid_cold *cold) {
    hybrid_composite *one = of_cold(cold);
    const hybrid_plan *plan = cold->plan;
    hybrid_guards *of = &one->of;
    const double size = norm(plan->m, cold->at->of.c), reach = norm(plan->n, cold->at->of.w);
    double radius = of->radius, whole, gain;
    composed newton = {0}, shorter = {0};
    promise is = {0};
    int daring, status;
    newton.d = one->newton;
    shorter.d = one->step;
    is.penalty = of->penalty;
    if ((status = undamped(cold, &newton, &whole)) != HYBRID_SOLVED) return status;
    /* The radius says where the last model held. Where this one has a minimizer not much further
     * away, trying it costs one evaluation. */
    daring = radius < whole && whole <= HYBRID_LOOKAHEAD_DARING * radius;
    while (radius > 1e-15 * (1.0 + reach)) {
        int full = daring || (0.0 < whole && whole <= radius), is_newton;
        const composed *step = full ? &newton : &shorter;
        double along, length;
        tried plain, taken;
        if (!full && (status = compose(cold, radius, &shorter)) != HYBRID_SOLVED) return status;
        is_newton = step->normal == 0.0 && step->tangential == 0.0;
        along = promised(cold, step->d, &gain, &is);
        measure(cold, &is, step->d, cold->trial, &plain);
        taken = plain;
        if (plain.ratio < HYBRID_LOOKAHEAD_GROW_ABOVE && plain.spot && step->normal == 0.0) {
            /* Second-order correction: the curvature of c spoilt a full step, or some of it. */
            tried corrected;
            gauss_newton(cold, plain.spot->of.c, radius, one->back);
            for (int i = 0; i < plan->n; i++) one->back[i] += step->d[i];
            measure(cold, &is, one->back, cold->bent, &corrected);
            if (corrected.ratio >= (plain.ratio > 0.1 ? plain.ratio : 0.1)) taken = corrected;
        }
        if (daring) {
            daring = 0;
            if (taken.ratio < HYBRID_LOOKAHEAD_DARED) {
                is.penalty = of->penalty;
                continue;
            }
            radius = whole;
        }
        if (taken.ratio < HYBRID_LOOKAHEAD_SHRINK_BELOW && is_newton && plain.spot &&
            is_halved(cold, plain.spot)) {
            of->penalty = is.penalty;
            of->promised = 1.0;
            go_to(cold, plain.spot, 1);
            return HYBRID_SOLVED;
        }
        length = norm(plan->n, taken.d);
        if (taken.ratio >= HYBRID_LOOKAHEAD_GROW_ABOVE && length > 0.7 * radius) radius *= 3.0;
        else if (taken.ratio < HYBRID_LOOKAHEAD_SHRINK_BELOW)
            radius = (taken.ratio >= HYBRID_LOOKAHEAD_ACCEPT ? 0.5 : 0.25) *
                     (length < radius ? length : radius);
        if (taken.spot && taken.ratio >= HYBRID_LOOKAHEAD_ACCEPT) {
            int flat = size <= HYBRID_LOOKAHEAD_TOL_FEASIBILITY && fabs(along) <= 1e-12;
            of->radius = radius;
            of->penalty = is.penalty;
            of->saddles += flat && step->tangential > 0.0;
            of->promised = size > 0.0 ? gain / size : 0.0;
            go_to(cold, taken.spot, 0);
            return HYBRID_SOLVED;
        }
    }
    return HYBRID_ELSEWHERE;
}

/* Whether |A'c| is as good as zero where |c| is not: as point/residuals.py. */
static int is_stationary(hybrid_cold *cold) {
    hybrid_composite *one = of_cold(cold);
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    double steepest = hybrid_largest(plan->nnz_A, at->A), size = hybrid_largest(plan->m, at->c);
    double squares = 0.0, slope;
    if (steepest == 0.0) return 1;
    for (int i = 0; i < plan->m; i++) one->along[i] = at->c[i] / size;
    hybrid_pull(plan, at->A, one->along, one->left);
    for (int k = 0; k < plan->nnz_A; k++)
        squares += (at->A[k] / steepest) * (at->A[k] / steepest);
    slope = HYBRID_LOOKAHEAD_STATIONARY * sqrt(squares);
    if (slope < 1e-9 / steepest) slope = 1e-9 / steepest;
    return norm(plan->n, one->left) / steepest <= slope * norm(plan->m, one->along);
}

/* Raises the penalty where |c| does not halve in a few steps. Returns whether the violation alone is
 * to be reduced next. */
static int is_slow(hybrid_cold *cold) {
    hybrid_composite *one = of_cold(cold);
    hybrid_guards *of = &one->of;
    const double size = norm(cold->plan->m, cold->at->of.c);
    const double least = HYBRID_LOOKAHEAD_TOL_FEASIBILITY;
    if (hybrid_largest(cold->plan->m, cold->at->of.c) > least && is_stationary(cold)) return 1;
    if (size <= (of->mark > least ? of->mark : least)) {
        of->patience = HYBRID_SAFEGUARDS_PATIENCE;
        of->mark = 0.5 * size;
        of->raised = 0;
        return 0;
    }
    if (of->promised > HYBRID_SAFEGUARDS_PROMISING) return 0;
    if (of->patience > 0) {
        of->patience--;
        return 0;
    }
    if (of->raised || one->here.rank == cold->plan->n) return 1;
    of->penalty *= 10.0;
    of->patience = HYBRID_SAFEGUARDS_PATIENCE;
    of->raised = 1;
    return 0;
}

/* --- an attempt ------------------------------------------------------------------------------- */

static int advance(hybrid_cold *cold) {
    hybrid_sight sight;
    int status;
    cold->state->guards = of_cold(cold)->of;
    status = hybrid_see(cold, &sight);
    if (!status && sight.merit <= 1.0 && sight.settled) sight.settled = at_rest(cold, &status);
    if (status) return status;
    status = hybrid_record(cold, &sight);
    if (status != HYBRID_PAUSED) return status;
    status = model(cold);
    if (!status) status = is_slow(cold) ? HYBRID_ELSEWHERE : look_ahead(cold);
    if (!status) cold->now.t++;
    return hybrid_went(cold, &sight, status);
}

int hybrid_composite_run(void *bytes) {
    hybrid_cold *cold = bytes;
    int status = HYBRID_PAUSED;
    double began = hybrid_time(cold->form.functions);
    cold->state->count = 0;
    while (status == HYBRID_PAUSED && cold->state->count < cold->state->capacity) {
        status = advance(cold);
        if (hybrid_time(cold->form.functions) - began >= cold->attempt->pause) break;
    }
    return hybrid_ended(cold, status);
}

void hybrid_composite_memory(const hybrid_plan *plan, int dense, long long *bytes,
                             long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    hybrid_composite one;
    hybrid_cold_memory(plan, dense, bytes, doubles, ints);
    if (is_small(plan)) place(plan, &arena, &one);
    *bytes += (long long)sizeof one;
    *doubles += arena.used_doubles;
    *ints += arena.used_ints;
}

int hybrid_composite_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                           const hybrid_numbers *numbers, const hybrid_attempt *attempt,
                           void *bytes, double *doubles, int *ints, hybrid_state *state,
                           hybrid_answer *answer) {
    hybrid_cold *cold = bytes;
    hybrid_composite *one = of_cold(cold);
    hybrid_arena arena = {0, 0, 0, 0};
    double size;
    int status;
    if (!is_small(plan)) return answer->status = HYBRID_ELSEWHERE;
    arena.doubles = doubles;
    arena.ints = ints;
    status = hybrid_begin(plan, functions, numbers, attempt, 1, bytes, &arena, state, answer);
    memset(one, 0, sizeof *one);
    place(plan, &arena, one);
    if (status) return answer->status = status;
    hybrid_set(plan->n, cold->work, cold->at->of.w);
    if (hybrid_visit_problem(cold, cold->at)) return answer->status = HYBRID_UNDEFINED;
    size = 0.5 * norm(plan->n, cold->at->of.w);
    one->of.radius = size > 1.0 ? size : 1.0;
    one->of.penalty = 1.0;
    one->of.patience = HYBRID_SAFEGUARDS_PATIENCE;
    one->of.mark = one->of.error = INFINITY;
    cold->now.theta_start = cold->at->theta;
    cold->now.t = attempt->t0;
    decompose(cold, &cold->at->of, &one->here);
    multipliers(cold, &cold->at->of, &one->here, cold->now.y);
    memset(cold->now.z_lower, 0, (size_t)plan->n * sizeof(double));
    memset(cold->now.z_upper, 0, (size_t)plan->n * sizeof(double));
    return answer->status = HYBRID_PAUSED;
}
