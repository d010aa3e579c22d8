/* The solver of casadi_hybrid as a library in C99: the public header.
 *
 *     min f(x, p)   s.t.   lbg <= g(x, p) <= ubg,   lbx <= x <= ubx
 *
 * with L = f + lam_g'g + lam_x'x: a multiplier is positive at an active upper bound and negative at
 * an active lower one. An equation is a row with lbg = ubg. The solver works on the standard form
 *
 *     min f(w)   s.t.   c(w) = 0,   lower <= w <= upper,   w = (free variables, slacks),
 *
 * whose f and rows are scaled; all that goes in and comes out is in the user's units.
 *
 * Nothing is allocated; there are no globals, no input and no output. To solve:
 *
 *     hybrid_plan plan;            the structure of the problem, without numbers; made once
 *     hybrid_functions functions;  f, g and their derivatives, by pointers to functions
 *     hybrid_options options;      how phases begin; made once
 *     hybrid_numbers numbers;      start, parameters, bounds, multipliers, tolerances, limits
 *     hybrid_answer answer;        its arrays are the caller's
 *
 *     hybrid_solve_memory(&plan, &options, &n_bytes, &n_doubles, &n_ints);
 *     status = hybrid_solve(&plan, &functions, &numbers, &options, bytes, doubles, ints, &answer);
 *
 * with bytes (aligned as malloc does), doubles and ints of at least these lengths, which may hold
 * anything before. Threads may share a plan and options, which are only read, and constant memory
 * will do for them; each needs memory, functions and an answer of its own. Arrays are plain and
 * indices begin at 0. A pointer of which nothing else is said may not be NULL, unless its array is
 * empty. Times are in seconds. */
#ifndef HYBRID_H
#define HYBRID_H

#include "ldl.h"

#ifdef __GNUC__ /* the rest of the core is hidden where it is compiled with -fvisibility=hidden */
#pragma GCC visibility push(default)
#endif

/* Raised whenever a structure or the meaning of a field changes. */
#define HYBRID_INTERFACE_VERSION 25

/* --- The functions of the problem ------------------------------------------------------------- */

/* A function of the problem: numbers in, all nonzeros of its outputs out, one output after the
 * other. Returns 0, or another number if it could not be evaluated. Such a trial point is refused,
 * and one with a number that is not finite.
 *   first:  (x, p) -> f, grad f, g, J: 1 + nnz_gradient + nnz_g + nnz_J numbers
 *   second: (x, lam_g, p) -> the Hessian of L by x, both triangles: nnz_H numbers
 *   values: (x, p) -> f, g: 1 + nnz_g numbers, for trial points; the first function is called at
 *           accepted ones
 * The nonzeros are those of the plan, J and the Hessian column by column. `self`: that of
 * hybrid_functions. */
typedef int (*hybrid_first)(void *self, const double *x, const double *p, double *out);
typedef int (*hybrid_second)(void *self, const double *x, const double *lam_g, const double *p,
                             double *out);

/* The numbers of one row, which describe an iterate:
 *   0  iter                 steps of the solve
 *   1  obj                  f
 *   2  inf_pr               largest violation of bounds and rows
 *   3  inf_du               largest |grad f + J'lam_g + lam_x|
 *   4  compl                largest |multiplier * distance to its bound|
 *   5  mu                   barrier parameter; 0 of a solution that SQP has found
 *   6  d_norm               largest |x - x before|
 *   7  alpha_pr, 8 alpha_du parts of the primal and the dual step taken; NaN in a restoration
 *   9  regularization_size  sigma, the shift of W
 *   10                      seconds since the solve began */
#define HYBRID_ROW 11

/* One iterate as it is shown to an observer, in the user's units. */
typedef struct {
    const double *row, *x, *g, *lam_x, *lam_g; /* HYBRID_ROW, n_x, n_g, n_x, n_g */
    int restoring;                             /* whether the violation alone is being reduced */
} hybrid_view;

/* The observer of a solve. Rows of iterates are written one after another into `rows`. If there is
 * no room for another one, `full` is called. It empties the rows (count = 0) or hands over others,
 * and returns 0. If it returns another number, no more rows are written. The caller sets the fields
 * up to `count`, hybrid_solve the rest.
 *   look:        called with each iterate; another number than 0 ends the solve
 *   interrupted: called every 0.1 s or so; likewise */
typedef struct {
    int (*look)(void *self, const hybrid_view *view); /* NULL: none */
    int (*interrupted)(void *self);                   /* NULL: none */
    int (*full)(void *self);                          /* NULL: later rows are lost */
    void *self;
    double *rows;        /* HYBRID_ROW * capacity */
    int capacity, count; /* rows that there is room for, and that are written */
    int before;          /* steps of the solve before this phase */
    int last;            /* the step of the last row */
    int shown;           /* rows of this solve */
    int ended;           /* whether the solve is to end */
    double seconds;      /* of the solve before this phase */
    double asked;        /* the clock when `interrupted` was called last */
} hybrid_observer;

/* The last points of a solve with first derivatives. Their differences, the secant pairs, make a
 * Hessian if there are no second derivatives: see problem/quasi_newton.c. The memory is the
 * caller's. hybrid_sqp begins without points, and so does a phase. A phase from multipliers nearby
 * goes on with the points of the hybrid_sqp before it. */
typedef struct {
    double *doubles; /* as many as hybrid_secants_doubles says */
    int count, last; /* points that are known, and the place of the last */
} hybrid_secants;

typedef struct {
    hybrid_first first;
    hybrid_second second;      /* NULL where the plan has limited_memory */
    void *self;                /* handed to all three */
    double (*now)(void);       /* a clock in seconds; NULL: no time is measured or limited */
    hybrid_pair at_once;       /* does two jobs; NULL: one after the other, to the same bits */
    hybrid_observer *observer; /* NULL: none */
    hybrid_secants *secants;   /* where the plan has limited_memory, else NULL */
    hybrid_first values;       /* NULL: the first function is called at trial points */
} hybrid_functions;

/* --- The structure of the problem ------------------------------------------------------------- */

/* The kinds of variables and rows, which decide the structure of the standard form. */
enum { HYBRID_OPEN = 0, HYBRID_EQUAL = 1, HYBRID_ABSENT = 2 };

/* The structure of a problem for bounds of certain kinds, without numbers. */
typedef struct {
    /* The user's problem: variables, rows, parameters. */
    int n_x, n_g, n_p;
    /* Nonzeros of the outputs of the first function, after the one of f, and of the second. */
    int nnz_gradient, nnz_g, nnz_J, nnz_H;
    const int *gradient_at, *g_at; /* nnz_gradient, nnz_g: the entry of each nonzero, increasing */
    const int *J_rows, *J_cols;    /* nnz_J: of each nonzero, column by column */
    const signed char *kind_x;     /* n_x: HYBRID_OPEN, or HYBRID_EQUAL where lbx = ubx */
    const signed char *kind_g;     /* n_g: also HYBRID_ABSENT where both bounds are infinite */

    /* The standard form: sizes of w and c; w = (free variables, slacks). A fixed variable is not in
     * it, nor is one that stands in no row and not in f: it stays where it is. Each inequality has
     * a slack. */
    int n_free, n, m, n_slack;
    const int *free_at;   /* n_free: the variable of each entry of w, increasing */
    const int *row_at;    /* m: the row of g of each row of c, increasing */
    const int *slack_row; /* n_slack: the row of c that has the slack */
    /* A = dc/dw: the nonzeros of J in it, then one of -1 for every slack. */
    int kept_A, nnz_A;
    const int *A_of_J;          /* kept_A: which nonzero of J */
    const int *A_rows, *A_cols; /* nnz_A: column by column */
    const int *A_starts;        /* n + 1: where each column begins */
    /* W: the Hessian of L by w, both triangles. */
    int nnz_W;
    const int *W_of_H, *W_rows, *W_cols; /* nnz_W: which nonzero of the Hessian; column by column */
    const int *W_starts;                 /* n + 1: where each column begins */
    const int *W_by_row, *row_starts;    /* nnz_W, n + 1: its nonzeros row by row */

    /* The KKT matrix K = [W + D, A'; A, -E], its lower triangle in compressed columns, every
     * diagonal entry present and the first of its column; its pattern: ldl.starts and ldl.rows. */
    int nnz_K;
    int lower_W;                    /* nonzeros of W in the lower triangle */
    const int *lower_of_W, *K_of_W; /* lower_W: which nonzero of W, and which of K it is */
    const int *K_of_A;              /* nnz_A: which nonzero of K */
    const int *K_diagonal;          /* n + m: which nonzero of K */
    /* Where there are no second derivatives: blocks of variables that the Lagrangian couples by
     * more than a sum. Of a small one all entries are nonzeros of the Hessian, of a large one the
     * diagonal. */
    int limited_memory; /* whether there are none */
    int differenced;    /* whether first derivatives are finite differences */
    int n_blocks;
    const int *block_starts, *members; /* n_blocks + 1; the variables of each, increasing */
    const int *H_starts;               /* n_x + 1: where each column of the Hessian begins */
    hybrid_ldl ldl;                    /* of K, for chosen pivots: made by hybrid_ldl_analyse */
    hybrid_fixed fixed; /* of K, for a fixed order: by hybrid_fixed_analyse; size 0 for none */
} hybrid_plan;

/* --- The numbers of one solve ----------------------------------------------------------------- */

typedef struct {
    /* n_x, n_p, n_x, n_x, n_g, n_g, n_x, n_g. Bounds may be infinite, and are of the plan's kinds;
     * multipliers that are all zero are none. */
    const double *x0, *p, *lbx, *ubx, *lbg, *ubg, *lam_x0, *lam_g0;
    /* n_x, n_g: the working set to try first; for each bound -1 at the lower one, 1 at the upper
     * one, 2 where both are equal, 0 at none. NULL, both of them: that of the multipliers. */
    const signed char *side_x, *side_g;
    double tol;                                        /* of the scaled optimality error E_0 */
    double feasibility, stationarity, complementarity; /* of the residuals, in the user's units */
    int max_iter;                                      /* Newton steps of the solve */
    double max_time;                                   /* seconds; 0: no limit */
} hybrid_numbers;

/* --- The answer ------------------------------------------------------------------------------- */

/* The status of a solve or a phase, which is returned. */
enum {
    HYBRID_SOLVED = 0,
    HYBRID_OTHER_PATTERN = 1, /* bounds of other kinds than the plan was made for */
    HYBRID_UNDEFINED = 2,     /* a function is not defined where it was needed */
    HYBRID_NO_SET = 3,        /* no active set of the quadratic model was found */
    HYBRID_NOT_NEARER = 4,    /* steps did not get nearer */
    HYBRID_LIMIT = 5,         /* max_iter, or patience */
    HYBRID_LARGE = 6,         /* a solution, with multipliers so large that there may be smaller */
    HYBRID_BAD_NUMBERS = 7,   /* numbers that are not finite, or bounds that cross */
    HYBRID_NO_GUESS = 8,      /* neither multipliers nor a working set to begin with */
    HYBRID_BLOCKED = 10,      /* the filter accepts no step, or nothing improves any more */
    HYBRID_INFEASIBLE = 11,   /* the violation is stationary: at the last iterate of the phase */
    HYBRID_STALLED = 12,      /* no step leads on from the last iterate of the phase */
    HYBRID_UNBOUNDED = 13,    /* f falls without bound: the last iterate is the proof */
    HYBRID_DIVERGED = 14,     /* the iterates go to infinity along points that prove nothing */
    HYBRID_LATE = 15,         /* max_time */
    HYBRID_STOPPED = 16       /* the observer has ended it */
};

/* The cause of a phase's end with HYBRID_INFEASIBLE or HYBRID_STALLED. */
enum {
    HYBRID_TINY_STEPS = 1,        /* the steps have become tiny */
    HYBRID_WRONG_INERTIA = 2,     /* no shift of the Hessian gives K m negative eigenvalues */
    HYBRID_NO_PROGRESS = 3,       /* nothing improves any more */
    HYBRID_NO_DESCENT = 4,        /* no step decreases the barrier function */
    HYBRID_SLOW_VIOLATION = 5,    /* the violation hardly falls any more */
    HYBRID_ROUNDED_VIOLATION = 6, /* what is left of it is rounding */
    HYBRID_LEAST_SQUARES = 7,     /* |c|_2 is stationary */
    HYBRID_LEAST_SUM = 8          /* |c|_1 is stationary */
};

/* The reason to stop. */
enum {
    HYBRID_STOP_CONVERGED = 0,
    HYBRID_STOP_ITERATION_LIMIT = 1,
    HYBRID_STOP_TIME_LIMIT = 2,
    HYBRID_STOP_DIVERGED = 3,
    HYBRID_STOP_EVALUATION_ERROR = 4,
    HYBRID_STOP_STOPPED_BY_USER = 5,
    HYBRID_STOP_LOCALLY_INFEASIBLE = 6,
    HYBRID_STOP_UNBOUNDED = 7,
    HYBRID_STOP_NO_MULTIPLIERS = 8,
    HYBRID_STOP_STALLED = 9
};

/* The point of the answer. */
enum {
    HYBRID_KKT_POINT = 0,
    HYBRID_FRITZ_JOHN_POINT = 1, /* feasible, with multipliers that grow without bound */
    HYBRID_FEASIBLE_NOT_STATIONARY = 2,
    HYBRID_STATIONARY_NOT_FEASIBLE = 3,
    HYBRID_INFEASIBLE_STATIONARY = 4, /* a stationary point of the violation */
    HYBRID_NOT_CONVERGED = 5,
    HYBRID_UNDEFINED_POINT = 6 /* a function is not defined there */
};

/* Second-order conditions that were seen at a KKT point. */
enum {
    HYBRID_FIRST_ORDER = 0, /* they were not looked at, or that was in vain */
    HYBRID_NECESSARY = 1,   /* the reduced Hessian has no negative direction */
    HYBRID_SUFFICIENT = 2,  /* nor a flat one */
    HYBRID_NEGATIVE = 3     /* it has a negative direction, and no lower KKT point was found */
};

/* The method of a phase. */
enum {
    HYBRID_INTERIOR = 0,          /* the interior-point method */
    HYBRID_ACTIVE_SET = 1,        /* SQP from given multipliers, then that method from them */
    HYBRID_LEAST_MULTIPLIERS = 2, /* the least ones on the active set of a solution */
    HYBRID_PERTURBED = 3,         /* SQP for equations that keep their values at the start */
    HYBRID_CURVATURE = 4          /* second-order conditions at a solution: no steps */
};

/* f, and the largest violation of bounds and rows, |grad f + J'lam_g + lam_x|, and product of a
 * multiplier and the distance to its bound. They are without the part that rounding explains. */
typedef struct {
    double f, feasibility, stationarity, complementarity;
} hybrid_residuals;

/* The answer of a solve; its arrays are the caller's. hybrid_sqp and a phase leave the fields of a
 * whole solve as they were: stop, point, method, phases, cause, stepped, step, x_undefined, last,
 * certificate, undefined, ended and rows. */
typedef struct {
    double *x, *g, *lam_x, *lam_g; /* n_x, n_g, n_x, n_g */
    double *gradient, *J;          /* n_x, nnz_J: first derivatives at x */
    double *gradient0, *J0;        /* n_x, nnz_J: the same at the start */
    double *x_start;               /* n_x: the start: x0, or where functions are not defined there,
                                    * a point within its bounds; NULL: unwanted */
    double *step;                  /* n_x: the last step to x that was not zero; NULL: unwanted */
    double *x_undefined;           /* n_x: the last trial point where a function was not defined,
                                    * NaN for none; NULL: unwanted */
    double *last;                  /* 2 n_x + n_g: x, lam_x and lam_g of the last iterate where
                                    * `stop` is a limit; NULL: unwanted */
    hybrid_residuals start, end;   /* at the start, and at x */
    int status;                    /* what is returned */
    int steps;                     /* Newton steps */
    int firsts, seconds, values;   /* evaluations of the three functions */
    int factors;                   /* factorizations of K */
    int chosen;                    /* of them those that chosen pivots have decided, where a
                                    * solution needed them too */
    int doubts;                    /* factorizations and solutions in doubt, which
                                    * counted as singular */
    double in_firsts, in_seconds, in_values; /* seconds in them */
    double elapsed;                          /* seconds of the solve */
    double moved;                            /* of SQP: largest |x - x0| */
    double largest_lam;                      /* the largest of |lam_x| and |lam_g| */
    int huge;           /* whether that is far more than the gradient of f needs */
    int stop;           /* HYBRID_STOP_...: why the solve has stopped */
    int point;          /* HYBRID_KKT_POINT, ...: what x is */
    int method;         /* HYBRID_INTERIOR, ...: what has found it */
    int phases;         /* that were made */
    int order;          /* HYBRID_FIRST_ORDER, ...: which conditions were seen at x */
    double newton;      /* estimated distance of x from a solution, relative to
                                    * max(1, |x|), where the gradient of f at the start hardly
                                    * exceeded tol; else NaN */
    int cause;          /* HYBRID_TINY_STEPS, ...: where no step led on from x; else 0 */
    int stepped;        /* whether `step` is one */
    double certificate; /* the slope of the violation at x, between 0 (stationary) and
                                    * 1; NaN where x is feasible */
    int undefined;      /* trial points where a function was not defined */
    int ended;          /* steps of the solve until the end of the phase that found x */
    int rows;           /* iterates that the observer was shown */
} hybrid_answer;

/* --- The solve: all phases, one after another ------------------------------------------------- */

/* Start and limits of a phase. */
typedef struct {
    double nu;         /* the first barrier parameter: 1e-6 from multipliers; 0: found at x0 */
    double nu_min;     /* its floor: min(1e-9, tol / 10), 1e-15 at least */
    double push;       /* least distance of the start from its bounds, relative: 1e-2 */
    double lam_most;   /* multipliers of a start from x0 are no larger, else zero: 1000 */
    int corrections;   /* most second-order corrections of a step: 4 */
    double divergence; /* largest |x| and -f of an iterate: 1e20 */
    int patience;      /* steps of this phase: 400 from x0, 200 from multipliers */
    int near;          /* whether the multipliers are those of a problem nearby */
    int dense;         /* whether the rank of A at the start is found: for n_x + n_g <= 150 or so */
    int feasibility;   /* whether there is no objective */
} hybrid_phase_options;

/* The phases of a solve; `dense` is the same for all. */
typedef struct {
    hybrid_phase_options first; /* from x0 alone */
    hybrid_phase_options near;  /* from multipliers that did not lead on by active sets */
    int linear;                 /* whether g is affine */
} hybrid_options;

/* Bytes, doubles and ints of memory that hybrid_solve needs. */
void hybrid_solve_memory(const hybrid_plan *plan, const hybrid_options *options, long long *bytes,
                         long long *doubles, long long *ints);
/* Solves, with the best point of all phases in the answer, whatever they have come to. Returns
 * HYBRID_SOLVED where that is a KKT point; HYBRID_BAD_NUMBERS or HYBRID_OTHER_PATTERN where nothing
 * was begun; else the status of the phase that has found the point. */
int hybrid_solve(const hybrid_plan *plan, const hybrid_functions *functions,
                 const hybrid_numbers *numbers, const hybrid_options *options, void *bytes,
                 double *doubles, int *ints, hybrid_answer *answer);

/* --- SQP alone -------------------------------------------------------------------------------- */

/* Doubles that secant pairs need; 0 where there are second derivatives. */
long long hybrid_secants_doubles(const hybrid_plan *plan);

/* Doubles and ints of memory that hybrid_sqp needs. */
void hybrid_sqp_memory(const hybrid_plan *plan, long long *doubles, long long *ints);

/* SQP from given multipliers: full Newton steps on an active set that is predicted anew at every
 * step. Returns answer->status. */
int hybrid_sqp(const hybrid_plan *plan, const hybrid_functions *functions,
               const hybrid_numbers *numbers, double *doubles, int *ints, hybrid_answer *answer);

/* --- For who calls the core ------------------------------------------------------------------- */

/* Writes the row of an iterate, its steps counted through the solve, and calls the observer.
 * Returns whether the solve is to end. */
int hybrid_observe(hybrid_observer *observer, const hybrid_view *view);
/* Returns whether it is, as far as that is known without an iterate: calls `interrupted` now and
 * then. */
int hybrid_is_interrupted(hybrid_observer *observer, double now);

/* A function behind CasADi's buffers: inputs are copied to fixed places, `evaluate` is called on
 * `raw`, and the outputs lie in `out`. */
typedef struct {
    void (*evaluate)(void *raw);
    void *raw;
    double *inputs[3];
    int sizes[3]; /* of the inputs */
    const double *out;
    int size; /* of the outputs */
} hybrid_buffer;

typedef struct {
    hybrid_buffer first, second;
} hybrid_buffers;

/* `self` is a hybrid_buffers. */
int hybrid_buffered_first(void *self, const double *x, const double *p, double *out);
int hybrid_buffered_second(void *self, const double *x, const double *lam_g, const double *p,
                           double *out);
/* HYBRID_INTERFACE_VERSION of the sources that the library was compiled from. */
int hybrid_interface_version(void);

/* a*b - c with the product rounded before the difference is taken: for a self-test. */
double hybrid_rounded_difference(double a, double b, double c);

/* Seconds of a clock that only goes forward. */
double hybrid_now(void);
/* Does two jobs by two threads, or by one where no other is to be had. For hybrid_functions. */
void hybrid_at_once(hybrid_job job, void *one, void *other);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
