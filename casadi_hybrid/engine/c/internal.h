/* What the pieces of the engine share, and nobody else needs. */
#ifndef HYBRID_INTERNAL_H
#define HYBRID_INTERNAL_H

#include <math.h>

#include "constants.h"
#include "hybrid.h"

/* A solution of the kernel whose residual, relative to the right-hand side and to the product of
 * the largest entries of K and of the solution, is larger is in doubt. */
#define HYBRID_REFINED 1e-10
/* Factors that have grown more say nothing certain of the inertia, where a pivot is in doubt. */
#define HYBRID_GROWTH 1e6

/* Memory that is handed out piece by piece; without a base it only counts. */
typedef struct {
    double *doubles;
    int *ints;
    long long used_doubles, used_ints;
} hybrid_arena;

double *hybrid_take(hybrid_arena *arena, long long count);
int *hybrid_take_ints(hybrid_arena *arena, long long count);

/* The functions of the standard form at one w, scaled, and the user's own values there. */
typedef struct {
    double f;
    double *w, *gradient, *c, *A;
    double *own_gradient, *own_A; /* where they lie if not in what the first function wrote */
    double *below, *above; /* distances to the bounds, 1 where there is none */
    double raw_f;
    double *x, *raw_gradient, *raw_g;
    double *out;   /* what the first function wrote */
    double *raw_J; /* in it */
    double sum_J;  /* of the |entries| */
} hybrid_point;

/* What W has beside its nonzeros on the plan's pattern, U diag(w) U', and a factorization with it:
 * see low_rank.c. There is room for nothing where all of W is on the pattern. */
typedef struct {
    int rank;              /* columns of U; 0: there is nothing else */
    int negative;          /* negative eigenvalues of K without them */
    double *U, *V;         /* n each: columns, and the same without what is pinned */
    double *w;             /* their weights, none 0 */
    double *Z;             /* n + m each: K^-1 V, for that K */
    double *T, *values;    /* rank each, rank: eigenvectors and eigenvalues of diag(w)^-1 + V'Z */
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
    double *scale_c, *target; /* m */
    double *lower, *upper;    /* n, scaled */
    double *room;             /* n: as exactly are bounds known */
    double *clipped;          /* n_x: the start inside its bounds */
    double *lam, *H;          /* n_g, nnz_H: for the second function */
    double *has_lower, *has_upper; /* n: 1 where there is a bound, else 0 */
    hybrid_low_rank low_rank; /* of the last Hessian */
    int bounds; /* how many there are */
    double relaxation; /* how far they are widened, relative */
    int unscaled;      /* whether rows are as they are */
    int placing;       /* whether a start where a function is not defined is moved */
    int even;          /* whether only those are scaled that are steep, to a slope of one */
    int plain;         /* whether the values are the user's own: all of them, all scales 1 */
} hybrid_form;

void hybrid_place_point(const hybrid_plan *plan, hybrid_arena *arena, hybrid_point *point);
void hybrid_place_form(const hybrid_plan *plan, hybrid_arena *arena, hybrid_form *form);

/* Scales, bounds and the first w (in `first`, where the user's derivatives are those at x0).
 * Returns a status. */
int hybrid_make_form(hybrid_form *form, hybrid_point *start);
/* What the cold mode asks of every bound: has_lower, has_upper, room. */
void hybrid_look_at_bounds(hybrid_form *form);
/* And of every iterate: its distances to them. */
void hybrid_distances(const hybrid_form *form, hybrid_point *point);
/* As exactly are an entry's bounds known. */
static inline double hybrid_room(double lower, double upper) {
    double low = fabs(lower), high = fabs(upper);
    double size = low < high ? low : high;
    size = size < INFINITY ? size : 1.0;
    return HYBRID_FORM_ROOM * (size > 1.0 ? size : 1.0);
}
/* The distance to a bound, 1 where there is none. */
static inline double hybrid_distance(double lower, double upper, double room) {
    double distance = upper - lower;
    distance = distance < INFINITY ? distance : 1.0;
    return distance < room ? room : distance;
}
/* Calls the first function at point->x and spreads what it gives. Returns 0, or 1 where it is not
 * defined. */
int hybrid_first_at(hybrid_form *form, hybrid_point *point);
/* The largest entry of each row of A at the start, unscaled. */
void hybrid_steepness(const hybrid_plan *plan, const hybrid_point *start, double *of_row);
/* The functions at point->w. `known_x`: the x to which the user's values in the point belong, NULL
 * for none. Returns 0, or 1 where they are not defined. */
int hybrid_evaluate(hybrid_form *form, hybrid_point *point, const double *known_x);
/* The Hessian of objective f + y'c, scaled, into W. Returns 0, or 1 where it is not defined. */
int hybrid_hessian(hybrid_form *form, const hybrid_point *at, const double *y, double objective,
                   double *W);
/* That of y'c alone. */
int hybrid_curvature(hybrid_form *form, const hybrid_point *at, const double *y, double *W);
/* (y, z_lower, z_upper) of the standard form for the user's multipliers, and back. Returns in how
 * many entries a bound has one, and says in `held` in which: n numbers, or NULL. */
int hybrid_multipliers_in(const hybrid_form *form, double *y, double *z_lower, double *z_upper,
                          int *held);
void hybrid_multipliers_out(const hybrid_form *form, const hybrid_point *at, const double *y,
                            const double *z_lower, const double *z_upper, double *lam_x,
                            double *lam_g);

/* Seconds, 0 where there is no clock. */
double hybrid_time(const hybrid_functions *functions);
/* Whether that is `until`, or later; the clock is not asked where that is INFINITY. */
int hybrid_late(const hybrid_functions *functions, double until);

/* Entry j of A'y: here, since a call for each would take as long again. */
static inline double hybrid_pull_of(const hybrid_plan *plan, const double *A, const double *y,
                                    int j) {
    double sum = 0.0;
    for (int k = plan->A_starts[j]; k < plan->A_starts[j + 1]; k++)
        sum += A[k] * y[plan->A_rows[k]];
    return sum;
}
/* out = A'y; out = A v; out = W v. */
void hybrid_pull(const hybrid_plan *plan, const double *A, const double *y, double *out);
void hybrid_times_A(const hybrid_plan *plan, const double *A, const double *v, double *out);
void hybrid_times_W(const hybrid_plan *plan, const double *W, const double *v, double *out);
/* Entry i of W dw + A'dy. */
double hybrid_bend_of(const hybrid_plan *plan, const double *W, const double *A, const double *dw,
                      const double *dy, int i);

/* The largest |entry|, NaN where any is. */
double hybrid_largest(int count, const double *v);
/* The largest entry, or 0: a NaN is none. */
double hybrid_most(int count, const double *v);
/* The least entry, or infinity: a NaN is none. */
double hybrid_least(int count, const double *v);
/* The sum of the logarithms. */
double hybrid_logs(int count, const double *v);
/* The product of two vectors. */
double hybrid_dot(int count, const double *a, const double *b);
/* The sum of all |entries|. */
double hybrid_sum(int count, const double *v);
/* The largest by which an entry is beyond its bounds, 0 where none is. */
double hybrid_excess(int count, const double *v, const double *lower, const double *upper);
/* to = from[at], where `at` picks `count` of `size` in their order. */
void hybrid_gather(int count, int size, const int *at, const double *from, double *to);
/* A number, moved into its bounds; and out = v, moved into its bounds. */
static inline double hybrid_between(double value, double lower, double upper) {
    return value < lower ? lower : value > upper ? upper : value;
}
void hybrid_clip(int count, const double *v, const double *lower, const double *upper,
                 double *out);
int hybrid_all_finite(int count, const double *v);

/* slope = gradient + A'y, of f + y'c. */
void hybrid_slope_of_L(const hybrid_plan *plan, const hybrid_point *at, const double *y,
                       double *slope);
/* The mean size of entries with this sum in units of s_max, at least one. */
static inline double hybrid_excess_mean(double sum, int count) {
    double many = count > 1 ? count : 1, s_max = HYBRID_ITERATE_S_MAX;
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
} hybrid_held;
/* E_0: the scaled optimality error of Waechter and Biegler at nu = 0, with that slope, and what it
 * is made of; `work` has n numbers, and the slope is as it was afterwards. */
double hybrid_scaled_error(const hybrid_form *form, const hybrid_point *at, double *slope,
                           const double *y, const hybrid_held *held, double *work,
                           hybrid_sizes *sizes);
/* Unscaled residuals, unexcused, at an x inside its bounds; `work` has as many numbers as there are
 * variables, and rows, and is left with the slope of L by x. Returns 1 where rounding may excuse
 * one that is too large. */
int hybrid_residuals_at(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                        const double *lam_g, double *work, hybrid_residuals *found);
/* The same for multipliers of the form, of which those sizes are known. Where all are the user's
 * own, that is all there is to be known, and `work` is not left with a slope. */
int hybrid_residuals_of(const hybrid_form *form, const hybrid_point *at, const double *y,
                        const hybrid_held *held, const hybrid_sizes *sizes, double *work,
                        hybrid_residuals *found);
/* What rounding may leave at most where terms cancel; 0 where no tolerance notices. */
double hybrid_rounding(double product, double other);
/* The largest residual in units of its tolerance. */
double hybrid_merit(const hybrid_numbers *numbers, const hybrid_residuals *residuals);
/* Copies the point and its first derivatives to the answer, with the sizes of what is there. */
void hybrid_deliver(const hybrid_form *form, const hybrid_point *at);

/* Of solutions in a fixed order: where the next correction is not looked at, and the most. */
#define HYBRID_UNSEEN 1e-7
#define HYBRID_CORRECTIONS 5

/* The kernel with entries that are pinned. */
typedef struct {
    double *K;              /* nnz_K */
    double *soft;           /* nnz_K: with pinned entries of w held by a weight, as is factored */
    double weight;          /* 0 where nothing is pinned */
    int chosen;             /* whether pivots were chosen */
    int asked;              /* whether the last word is the caller's: its factor solves */
    const hybrid_outside_kernel *outside; /* the caller's kernel; NULL for none */
    hybrid_low_rank *low_rank; /* of the Hessian */
    int changed;            /* whether K has a change of low rank beside its nonzeros */
    hybrid_answer *answer;  /* counts what was decided by chosen pivots, and by the caller's */
    double *factor, *room;
    int *pivots;
    double *right, *solution; /* n + m */
    double *move;             /* n: what pinned entries of w move by */
    int *pinned;              /* n */
    int *pins, n_pins;        /* n: which of them are, as the last factorization has it */
    hybrid_inertia inertia;
} hybrid_kernel;

void hybrid_place_kernel(const hybrid_plan *plan, hybrid_arena *arena, hybrid_kernel *kernel);
/* What of a solve the kernel has to know: the caller's own, and where is counted who decides. */
void hybrid_attend(hybrid_form *form, hybrid_kernel *kernel);
/* Has the caller's kernel factor kernel->K; kernel->inertia says what it found. Returns 0 with m
 * negative eigenvalues, 1 with another number, 2 where it is singular, 3 where it has no answer. */
int hybrid_ask(const hybrid_plan *plan, hybrid_kernel *kernel);
/* kernel->solution of K for kernel->right by the caller's kernel, which is asked now where it was
 * not before. Returns as hybrid_ask. */
int hybrid_ask_solution(const hybrid_plan *plan, hybrid_kernel *kernel);
/* Factors kernel->K; where weight > 0, in a fixed order kernel->soft in its place. */
void hybrid_decompose(const hybrid_plan *plan, hybrid_kernel *kernel, double weight);
/* kernel->solution of K for kernel->right. Returns 0; where pivots had to be chosen, which says more
 * of K than the fixed order did: 1 with another inertia, 2 where it is singular; 3 in doubt. */
int hybrid_resolve(const hybrid_plan *plan, hybrid_kernel *kernel);
/* The same of K's nonzeros, without a change of low rank. */
int hybrid_resolve_alone(const hybrid_plan *plan, hybrid_kernel *kernel);
/* Whether kernel->solution is accurate; `residual`: its own, relative to kernel->right. */
int hybrid_refined(const hybrid_plan *plan, const hybrid_kernel *kernel, double residual);
/* Factors K(shift, epsilon) with rows and columns of pinned entries those of the identity.
 * Returns 0 with m negative eigenvalues, 1 with another number, 2 where it is singular, 3 in
 * doubt: where the caller's kernel has no answer either. */
int hybrid_factor_pinned(const hybrid_plan *plan, const double *W, const double *A, double shift,
                         double epsilon, hybrid_kernel *kernel);
/* kernel->right becomes K's answer to it, once and as accurate as the weight of what is pinned. */
void hybrid_answer_to(const hybrid_plan *plan, hybrid_kernel *kernel);
/* Solves K (dw, dy) = -(force, c) with dw = move where pinned. Returns as hybrid_resolve. */
int hybrid_solve_pinned(const hybrid_plan *plan, const double *W, const double *A,
                        const double *force, const double *c, hybrid_kernel *kernel, double *dw,
                        double *dy);

/* Changes of the set for which one factorization serves. */
#define HYBRID_CHANGES 16

/* What the set that was factored last, the base, says of others: see changes.c. */
typedef struct {
    double *base;     /* n: dw where free, the slope where pinned */
    double *columns;  /* n each: how the base answers to a unit of each change */
    double *sizes;    /* the largest number of each */
    int *of, known;   /* the entries whose columns are known */
    int *used, count; /* the columns of the changes of now */
    double *L;        /* the factors of their Schur complement */
    double *units;    /* how much of each */
    int usable;       /* whether there is a base */
} hybrid_changes;

/* The quadratic model at an iterate. */
typedef struct {
    hybrid_kernel kernel;
    hybrid_changes changes;
    double *W, *force;        /* nnz_W; n: the gradient of f + y'c */
    double *dw, *dy;          /* its solution with the bounds pinned */
    double *z;                /* n: multipliers of pinned bounds */
    int *at_lower, *at_upper; /* n: the set */
    int *wrong, count;        /* n: what is wrong with it, and how much */
    int remedy;               /* the first of the remedies for a singular kernel that is of use */
    double shift;             /* what that adds to the diagonal of W */
    double until;             /* the clock's time from which on nothing begins */
    double *first_dw, *first_z;
    int *first_lower, *first_upper, *first_wrong; /* the same of the first set */
    double *walk_w, *walk_z;                      /* how far the walk has come */
} hybrid_model;

void hybrid_place_model(const hybrid_plan *plan, hybrid_arena *arena, hybrid_model *model);
/* From W, force and the first guess of the set: the solution and its set. Returns a status. */
int hybrid_solve_model(hybrid_model *model, hybrid_form *form, const hybrid_point *at,
                       const double *z_lower, const double *z_upper);
void hybrid_place_changes(const hybrid_plan *plan, hybrid_arena *arena, hybrid_changes *changes);
/* The set that was factored last, and its dw and z, become the base. */
void hybrid_begin_changes(const hybrid_plan *plan, hybrid_model *model);
/* dw and z of the set by the base. Returns 0, or 1 with nothing changed but z where it needs a
 * factorization of its own. */
int hybrid_changed(hybrid_model *model, const hybrid_form *form, const hybrid_point *at);
/* (dw, dy) by the last factorization for model->force and the c of an iterate. Returns a status. */
int hybrid_pinned_solution(hybrid_model *model, hybrid_form *form, const hybrid_point *at);
/* Whether w + dw violates a bound by more than rounding; model->z is lost. */
int hybrid_outside(const hybrid_model *model, const hybrid_form *form, const hybrid_point *at);

#endif
