/* The phases of one solve: what each begins with, its outcome, and which is next. */
#ifndef HYBRID_PHASES_H
#define HYBRID_PHASES_H

#include "active_set/active_set.h"
#include "driver/driver.h"

/* Steps of a phase, and of the first from x0: after so many without an answer another start does
 * better. Of 18 solves of public scripts that had not ended after 200 steps from x0, 8 had after
 * 300, 10 after 400 and 11 after 600. */
#define HYBRID_PATIENCE 200
#define HYBRID_PATIENCE_AT_FIRST 400
/* Relative widening of bounds that may have no interior (Waechter and Biegler 2006, section 3.5,
 * "bound_relax_factor"), and the first nu and the distance from the bounds then. */
#define HYBRID_RELAXATION 1e-8
#define HYBRID_RELAXED_NU 100.0
#define HYBRID_RELAXED_PUSH 0.25
/* Starts away from a local minimum of the violation, with an objective up to so many variables; two
 * minima that differ by less, relative, are one. */
#define HYBRID_ESCAPES 3
#define HYBRID_ESCAPES_UP_TO 50
#define HYBRID_SAME_MINIMUM 1e-3
/* Steps of the active-set method for perturbed equations. */
#define HYBRID_PERTURBED_STEPS 20

/* The start of one phase; its x0 is the solver's `start`. */
typedef struct {
    hybrid_phase_options how;
    hybrid_phase_setup setup;
    int method;
    int at_x0;   /* whether it begins at the caller's x0 */
    int escapes; /* starts away from a local minimum of the violation, this one counted */
    int last;    /* whether none but phases in doubt follow */
    int sign;    /* of a direction of negative curvature: the one that is tried first */
} hybrid_phase_start;

/* The outcome of a phase, as far as the choice of the next one needs it. */
typedef struct {
    int stop, point;
    int steps;
    int cut;          /* whether a limit of the whole solve has ended it */
    int near;         /* whether there is a start for perturbed equations next to its point */
    double violation; /* of g, in the two-norm */
} hybrid_outcome;

/* Phases of a solve at most, but for the opening. */
#define HYBRID_PHASES 32

/* The class of a point, the best first. */
enum {
    HYBRID_RANK_KKT = 0,
    HYBRID_RANK_UNBOUNDED = 1,
    HYBRID_RANK_FEASIBLE = 2,
    HYBRID_RANK_LEAST_VIOLATION = 3,
    HYBRID_RANK_OTHER = 4,
    HYBRID_RANK_NONE = 5
};

/* The rank of a point: its class first. Of feasible ones the point is better whose f is less by a
 * thousandth and whose violation is no larger. Then the error decides, of infeasible ones the
 * violation. */
typedef struct {
    int kind; /* HYBRID_RANK_KKT, ... */
    double f, violation, value;
} hybrid_rank;

typedef struct {
    const hybrid_plan *plan;
    const hybrid_functions *functions;
    const hybrid_options *options;
    const hybrid_numbers *given; /* the caller's */
    hybrid_numbers numbers;      /* of the phase */
    hybrid_sqp_task task;        /* of the phase, if it is one by SQP */
    hybrid_phase *memory;
    hybrid_state state;
    double *doubles; /* of phases, one at a time */
    int *ints;
    double *start, *lam_x, *lam_g, *none; /* n_x, n_x, n_g, and the longer of both */
    double *work;                         /* n_x */
    hybrid_answer *answer;                /* the best point of all phases */
    hybrid_rank rank;                     /* of that */
    hybrid_answer found;                  /* of the present phase, or the last */
    hybrid_phase_start phase;             /* the present one */
    /* The phases on which the choice of the next one rests: not the opening, nor those by SQP on
     * from the point of one. The last of them, and its point. */
    hybrid_phase_start before;
    double *x;
    hybrid_phase_start phases[HYBRID_PHASES];
    hybrid_outcome outcomes[HYBRID_PHASES];
    int count;
    int tried_perturbed;                      /* at that point */
    double *near_x, *near_lam_x, *near_lam_g; /* n_x, n_x, n_g: the start for perturbed equations */
    int equations, free; /* rows that are equations, and variables that are not fixed */
    int small_nu;        /* whether a phase had a first nu below 0.1, found at x0 */
    int until;    /* the steps after which phases in doubt end, 0 before the first of these */
    int opening;  /* whether the phase is one */
    int sloped;   /* whether there was a lower point along negative curvature */
    int stepped;  /* whether the state is that of the phase: it was not by SQP alone */
    double began; /* the clock when the solve began */
} hybrid_solver;

/* --- outcome.c -------------------------------------------------------------------------------- */

/* Completes solver->found and *outcome after a phase that ended with a status: by the
 * interior-point method, and by SQP alone. */
void hybrid_conclude_phase(hybrid_solver *solver, int status, hybrid_outcome *outcome);
void hybrid_conclude_sqp(hybrid_solver *solver, int status, hybrid_outcome *outcome);
/* The reason to stop, corrected by what the point is. */
int hybrid_corrected_stop(int stop, int point);
/* Takes solver->found for the answer. */
void hybrid_take_found(hybrid_solver *solver, const hybrid_outcome *outcome);
/* Takes solver->found for the answer where that is better; `outcome` is its own. */
void hybrid_keep_best(hybrid_solver *solver, const hybrid_outcome *outcome);

/* --- next_phase.c ----------------------------------------------------------------------------- */

/* The first phase from x0 alone. */
hybrid_phase_start hybrid_first_phase(const hybrid_solver *solver);
/* The next phase into solver->phase, and its x0 into solver->start. Returns 0 where there is
 * none. */
int hybrid_next_phase(hybrid_solver *solver);

#endif
