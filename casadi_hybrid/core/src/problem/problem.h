/* The standard form of a problem, min f(w) s.t. c(w) = 0, lower <= w <= upper: its functions,
 * products with its derivatives, and residuals in the user's units. */
#ifndef HYBRID_PROBLEM_H
#define HYBRID_PROBLEM_H

#include <math.h>

#include "constants.h"
#include "hybrid.h"
#include "linear_algebra/linear_algebra.h"

/* Beside the statuses of hybrid.h, within the core: a step is due. */
enum { HYBRID_PAUSED = 9 };

/* The memory of the ray test, infinity at first: see ray_test.c. */
typedef struct {
    double reach; /* |x| of the last iterate */
    double least; /* the least f < 0 of feasible ones that are large */
    int beyond;   /* iterates in a row that go on outwards, and prove nothing */
} hybrid_ray;

/* Memory that is handed out piece by piece; without a base it only counts. */
typedef struct {
    double *doubles;
    int *ints;
    long long used_doubles, used_ints;
} hybrid_arena;

static inline double *hybrid_allocate(hybrid_arena *arena, long long count) {
    double *at = arena->doubles ? arena->doubles + arena->used_doubles : 0;
    arena->used_doubles += count;
    return at;
}
static inline int *hybrid_allocate_ints(hybrid_arena *arena, long long count) {
    int *at = arena->ints ? arena->ints + arena->used_ints : 0;
    arena->used_ints += count;
    return at;
}
static inline void hybrid_place(hybrid_arena *arena, long long count, int many, double **at[]) {
    for (int k = 0; k < many; k++) *at[k] = hybrid_allocate(arena, count);
}
/* So many doubles for each of the pointers whose addresses follow. */
#define HYBRID_PLACE(arena, count, ...)                                                            \
    hybrid_place(arena, count, HYBRID_COUNT(((double **[]){__VA_ARGS__})),                         \
                 (double **[]){__VA_ARGS__})

/* The functions of the standard form at one w, scaled, and the user's own values there. */
typedef struct {
    double f;
    double *w, *gradient, *c, *A;
    double *own_gradient, *own_A; /* where they lie if not in what the first function wrote */
    double *below, *above;        /* distances to the bounds, 1 where there is none */
    double raw_f;
    double *x, *raw_gradient, *raw_g;
    double *out;   /* what the first function wrote */
    double *raw_J; /* in it */
    double sum_J;  /* of the |entries| */
    int partial;   /* whether f and c alone are known */
    double inner;  /* what hybrid_settled says of the step to it */
} hybrid_point;

/* The part of W that is not on the plan's pattern, U diag(w) U', and a factorization with it: see
 * primal_dual/low_rank.c. There is room for nothing where all of W is on the pattern. */
typedef struct {
    int rank;               /* columns of U; 0: there is no such part */
    int negative;           /* negative eigenvalues of K without them */
    double *U, *V;          /* n each: columns, and the same without what is pinned */
    double *w;              /* their weights, none 0 */
    double *Z;              /* n + m each: K^-1 V, for that K */
    double *T, *values;     /* rank each, rank: eigenvectors and eigenvalues of diag(w)^-1 + V'Z */
    double *along, *turned; /* rank: room */
    double *right, *x, *left; /* n + m: room */
} hybrid_low_rank;

/* The standard form of one solve. */
typedef struct {
    const hybrid_plan *plan;
    const hybrid_functions *functions;
    const hybrid_numbers *numbers;
    hybrid_answer *answer; /* where evaluations are counted */
    double scale_f;
    double *scale_c, *target;      /* m */
    double *lower, *upper;         /* n, scaled */
    double *room;                  /* n: as exactly are bounds known */
    double *clipped;               /* n_x: the start inside its bounds */
    double *lam, *H;               /* n_g, nnz_H: for the second function */
    double *has_lower, *has_upper; /* n: 1 where there is a bound, else 0 */
    hybrid_low_rank low_rank;      /* of the last Hessian */
    int bounds;                    /* how many there are */
    double relaxation;             /* how far they are widened, relative */
    int unscaled;                  /* whether rows are not scaled */
    int perturbed; /* steps of SQP where equations keep their values at x0; 0: they do
                               * not */
    int placing;   /* whether a start where a function is not defined is moved */
    int plain;     /* whether the values are the user's own: all of them, all scales 1 */
} hybrid_form;

void hybrid_place_point(const hybrid_plan *plan, hybrid_arena *arena, hybrid_point *point);
void hybrid_place_form(const hybrid_plan *plan, hybrid_arena *arena, hybrid_form *form);

/* Scales, bounds and the first w (in `start`, where the user's derivatives are those at x0).
 * Returns a status. */
int hybrid_make_form(hybrid_form *form, hybrid_point *start);
/* The first w: x0 within the bounds, and each slack its row there, within its own. */
void hybrid_initial_w(const hybrid_form *form, hybrid_point *start);
/* Sets has_lower, has_upper and room, which the interior-point method needs. */
void hybrid_find_bounds(hybrid_form *form);
/* Sets the distances of a point to its bounds. */
void hybrid_distances(const hybrid_form *form, hybrid_point *point);
/* The accuracy of an entry's bounds. */
static inline double hybrid_room(double lower, double upper) {
    const double size = hybrid_min(fabs(lower), fabs(upper));
    return HYBRID_FORM_ROOM * (size < INFINITY ? hybrid_max(size, 1.0) : 1.0);
}
/* The distance to a bound, 1 where there is none. */
static inline double hybrid_distance(double lower, double upper, double room) {
    double distance = upper - lower;
    distance = distance < INFINITY ? distance : 1.0;
    return distance < room ? room : distance;
}
/* Returns whether a bound that is known to less than the tolerance alone is met as exactly as it
 * can be. */
static inline int hybrid_is_met_bound(double room, double distance, double tol) {
    return room > tol && distance <= room;
}
/* Calls the first function at point->x and spreads what it gives. Returns 0, or 1 where it is not
 * defined. */
int hybrid_call_first(hybrid_form *form, hybrid_point *point);
/* w = that of a point, but each slack at the value of its row. */
void hybrid_move_slacks(const hybrid_plan *plan, const hybrid_point *at, double *w);
/* The functions at point->w. `known_x`: the x to which the user's values in the point belong, NULL
 * for none. Returns 0, or 1 where they are not defined. */
int hybrid_evaluate(hybrid_form *form, hybrid_point *point, const double *known_x);
/* The functions of a trial point: f and c alone if there is a function for these. */
int hybrid_evaluate_values(hybrid_form *form, hybrid_point *point);
/* The Hessian of objective f + y'c, scaled, into W. Returns 0, or 1 where it is not defined. */
int hybrid_hessian(hybrid_form *form, const hybrid_point *at, const double *y, double objective,
                   double *W);
/* Keeps a point for the Hessian from first derivatives, if it is another one than the last. */
void hybrid_add_secant_point(const hybrid_plan *plan, const hybrid_point *at,
                             hybrid_secants *secants);
/* Keeps the last point alone. Returns whether there were others; NULL has none. */
int hybrid_drop_secants(hybrid_secants *secants);
/* The Hessian of objective f + lam'g as far as the points have shown it. Its nonzeros are in `H`;
 * the rest of larger blocks, beside their diagonal, is in `low`. There is one point at least. */
void hybrid_secant_hessian(const hybrid_plan *plan, const hybrid_secants *secants, double objective,
                           const double *lam, double *H, hybrid_low_rank *low);
void hybrid_place_low_rank(const hybrid_plan *plan, hybrid_arena *arena, hybrid_low_rank *low);
/* out += U diag(w) U'v, where v counts in the `count` entries at `of` alone; NULL: in all n. */
void hybrid_add_low_rank(const hybrid_plan *plan, const hybrid_low_rank *low, const double *v,
                         int count, const int *of, double *out);
/* The largest |entry| of W; of its part of low rank only the diagonal counts. */
double hybrid_largest_entry_of_W(const hybrid_plan *plan, const double *W,
                                 const hybrid_low_rank *low);
/* The Hessian of y'c alone, into W. Returns as hybrid_hessian. */
int hybrid_curvature(hybrid_form *form, const hybrid_point *at, const double *y, double *W);
/* (y, z_lower, z_upper) of the standard form for the user's multipliers, and back. Returns in how
 * many entries a bound has one, and says in `held` in which: n numbers, or NULL. */
int hybrid_multipliers_in(const hybrid_form *form, double *y, double *z_lower, double *z_upper,
                          int *held);
void hybrid_multipliers_out(const hybrid_form *form, const hybrid_point *at, const double *y,
                            const double *z_lower, const double *z_upper, double *lam_x,
                            double *lam_g);

/* Returns whether the solve is to end: then nothing is evaluated any more. */
static inline int hybrid_is_ended(const hybrid_functions *functions) {
    return functions->observer && functions->observer->ended;
}
/* Nothing was done yet. */
void hybrid_clear_counts(hybrid_answer *answer);
/* Seconds, 0 where there is no clock. */
double hybrid_time(const hybrid_functions *functions);
/* Returns whether that is `until`, or later; the clock is not read where that is INFINITY. */
int hybrid_is_late(const hybrid_functions *functions, double until);

/* Entry j of A'y: here, since a call for each would take as long again. */
static inline double hybrid_entry_of_At(const hybrid_plan *plan, const double *A, const double *y,
                                        int j) {
    double sum = 0.0;
    for (int k = plan->A_starts[j]; k < plan->A_starts[j + 1]; k++)
        sum += A[k] * y[plan->A_rows[k]];
    return sum;
}
/* out = A'y; out = A v; out = W v. */
void hybrid_multiply_At(const hybrid_plan *plan, const double *A, const double *y, double *out);
void hybrid_multiply_A(const hybrid_plan *plan, const double *A, const double *v, double *out);
void hybrid_multiply_W(const hybrid_plan *plan, const double *W, const double *v, double *out);
/* Entry i of W dw + A'dy. */
double hybrid_curvature_of(const hybrid_plan *plan, const double *W, const double *A,
                           const double *dw, const double *dy, int i);

/* slope = gradient + A'y, of f + y'c. */
void hybrid_gradient_of_L(const hybrid_plan *plan, const hybrid_point *at, const double *y,
                          double *slope);
/* The mean size of entries with this sum in units of s_max, at least one. */
static inline double hybrid_error_scale(double sum, int count) {
    double many = count > 1 ? count : 1, s_max = HYBRID_ERROR_S_MAX;
    if (sum <= 0.99 * s_max * many) return 1.0;
    return (sum / many > s_max ? sum / many : s_max) / s_max;
}

/* The largest |gradient + A'y - z_lower + z_upper|, slacks apart, and |c|. */
typedef struct {
    double slope, c;
} hybrid_sizes;

/* The multipliers of bounds, which but those of `count` entries are 0: of `at`, which rises. */
typedef struct {
    double *z_lower, *z_upper; /* n */
    int *at, count;
} hybrid_bound_multipliers;

/* E_0: the scaled optimality error of Waechter and Biegler at nu = 0, with that slope, and what it
 * is made of; `work` has n numbers, and the slope is as it was afterwards. */
double hybrid_scaled_error(const hybrid_form *form, const hybrid_point *at, double *slope,
                           const double *y, const hybrid_bound_multipliers *held, double *work,
                           hybrid_sizes *sizes);
/* Unscaled residuals, rounding included, at an x inside its bounds; `work` has as many numbers as
 * there are variables, and rows, and is left with the slope of L by x. */
void hybrid_residuals_at(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                         const double *lam_g, double *work, hybrid_residuals *found);
/* The residuals for multipliers of the form, of which those sizes are known. If all values are the
 * user's own, no more is needed, and `work` is not left with a slope. Returns whether rounding may
 * explain one that is too large. */
int hybrid_residuals_of(const hybrid_form *form, const hybrid_point *at, const double *y,
                        const hybrid_bound_multipliers *held, const hybrid_sizes *sizes,
                        double *work, hybrid_residuals *found);
/* Returns whether rounding may explain a residual that is too large: 0 for none. */
int hybrid_may_be_rounding(const hybrid_form *form, const hybrid_point *at, const double *lam_g,
                           const hybrid_residuals *found);
/* The largest |multiplier| (distance to the bound that its sign points to). Where the terms of A'y
 * are at most `limit`, -1 for nowhere, a distance that may be rounding counts as zero. `steep`,
 * `sizes`: the largest entry and the terms of rows, NULL for variables. */
double hybrid_complementarity(int count, const double *value, const double *lower,
                              const double *upper, const double *lam, const double *steep,
                              const double *sizes, double limit);
/* The largest residual in units of its tolerance. */
double hybrid_merit(const hybrid_numbers *numbers, const hybrid_residuals *residuals);
/* Copies the point and its first derivatives to the answer, with the sizes of what is there. */
void hybrid_copy_to_answer(const hybrid_form *form, const hybrid_point *at);

/* |g| + |J||x| of each row: its rounding is proportional to that. */
void hybrid_row_sizes(const hybrid_plan *plan, const hybrid_point *at, double *sizes);
/* Leaves out of *found, the residuals as they are, what rounding explains. `slope`: as
 * hybrid_residuals_at leaves it, and overwritten; in it and in `sizes` there is room for as many
 * numbers as there are rows, or variables. */
void hybrid_subtract_rounding(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                              const double *lam_g, double *slope, double *sizes,
                              hybrid_residuals *found);
/* The largest terms of grad f, whose rounding explains a slope after a Newton step from a point; 0
 * if the step is more than rounding of w, or more than the tolerance in an entry. Terms are taken
 * as |W||w|, those of a row as |J||x|. Entries that a bound holds do not count: `pinned` ones, and
 * those whose `D` exceeds the curvature. Either may be NULL. */
double hybrid_settled(const hybrid_form *form, const hybrid_point *from, const double *W,
                      const double *D, const int *pinned, const double *dw);
/* Returns whether all bounds are met to 1e-6, or to rounding of the terms of a row up to `cap`: no
 * more can be known of a large x. `sizes`: work, n_g numbers. */
int hybrid_is_feasible(const hybrid_plan *plan, const hybrid_numbers *of, const hybrid_point *at,
                       double cap, double *sizes);
/* Returns whether f falls in proportion to x: the slope of f along x is a part of f itself. */
int hybrid_falls_outwards(const hybrid_plan *plan, const hybrid_point *at);
/* The ray test at a point: HYBRID_UNBOUNDED, HYBRID_DIVERGED, or HYBRID_SOLVED where it says
 * nothing. `merit`: the largest residual there in units of its tolerance; `sizes`: work, n_g
 * numbers; `far`: overwritten. */
int hybrid_ray_test(hybrid_form *form, const hybrid_point *at, double merit, double *sizes,
                    hybrid_point *far, hybrid_ray *ray);
/* Returns whether f < -limit at a feasible point, HYBRID_UNBOUNDED, or |x| > limit,
 * HYBRID_DIVERGED; else HYBRID_SOLVED. */
int hybrid_divergence_test(const hybrid_plan *plan, const hybrid_numbers *numbers,
                           const hybrid_point *at, double limit, double *sizes);

#endif
