/* The engine: the method of casadi_hybrid in C.
 *
 * No allocation, no globals, no input or output: everything is handed in. A plan says what of a
 * problem does not depend on numbers; it is read only, plain arrays, and may be shared by threads
 * or lie in read-only memory. A space is the memory of one solve at a time. Functions of the
 * problem are called through pointers.
 *
 * Signs and names are those of the Python package: L = f + lam_g'g + lam_x'x; the standard form is
 * min f(w) s.t. c(w) = 0, lower <= w <= upper with w = (free variables, slacks).
 */
#ifndef HYBRID_H
#define HYBRID_H

#include "ldl.h"

#ifdef __GNUC__ /* the rest of the core is hidden where it is compiled with -fvisibility=hidden */
#pragma GCC visibility push(default)
#endif

/* Raised whenever a structure or the meaning of a field changes. */
#define HYBRID_INTERFACE_VERSION 13

/* How one function of the problem is evaluated: numbers in, all nonzeros of its outputs out, one
 * output after the other. Returns 0, or another number where it could not be evaluated.
 *   first:  (x, p) -> f, grad f, g, J        second: (x, lam_g, p) -> the Hessian of L */
typedef int (*hybrid_first)(void *self, const double *x, const double *p, double *out);
typedef int (*hybrid_second)(void *self, const double *x, const double *lam_g, const double *p,
                             double *out);

/* Numbers of one row: iter, obj, inf_pr, inf_du, compl, mu, d_norm, alpha_pr, alpha_du,
 * regularization_size, and the seconds since the start of the solve. */
#define HYBRID_ROW 11

/* One iterate as an observer sees it, in the user's units. */
typedef struct {
    const double *row, *x, *g, *lam_x, *lam_g;
    int restoring; /* whether the violation alone is being reduced */
} hybrid_view;

/* The observer. Rows of iterates are written one after another; where there is no room for another
 * one, `full` is called, which makes some, or says otherwise, and then they are not written.
 *   look: called with each iterate. Returns 0, or another number to end the solve
 *   interrupted: called every 0.1 s or so. Returns as look */
typedef struct {
    int (*look)(void *self, const hybrid_view *view); /* NULL: nobody asks */
    int (*interrupted)(void *self);                   /* likewise */
    int (*full)(void *self);                          /* likewise */
    void *self;
    double *rows;
    int capacity, count;
    int before;    /* steps of the solve before this run */
    int last;      /* the step of the last row */
    int shown;     /* rows of this solve */
    int ended;     /* whether the solve is to end */
    double seconds; /* of the solve before this run */
    double asked;   /* the clock when `interrupted` was called */
} hybrid_observer;

/* The last points of a solve with first derivatives, from whose differences, the secant pairs, a
 * Hessian is made where there are no second derivatives: see problem/quasi_newton.c. Memory of the
 * caller's, between whose runs it is kept: hybrid_sqp begins without points, and so does a run,
 * but for one from multipliers nearby, which goes on with those of the hybrid_sqp before it. */
typedef struct {
    double *doubles; /* as many as hybrid_secants_doubles says */
    int count, last; /* points that are known, and the place of the last */
} hybrid_secants;

typedef struct {
    hybrid_first first;
    hybrid_second second;
    void *self;
    double (*now)(void); /* seconds, for the statistics; NULL: they are not measured */
    hybrid_observer *observer; /* NULL: nobody looks on */
    hybrid_secants *secants; /* where there are no second derivatives; NULL: `second` is called */
} hybrid_functions;

/* What a row or a variable is: it decides the standard form's structure. */
enum { HYBRID_OPEN = 0, HYBRID_EQUAL = 1, HYBRID_ABSENT = 2 };

typedef struct {
    /* The user's problem: variables, rows, parameters. */
    int n_x, n_g, n_p;
    /* Nonzeros of the outputs of the first function, after the one of f, and of the second. */
    int nnz_gradient, nnz_g, nnz_J, nnz_H;
    const int *gradient_at, *g_at; /* the entry of each nonzero */
    const int *J_rows, *J_cols;    /* of each nonzero, column by column */
    const signed char *kind_x;     /* n_x: HYBRID_OPEN, or HYBRID_EQUAL where fixed */
    const signed char *kind_g;     /* n_g: also HYBRID_ABSENT where there is no bound */

    /* The standard form: sizes of w and c; w = (free variables, slacks). A variable that stands in
     * no row and not in f is none of them, and stays where it is. */
    int n_free, n, m, n_slack;
    const int *free_at;   /* n_free: the variable of each entry of w */
    const int *row_at;    /* m: the row of g of each row of c */
    const int *slack_row; /* n_slack: the row of c that has the slack */
    /* A = dc/dw: the nonzeros of J in it, then one of -1 for every slack. */
    int kept_A, nnz_A;
    const int *A_of_J; /* kept_A: which nonzero of J */
    const int *A_rows, *A_cols;   /* column by column */
    const int *A_starts;          /* n + 1: where each column begins */
    /* W: the free part of the Hessian, both triangles. */
    int nnz_W;
    const int *W_of_H, *W_rows, *W_cols; /* column by column */
    const int *W_starts;                 /* n + 1: where each column begins */
    const int *W_by_row, *row_starts;    /* nnz_W, n + 1: its nonzeros row by row */

    /* The KKT matrix K = [W + D, A'; A, -E], its lower triangle. */
    int nnz_K;
    int lower_W;                     /* nonzeros of W in the lower triangle */
    const int *lower_of_W, *K_of_W;  /* lower_W: which nonzero of W, and where it goes in K */
    const int *K_of_A;               /* nnz_A */
    const int *K_diagonal;           /* n + m */
    /* Where there are no second derivatives: blocks of variables that the Lagrangian couples by
     * more than a sum. Of most all entries are nonzeros of the Hessian, of large ones the
     * diagonal. */
    int limited_memory; /* whether there are none */
    int differenced;    /* whether first derivatives are finite differences */
    int n_blocks;
    const int *block_starts, *members; /* n_blocks + 1; the variables of each, increasing */
    const int *H_starts;               /* n_x + 1: where each column of the Hessian begins */
    hybrid_ldl ldl;     /* with pivots that are chosen */
    hybrid_fixed fixed; /* in a fixed order */
} hybrid_plan;

/* The numbers of one solve, in the user's units. */
typedef struct {
    const double *x0, *p, *lbx, *ubx, *lbg, *ubg, *lam_x0, *lam_g0;
    /* The working set to try first by side, -1, 0, 1 or 2 for both; NULL: that of the multipliers.
     * */
    const signed char *side_x, *side_g;
    double tol;                                        /* scaled error */
    double feasibility, stationarity, complementarity; /* unscaled residuals */
    int max_iter;
    double max_time; /* seconds; 0: no limit */
    int perturbed;   /* steps of a search by active sets for a KKT point where equations keep the
                      * values they have at x0; 0: they do not */
} hybrid_numbers;

/* How a solve ended. */
enum {
    HYBRID_SOLVED = 0,
    HYBRID_OTHER_PATTERN = 1,   /* bounds of other kinds than the plan was made for */
    HYBRID_UNDEFINED = 2,       /* a function is not defined where it was needed */
    HYBRID_NO_SET = 3,          /* no active set of the quadratic model was found */
    HYBRID_NOT_NEARER = 4,      /* steps did not get nearer */
    HYBRID_LIMIT = 7,           /* max_iter, or patience */
    HYBRID_LARGE = 8,           /* a solution, with multipliers so large that there may be less */
    HYBRID_BAD_NUMBERS = 9,     /* numbers that are not finite, or bounds that cross */
    HYBRID_NO_GUESS = 10,           /* neither multipliers nor a working set to begin with */
    HYBRID_PAUSED = 11,         /* of a run: a step is due */
    HYBRID_BLOCKED = 12,        /* the filter accepts no step, or nothing improves any more */
    HYBRID_INFEASIBLE = 16,     /* the violation is stationary: at the last iterate of the run */
    HYBRID_STALLED = 17,        /* no step leads on from the last iterate of the run */
    HYBRID_UNBOUNDED = 18, /* f falls without bound: the last iterate of the run is the proof */
    HYBRID_DIVERGED = 19,       /* the iterates go to infinity along points that prove nothing */
    HYBRID_LATE = 20,           /* max_time */
    HYBRID_STOPPED = 21         /* the observer has ended it */
};

/* Why no step leads on, where a run ends with HYBRID_INFEASIBLE or HYBRID_STALLED. */
enum {
    HYBRID_TINY_STEPS = 1,      /* the steps have become tiny */
    HYBRID_WRONG_INERTIA = 2,   /* no shift of the Hessian gives K m negative eigenvalues */
    HYBRID_NO_PROGRESS = 3,     /* nothing improves any more */
    HYBRID_NO_DESCENT = 4,      /* no step decreases the barrier function */
    HYBRID_OTHER_SCALES = 5,    /* the scales of the start do not fit any more */
    HYBRID_SLOW_VIOLATION = 6,  /* the violation hardly falls any more */
    HYBRID_ROUNDED_VIOLATION = 7, /* what is left of it is rounding */
    HYBRID_LEAST_SQUARES = 8,   /* |c|_2 is stationary */
    HYBRID_LEAST_SUM = 9,       /* |c|_1 is */
    HYBRID_NO_GAIN = 10         /* no step decreases the penalty function of composite steps */
};

typedef struct {
    double f, feasibility, stationarity, complementarity;
} hybrid_residuals;

/* Why a solve has stopped. */
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

/* What its point is. */
enum {
    HYBRID_KKT_POINT = 0,
    HYBRID_FRITZ_JOHN_POINT = 1,
    HYBRID_FEASIBLE_NOT_STATIONARY = 2,
    HYBRID_STATIONARY_NOT_FEASIBLE = 3,
    HYBRID_INFEASIBLE_STATIONARY = 4,
    HYBRID_NOT_CONVERGED = 5,
    HYBRID_UNDEFINED_POINT = 6
};

/* Writes the row of an iterate, its steps counted through the solve, and asks the observer. Returns
 * whether the solve is to end. */
int hybrid_observe(hybrid_observer *observer, const hybrid_view *view);
/* Whether it is, as far as that is known without an iterate: asked now and then at a time. */
int hybrid_is_interrupted(hybrid_observer *observer, double now);

/* How a run moves. */
enum {
    HYBRID_INTERIOR = 0,   /* the interior-point method */
    /* SQP from given multipliers, then the interior-point method from them */
    HYBRID_ACTIVE_SET = 1,
    HYBRID_COMPOSITE_STEP = 2,
    HYBRID_LEAST_MULTIPLIERS = 3, /* SQP on the active set of a point, from no multipliers */
    /* SQP for equations that keep the values they have at the start */
    HYBRID_PERTURBED = 4
};

/* The answer; the arrays are the caller's. */
typedef struct {
    double *x, *g, *lam_x, *lam_g; /* n_x, n_g, n_x, n_g */
    double *gradient, *J;          /* n_x, nnz_J: first derivatives at x */
    double *gradient0, *J0;        /* the same at the start */
    double *step; /* n_x: the last step to x that was not zero; NULL: not asked for */
    double *x_undefined; /* n_x: a trial point where a function was not defined; likewise */
    hybrid_residuals start, end;
    int status;
    int steps;      /* Newton steps */
    int firsts, seconds;
    int factors;
    int chosen;     /* of them those that chosen pivots have decided, where a solution asked for
                     * them too */
    int doubts;     /* factorizations and solutions in doubt, which counted as singular */
    double in_firsts, in_seconds, elapsed; /* seconds */
    double moved;   /* largest |x - x0| from the first iterate to the last */
    double reach;   /* largest |x| of both */
    double largest_lam; /* the largest of |lam_x| and |lam_g| */
    int huge;           /* whether that is far more than the largest |gradient| at x asks for */
    int stop, point;    /* why the solve has stopped, and what x is */
    int method;         /* what has found it: HYBRID_INTERIOR, ... */
    int runs;           /* that were made */
    int cause;          /* why no step led on, where the run that has found x ended so */
    int stepped;        /* whether `step` is one */
    double certificate; /* the slope of the violation at x; NaN where x is feasible */
    int undefined;      /* trial points where a function was not defined */
    int placed;         /* where the first point of a solve is: 0 as given; where a function is
                         * not defined there, 1 within the bounds, 2 a little off them */
    int ended;          /* steps until the end of the run whose point this is */
    int rows;           /* iterates that the observer was shown */
} hybrid_answer;

/* Numbers of memory that secant pairs need; 0 where there are second derivatives. */
long long hybrid_secants_doubles(const hybrid_plan *plan);

/* Numbers and whole numbers of memory that a solve needs. */
void hybrid_sqp_memory(const hybrid_plan *plan, long long *doubles, long long *ints);

/* SQP: full Newton steps on an active set that is predicted anew at every step.
 * Returns answer->status. */
int hybrid_sqp(const hybrid_plan *plan, const hybrid_functions *functions,
                const hybrid_numbers *numbers, double *doubles, int *ints, hybrid_answer *answer);

/* The slope of L by the parameters, for lam_p: as the second function is called. */
typedef struct {
    hybrid_second evaluate;
    void *self;
} hybrid_slope;

/* Many solves: of each a row of numbers, and one of outputs. */
typedef struct {
    const double *numbers; /* x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 */
    double *outputs;       /* x, f, g, lam_x, lam_g, lam_p, gradient, J, gradient0, J0 */
    long long numbers_each, outputs_each; /* numbers of a row */
    const signed char *sides;             /* of each n_x + n_g: the working set to try first */
    const signed char *with_sides;        /* of each: 0 where the multipliers are to name it */
    hybrid_answer *answers;
} hybrid_batch;

/* --- The interior-point method: the barrier method
 * ------------------------------------------------------- */

/* Pairs that a filter holds at most. */
#define HYBRID_FILTER 128

/* When something last improved. */
typedef struct {
    double nu, theta, f, error;
    int t, made, rounds; /* rounds: restorations since then */
} hybrid_progress;

/* One iterate. A state of the method is one of these and what hybrid_state has besides. */
typedef struct {
    double *w, *y, *z_lower, *z_upper; /* n, m, n, n */
    double *filter;                    /* 2 HYBRID_FILTER: pairs (theta, phi) */
    double nu, nu_min, shift;
    double theta_start;    /* theta that set the filter's scale */
    double theta_cut;      /* theta before the first of the steps that were cut */
    double alpha, alpha_z; /* the parts of the last Newton step taken, if it was one */
    hybrid_progress reference;
    int entries;           /* of the filter */
    int flat, dependent;   /* steps in a row in which K was singular without sigma, or epsilon */
    int indefinite;              /* factorizations in a row with too many negative eigenvalues */
    int tiny, cut;         /* tiny steps in a row, steps that the search cut to a small part */
    int fresh;             /* whether nu has just fallen */
    int estimated;           /* whether there is an active set of before */
    int stepped, crossed;  /* whether a Newton step, or one on an active set, has led here */
    int watching;          /* whether there is an iterate to go back to */
    int t;
} hybrid_iterate;

/* How a run starts and ends. */
typedef struct {
    double nu, nu_min, push; /* barrier parameter, its floor, relative distance from the bounds */
    double divergence;      /* largest |x| and -f */
    double relaxation;      /* how far bounds are widened, relative */
    double max_time;
    int t0;                 /* steps that were taken before the first iterate */
    int patience;           /* steps of this run */
    int near;               /* whether the multipliers are those of a problem nearby */
    int dense;              /* whether to look at the rank of A */
    int feasibility;        /* whether there is no objective */
    int unscaled;           /* whether rows are as they are */
    int root, cautious;     /* whether a root of the rows comes first, and that by short steps */
    int rescale;            /* whether it ends where rows ask for other scales */
    int composite;          /* whether it is by composite steps: for who begins it */
} hybrid_run_options;

/* The search for a root, where one is under way:. */
typedef struct {
    double *z_lower, *z_upper; /* n: its own multipliers of the bounds */
    double *units;             /* n: squared norms of the columns of A */
    double nu, damping;
    double reference;               /* |c|^2 when it was last looked at */
    int cautious, curved, steps;
    int begun;                 /* whether it is under way */
} hybrid_root;

/* What composite steps carry:. */
typedef struct {
    double radius, penalty, reference, promised, error;
    double target_violation, reach; /* of the reduction of the violation alone; negative for none */
    int patience, raised, escapes, saddles;
} hybrid_policy;

/* What the ray test remembers of iterates, infinity at first: see ray.c. */
typedef struct {
    double reach; /* |x| of the last one */
    double least; /* the least f < 0 of feasible ones that are large */
    int beyond;   /* iterates in a row that go on outwards, and prove nothing */
} hybrid_ray;

/* What a run leaves behind. Arrays are the caller's. */
typedef struct {
    /* now: the last one, of a proof and where no step led on. best: that with the least residuals;
     * feasible: of the feasible ones that with the least f; beside: the one a little outside whose
     * multipliers fit. t < 0 where there is none. */
    hybrid_iterate now, best, feasible, nearby;
    double *last_step;             /* n_x: the last step not zero */
    double *x_undefined;           /* n_x: the last trial point where a function was not defined,
        NaN
                                    * where there was none */
    hybrid_ray ray;
    hybrid_residuals of_best, of_nearby;
    double least_f;                /* f of feasible */
    int stepped;                   /* whether last_step is one */
    int rows_dependent;
    int undefined;                 /* trial points where a function was not defined */
    int cause;                     /* why no step led on, where that has ended the run */
    int proved;                    /* whether |c|_1 is stationary at now: then */
    double *infeasibility;         /* m: y, its subgradient there, with A'y = z_lower - z_upper */
    /* Of best: x and the functions there, which may not be asked again where they run Python. */
    double best_f, *best_x, *best_gradient, *best_g, *best_J; /* n_x, n_x, n_g, nnz_J */
} hybrid_state;

/* Bytes of its own, numbers and whole numbers of memory that a run needs; `dense`: whether
 * some will look at the rank of A. */
void hybrid_interior_point_memory(const hybrid_plan *plan, int dense, long long *bytes,
                                  long long *doubles,
                        long long *ints);

/* The numbers of arrays that the state of a run needs; hybrid_state_attach puts them there. */
long long hybrid_state_doubles(const hybrid_plan *plan);
void hybrid_state_attach(const hybrid_plan *plan, double *doubles, hybrid_state *state);

/* A run by the interior-point method. With HYBRID_SOLVED the answer is complete; with
 * HYBRID_INFEASIBLE, HYBRID_STALLED or HYBRID_UNBOUNDED state->now is the last iterate. */
int hybrid_interior_point(const hybrid_plan *plan, const hybrid_functions *functions,
                          const hybrid_numbers *numbers, const hybrid_run_options *options,
                          void *bytes, double *doubles, int *ints, hybrid_state *state,
                          hybrid_answer *answer);

/* The same by composite steps, for equations alone in variables without bounds; its memory will do
 * for runs by the interior-point method too. */
void hybrid_composite_memory(const hybrid_plan *plan, int dense, long long *bytes,
                             long long *doubles, long long *ints);
int hybrid_composite_steps(const hybrid_plan *plan, const hybrid_functions *functions,
                           const hybrid_numbers *numbers, const hybrid_run_options *options,
                           void *bytes, double *doubles, int *ints, hybrid_state *state,
                           hybrid_answer *answer);

/* --- The solve: all runs, one after another --------------------------------------------------- */

typedef struct {
    hybrid_run_options first;     /* from x0 alone */
    hybrid_run_options near;      /* from multipliers that did not lead on by active sets */
    /* by composite steps; .composite is 0 where they are not for this */
    hybrid_run_options composite;
    int linear;               /* whether g is affine */
    int alone;                /* whether the one run is by composite steps from x0 */
} hybrid_options;

void hybrid_solve_memory(const hybrid_plan *plan, const hybrid_options *options,
                             long long *bytes, long long *doubles, long long *ints);
/* Solves, with the best point of all runs in the answer, whatever they have come to. Returns
 * HYBRID_SOLVED where that is a KKT point; HYBRID_BAD_NUMBERS or HYBRID_OTHER_PATTERN where nothing
 * was begun, the latter also where `alone` meets more than equations; else the status of the run that
 * has found the point. */
int hybrid_solve(const hybrid_plan *plan, const hybrid_functions *functions,
                 const hybrid_numbers *numbers, const hybrid_options *options, void *bytes,
                 double *doubles, int *ints, hybrid_answer *answer);

/* The solves from `begin` to before `end`, each as if it were alone: what it ends with stands in
 * its answer. `common` has the tolerances. Threads share a plan and a batch, and each needs
 * functions and memory of its own. */
void hybrid_solve_batch(const hybrid_plan *plan, const hybrid_functions *functions,
                        const hybrid_slope *slope, const hybrid_numbers *common,
                        const hybrid_options *options, void *bytes, double *doubles, int *ints,
                        const hybrid_batch *batch, long long begin, long long end);

/* Functions behind CasADi's buffers: inputs are copied to fixed places, `evaluate` is called on
 * `raw`, and the outputs lie in `out`. */
typedef struct {
    void (*evaluate)(void *raw);
    void *raw;
    double *inputs[3];
    int sizes[3];
    const double *out;
    int size;
} hybrid_buffer;

typedef struct {
    hybrid_buffer first, second;
} hybrid_buffers;

int hybrid_buffered_first(void *self, const double *x, const double *p, double *out);
int hybrid_buffered_second(void *self, const double *x, const double *lam_g, const double *p,
                           double *out);
/* `self` is a hybrid_buffer. */
int hybrid_buffered_slope(void *self, const double *x, const double *lam_g, const double *p,
                          double *out);

/* HYBRID_INTERFACE_VERSION of the sources that the library was compiled from. */
int hybrid_interface_version(void);

/* a*b - c with the product rounded before the difference is taken: what a self-test asks for. */
double hybrid_rounded_difference(double a, double b, double c);

/* Seconds of a clock that only goes forward. */
double hybrid_now(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
