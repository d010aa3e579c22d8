/* Primal-dual iterates (w, y, z), their optimality error, and the KKT matrix. */
#ifndef HYBRID_PRIMAL_DUAL_H
#define HYBRID_PRIMAL_DUAL_H

#include "problem/problem.h"

/* Settings of one phase, by which it differs from the others of its solve. */
typedef struct {
    double relaxation; /* how far bounds are widened, relative */
    double max_time;   /* seconds of this phase; infinite: no limit */
    int t0;            /* steps that were taken before the first iterate */
    int unscaled;      /* whether rows are not scaled */
    int root;          /* whether a root of the rows is found first */
    int cautious;      /* whether by short steps, which stay in the basin of the start */
} hybrid_phase_setup;

/* Pairs that a filter holds at most. */
#define HYBRID_FILTER 128

/* The reference of the progress test: when something last improved, and what it was then. */
typedef struct {
    double nu, theta, f, error;
    int t, made, rounds; /* its step; whether there is one; restorations since then */
} hybrid_progress;

/* One iterate, in the units of the standard form. */
typedef struct {
    double *w, *y, *z_lower, *z_upper; /* n, m, n, n: variables, multipliers of c and of bounds */
    double *filter;                    /* 2 HYBRID_FILTER: pairs (theta, phi) */
    double nu, nu_min;                 /* the barrier parameter and its floor */
    double shift;                      /* sigma, the last one of the inertia correction */
    double theta_start;                /* theta = |c|_1 that has set the filter's scale */
    double theta_cut;                  /* theta before the first of the steps that were cut */
    double alpha, alpha_z;             /* the parts of the last Newton step taken, if it was one */
    hybrid_progress reference;
    int entries;    /* of the filter */
    int indefinite; /* steps in a row with a shift for too many negative eigenvalues */
    int served;     /* shifts in a row that were the first one tried */
    int curved;     /* whether the last step had the right inertia without a shift */
    int tiny, cut;  /* tiny steps in a row, and those that the search cut to a small part */
    int stepped;    /* whether a Newton step has led here */
    int t;          /* steps so far */
} hybrid_iterate;

/* Result of a phase, in arrays of the caller's: hybrid_state_attach. x and the functions of `best`
 * are in the answer: functions that run Python may not be called again. */
typedef struct {
    /* now: the last one, of a proof and where no step led on. best: that with the least residuals;
     * feasible: of the feasible ones that with the least f; nearby: the one a little outside whose
     * multipliers fit. t < 0 where there is none. */
    hybrid_iterate now, best, feasible, nearby;
    double *last_step;   /* n_x: the last step not zero */
    double *x_undefined; /* n_x: the last trial point where a function was not defined, NaN where
                          * there was none */
    hybrid_ray ray;
    hybrid_residuals of_best, of_nearby;
    double least_f;        /* f of feasible */
    int stepped;           /* whether last_step is one */
    int rows_dependent;    /* whether A at the start has dependent rows, if that was to be found */
    int undefined;         /* trial points where a function was not defined */
    int cause;             /* HYBRID_TINY_STEPS, ...: where that has ended the phase */
    int proved;            /* whether |c|_1 is stationary at now: then */
    double *infeasibility; /* m: y, its subgradient there, with A'y = z_lower - z_upper */
} hybrid_state;

/* Factors that have grown more say nothing certain of the inertia, where a pivot is in doubt. */
#define HYBRID_GROWTH 1e7
/* Largest residual of a step, relative to the right-hand side. The filter tests every step, and an
 * error of this size only ends quadratic convergence there. */
#define HYBRID_ROUGH 1e-6

/* Most corrections of a solution by its residual, and, in a fixed order, the residual after whose
 * correction the next is not computed. */
#define HYBRID_CORRECTIONS 5
#define HYBRID_UNCHECKED 1e-7

/* The result of a factorization of K, or of a solution by one. */
enum {
    HYBRID_KKT_RIGHT = 0,         /* m negative eigenvalues; the solution is accurate */
    HYBRID_KKT_WRONG_INERTIA = 1, /* another number of them */
    HYBRID_KKT_SINGULAR = 2,      /* or in doubt */
    HYBRID_KKT_INACCURATE = 3     /* of a solution alone */
};

/* The KKT matrix with entries that are pinned. */
typedef struct {
    double *K;                 /* nnz_K */
    double *soft;              /* nnz_K: with pinned entries of w held by a weight, as factored */
    double weight;             /* 0 where nothing is pinned */
    hybrid_pair at_once;       /* of hybrid_functions */
    int chosen;                /* whether pivots were chosen */
    int precise;               /* whether every row of a solution is to be as exact as it can be */
    hybrid_low_rank *low_rank; /* of the Hessian */
    int changed;               /* whether K has that part beside its nonzeros */
    hybrid_answer *answer;     /* counts what was decided by chosen pivots, and what was in doubt */
    double *factor, *room;
    int *pivots;
    double *right, *solution; /* n + m */
    double *move;             /* n: what pinned entries of w move by */
    int *pinned;              /* n: whether each is */
    int *pins, n_pins;        /* n: which of them are, as the last factorization has it */
    hybrid_inertia inertia;
} hybrid_kkt;

void hybrid_place_kkt(const hybrid_plan *plan, hybrid_arena *arena, hybrid_kkt *kkt);
/* Returns whether the last factorization is singular, or its pivots are in doubt, which is
 * counted. */
int hybrid_is_doubtful(hybrid_kkt *kkt);
/* Factors kkt->K; where weight > 0, in a fixed order kkt->soft in its place. */
void hybrid_decompose(const hybrid_plan *plan, hybrid_kkt *kkt, double weight);
/* Computes kkt->solution of K for kkt->right. Returns HYBRID_KKT_... Chosen pivots, if these were
 * needed, say more of K than the fixed order did: then also another inertia, or singular. */
int hybrid_solve_refined(const hybrid_plan *plan, hybrid_kkt *kkt);
/* Returns whether kkt->solution serves as a step, though it is not that accurate: the filter
 * tests it. */
int hybrid_is_accurate_step(const hybrid_plan *plan, hybrid_kkt *kkt);
/* Corrects it by its residual until the backward error of every row is small. Returns
 * HYBRID_KKT_SINGULAR if it stays large and the solution does not serve as a step. */
int hybrid_refine_rows(const hybrid_plan *plan, hybrid_kkt *kkt);
/* hybrid_solve_refined for K's nonzeros alone, without the part of low rank. */
int hybrid_solve_sparse(const hybrid_plan *plan, hybrid_kkt *kkt);
/* Completes the factorization of K's nonzeros where W has a part of low rank, with `count`
 * entries of w pinned. Returns as hybrid_factor. */
int hybrid_factor_low_rank(const hybrid_plan *plan, hybrid_kkt *kkt, int count);
/* left = right - K x. */
void hybrid_kkt_residual(const hybrid_plan *plan, const hybrid_kkt *kkt, const double *right,
                         const double *x, double *left);
/* Returns whether kkt->solution is accurate; `residual`: its own, relative to kkt->right. */
int hybrid_is_accurate(const hybrid_plan *plan, const hybrid_kkt *kkt, double residual);
/* Factors K(shift, epsilon) with rows and columns of pinned entries those of the identity. Returns
 * HYBRID_KKT_... */
int hybrid_factor_pinned(const hybrid_plan *plan, const double *W, const double *A, double shift,
                         double epsilon, hybrid_kkt *kkt);
/* kkt->right becomes the solution for it, uncorrected: as accurate as the weight of the pins. */
void hybrid_solve_column(const hybrid_plan *plan, hybrid_kkt *kkt);
/* Solves K (dw, dy) = -(force, c) with dw = move for pinned entries. Returns HYBRID_KKT_..., with
 * another inertia than was found before as a wrong one. */
int hybrid_solve_pinned(const hybrid_plan *plan, const double *W, const double *A,
                        const double *force, const double *c, hybrid_kkt *kkt, double *dw,
                        double *dy);

/* A point with what the filter needs of it. */
typedef struct hybrid_trial {
    hybrid_point of;
    struct hybrid_trial *base; /* of the elastic problem: the point of the problem itself */
    double theta;              /* |c|_1 */
    double logs;               /* sum of log(w - lower) + log(upper - w) */
    double linear;             /* sum of w - lower or upper - w where there is one bound alone */
    int outside;               /* whether w is outside a bound by more than rounding */
} hybrid_trial;

/* The Newton direction at an iterate, and the parts of it that the bounds allow. */
typedef struct {
    double *dw, *dy, *dz_lower, *dz_upper; /* n, m, n, n */
    double alpha, alpha_z;
} hybrid_direction;

/* theta and phi_nu at one iterate, for the filter. */
typedef struct {
    double theta, phi;
    double *gradient; /* of phi_nu */
} hybrid_filter_pair;

/* The optimality error E_nu for any nu, in parts: the least and the largest product of a multiplier
 * and its distance, and the scale of products; the larger of the other two parts. The sum of the
 * products is the duality gap. A bound whose size is known to less than the tolerance has no
 * product once it is met. */
typedef struct {
    double least, most, rest, scale, sum;
    int met; /* how many of such bounds are */
} hybrid_error;

/* Points of a phase at one time. */
#define HYBRID_TRIALS 3

/* Memory of a phase: for the limits, the progress test and the rows. */
typedef struct {
    double best_merit;                /* the least of the largest residuals */
    double began, elapsed;            /* the clock at the first call; seconds since then */
    double merit_before;              /* of the iterate before; its x is x_before, n_x */
    double *x_before, *x_now, *w_now; /* n_x, n_x, n: _now, of the iterate whose step is due */
    hybrid_iterate before;            /* that iterate */
    int inspected;                    /* iterates that were inspected */
    int goes_on;                      /* whether the first is one of an earlier call */
    int widened;                      /* whether one was a solution but for the gap, */
    double wide;                      /* which is this, where it is the iterate whose step is due */
    int outward, outward_limit; /* steps of iterates that run away; when their ray is followed */
} hybrid_history;

struct hybrid_phase;

/* The elastic problem of the restoration: see barrier/elastic_problem.c. */
typedef struct {
    struct hybrid_phase *inner, *outer; /* the phase on it, and that on the problem */
    hybrid_plan plan;
    int *rows, *starts;                             /* of its A */
    hybrid_trial bases[HYBRID_TRIALS], *saved_base; /* the points of the problem in its own */
    double *reference, *proximity;                  /* n: w_R where it began, and zeta R^2 */
    double *penalty, *reduced;                      /* m, and the longer of n and m */
    double theta_began, shift; /* theta where it began; sigma of the last factorization */
} hybrid_elastic;

/* The search for the least |c|_2: see feasibility/least_squares.c. */
typedef struct {
    double *z_lower, *z_upper; /* n: its own multipliers of the bounds */
    double *units;             /* n: squared norms of the columns of A */
    double nu, damping;        /* its barrier parameter; the damping in those units */
    double reference;          /* |c|_2^2 when the progress was tested last */
    int cautious;              /* whether by short steps */
    int curved;                /* whether the next step uses the curvature of c */
    int steps;
    int begun;         /* whether it is under way */
    double *slope, *D; /* n */
    int has_least;     /* whether |c|_1 was found stationary, */
    double *least;     /* n: and at which w */
    double *slopes;    /* work of hybrid_violation_slope */
} hybrid_search;

/* A phase: its problem, its iterates and its memory. */
typedef struct hybrid_phase {
    hybrid_form form;
    hybrid_kkt kkt;
    const hybrid_plan *plan;
    const hybrid_numbers *numbers;
    const hybrid_phase_options *options;
    const hybrid_phase_setup *setup;
    hybrid_state *state;
    hybrid_answer *answer;
    hybrid_trial trials[HYBRID_TRIALS];
    /* at: where the iteration is; the others are for trials. */
    hybrid_trial *at, *trial, *corrected;
    hybrid_iterate now, next;
    hybrid_direction direction, other;
    hybrid_filter_pair pair;      /* of the iterate whose step is due, */
    hybrid_error error;           /* and its error */
    double noise, f_start;        /* twice the largest noise of f measured; the first f */
    double *Aty;                  /* n: its A'y */
    double *W, *D, *force, *work; /* work: as long as w, x or g */
    double *residual;             /* m */
    double *sizes;                /* the longer of x and g */
    int *sides;                   /* n: the active set of a solution; work */
    double *dense;                /* (n + 1) m: for the rank of A, where it is full */
    int identity;                 /* whether the identity is to be added to W */
    int damped;                   /* whether the direction is by more than W */
    int without;                  /* steps without a second derivative */
    int small_nu;                 /* whether the first nu, found at x0, is below 0.1 */
    int restoring;                /* 0, or which kind of restoration is under way */
    hybrid_history history;
    hybrid_elastic elastic;
    hybrid_search search;
} hybrid_phase;

static inline void hybrid_swap_trials(hybrid_trial **a, hybrid_trial **b) {
    hybrid_trial *saved = *a;
    *a = *b;
    *b = saved;
}

/* phase->next becomes the iterate. */
static inline void hybrid_accept_next(hybrid_phase *phase) {
    hybrid_iterate saved = phase->now;
    phase->now = phase->next;
    phase->next = saved;
}

/* Says why no step leads on. Returns the status. */
static inline int hybrid_fail(hybrid_phase *phase, int status, int cause) {
    phase->state->cause = cause;
    return status;
}

/* nu of a point of the method that was ended before its solution, 0.0 where (w, z) is none. */
double hybrid_unfinished_nu(const hybrid_form *form, const double *w, const double *z_lower,
                            const double *z_upper);
/* Moves w inside its bounds by push*max(1, |bound|), at most `push` of the interval, and
 * half of it. */
void hybrid_push_inside(const hybrid_form *form, double push, double *w);
/* Keeps each z within a factor of nu/(distance). */
void hybrid_reset_duals(const hybrid_form *form, const hybrid_point *at, double nu, double *z_lower,
                        double *z_upper);
/* Brings each z at least onto the central path of nu. */
void hybrid_to_central_path(const hybrid_form *form, const hybrid_point *at, hybrid_iterate *it);
/* Newton steps of z_lower and z_upper that belong to dw. */
void hybrid_dual_steps(const hybrid_form *form, const hybrid_point *at, const hybrid_iterate *it,
                       hybrid_direction *d);
/* The parts of the step that w and z can take; that of w alone. */
void hybrid_fraction_to_boundary(const hybrid_form *form, const hybrid_point *at,
                                 const hybrid_iterate *it, hybrid_direction *d);
double hybrid_fraction_inside(const hybrid_form *form, const hybrid_point *at, const double *dw,
                              double tau);
/* The largest alpha <= 1 with v + alpha dv >= (1 - tau) v where `has` is set. */
double hybrid_fraction_to_zero(int count, const double *v, const double *dv, double sign,
                               const double *has, double tau);
/* The error of an iterate; leaves A'y in Aty, n numbers. */
void hybrid_kkt_error(const hybrid_form *form, const hybrid_point *at, const hybrid_iterate *it,
                      double *Aty, hybrid_error *found);
/* The gap of phase->error in units of what a solution may leave: the tolerance of one product,
 * relative to max(1, |f|). */
double hybrid_gap(const hybrid_phase *phase);
/* E_nu. */
double hybrid_error_at(const hybrid_error *error, double nu);
/* nu becomes another one, for which the filter is empty. */
void hybrid_set_barrier(hybrid_iterate *it, double nu);

/* Factors K(D + shift, epsilon), or with a penalty of its own for each row; W may be NULL for none.
 * Returns HYBRID_KKT_... */
int hybrid_factor(const hybrid_plan *plan, const double *W, const double *D, double shift,
                  const double *A, double epsilon, const double *penalty, hybrid_kkt *kkt);
/* Solves K (dw, dy) = -(force, c). Returns as hybrid_solve_pinned. */
int hybrid_solve_kkt(const hybrid_plan *plan, const double *force, const double *c, hybrid_kkt *kkt,
                     double *dw, double *dy);
/* D = z_lower/(w - lower) + z_upper/(upper - w); without a bound z is 0. */
void hybrid_barrier_diagonal(const hybrid_form *form, const hybrid_point *at, const double *z_lower,
                             const double *z_upper, double *D);
/* Returns whether a full A has a rank below its number of rows, to rounding; `dense`: (n + 1) m
 * numbers. */
int hybrid_rows_are_dependent(const hybrid_plan *plan, const double *A, double *dense);
/* y minimizing |grad f + A'y - z_lower + z_upper|; zero where an entry exceeds `most`, or in doubt.
 * phase->work has that vector, or its negative. */
void hybrid_least_squares_y(hybrid_phase *phase, const hybrid_point *at, const double *z_lower,
                            const double *z_upper, double most, double *y);
/* hybrid_least_squares_y at the same point for other z, on its factorization. */
void hybrid_least_squares_y_again(hybrid_phase *phase, const hybrid_point *at,
                                  const double *z_lower, const double *z_upper, double most,
                                  double *y);
/* The Hessian of L at the iterate, into W. Where it is not defined W is zero, and phase->identity
 * says that the identity is to be added to it: in some steps of a phase, then it returns
 * HYBRID_UNDEFINED. */
int hybrid_hessian_of_phase(hybrid_phase *phase);
/* Sets the numbers of an iterate to zero. */
void hybrid_clear_iterate(hybrid_iterate *it);
/* Copies an iterate with its arrays; w, where the copy has one, is given apart. */
void hybrid_copy_iterate(const hybrid_plan *plan, const hybrid_iterate *from, const double *w,
                         hybrid_iterate *to);
/* Copies the numbers of an iterate alone; its arrays stay where they are. */
void hybrid_copy_scalars(const hybrid_iterate *from, hybrid_iterate *to);
/* Residuals of an iterate without what rounding explains; sets the answer's multipliers. Returns
 * the largest one with it, in units of its tolerance. */
double hybrid_iterate_residuals(hybrid_phase *phase, const hybrid_point *at,
                                const hybrid_iterate *it, hybrid_residuals *found);

void hybrid_place_iterate(const hybrid_plan *plan, hybrid_arena *arena, hybrid_iterate *it);

#endif
