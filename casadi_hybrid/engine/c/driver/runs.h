/* The runs of one solve: what each begins with, what it came to, and which is next. */
#ifndef HYBRID_RUNS_H
#define HYBRID_RUNS_H

#include "driver/driver.h"

/* Steps of a run, but for the first from x0: after so many without an answer another start does
 * better. Of 18 solves of public scripts that were not through after 200 steps from x0, 8 were
 * after 300, 10 after 400 and 11 after 600. */
#define HYBRID_PATIENCE 200
#define HYBRID_PATIENCE_AT_FIRST 400
/* How far bounds are widened, relative, where there may be no interior, and how the central path
 * begins then. */
#define HYBRID_RELAXATION 1e-8
#define HYBRID_RELAXED_NU 100.0
#define HYBRID_RELAXED_PUSH 0.25
/* Starts away from a local minimum of the violation, tried with an objective up to so many
 * variables; two minima that differ by less are one. */
#define HYBRID_ESCAPES 3
#define HYBRID_ESCAPES_UP_TO 50
#define HYBRID_SAME_MINIMUM 1e-3
/* Steps of the active-set method for perturbed equations. */
#define HYBRID_PERTURBED_STEPS 20

/* What one run begins with; its x0 is the solver's `start`. */
typedef struct {
    hybrid_run_options how;
    int method;
    int at_x0;   /* whether it begins at the caller's x0 */
    int escapes; /* starts away from a local minimum of the violation, this one counted */
    int last;    /* whether it only takes the best point further */
} hybrid_run_start;

/* What a run has come to, as far as it says what is next. */
typedef struct {
    int stop, point;
    int steps;
    int near;        /* whether there is a KKT point of perturbed equations next to its point */
    int less_steep;       /* whether rows there are far less steep than at its start */
    double violation; /* |violation|_2 */
} hybrid_outcome;

/* Runs that are remembered at most; after so many nothing new is tried. */
#define HYBRID_RUNS 32

/* How good a point is: the class first, then the value, then whether it was run away from. */
typedef struct {
    int kind, diverged;
    double value;
} hybrid_rank;
#define HYBRID_NOTHING 5 /* the class of no point */

typedef struct {
    const hybrid_plan *plan;
    const hybrid_functions *functions;
    const hybrid_options *options;
    const hybrid_numbers *given; /* the caller's */
    hybrid_numbers numbers;      /* of the run */
    hybrid_run *memory;
    hybrid_state state;
    double *doubles; /* of runs, one at a time */
    int *ints;
    double *start, *lam_x, *lam_g, *none; /* n_x, n_x, n_g, and the longer of both */
    double *work;                         /* n_x */
    signed char *side_x, *side_g;
    hybrid_answer *answer; /* the best point of all runs */
    hybrid_rank rank;      /* of that */
    hybrid_answer found;   /* of the run that is on, or ended last */
    hybrid_run_start run;        /* that is on */
    /* Of the runs that say what is next; an opening does not, nor does a try to get more out of
     * the point of one. The last of them, and its point. */
    hybrid_run_start before;
    double *x;
    hybrid_run_start runs[HYBRID_RUNS];
    hybrid_outcome outcomes[HYBRID_RUNS];
    int count;
    int tried_least, tried_perturbed; /* at that point */
    double *near_x, *near_lam_x, *near_lam_g; /* the KKT point next to it */
    int equations, free;
    int opening; /* whether the run is one */
    int stepped; /* whether the state is that of the run: it was not by active sets alone */
    double began;
} hybrid_solver;

/* Whether the observer has ended the solve: then no function is asked again. */
static inline int hybrid_is_over(const hybrid_solver *solver) {
    return solver->functions->observer && solver->functions->observer->ended;
}

/* --- outcome.c: what a run has come to -------------------------------------------------------- */

/* Completes solver->found and *outcome after a run that ended with a status: by the interior-point
 * method or composite steps, and by the active-set method alone. */
void hybrid_conclude(hybrid_solver *solver, int status, hybrid_outcome *outcome);
void hybrid_conclude_at(hybrid_solver *solver, int status, hybrid_outcome *outcome);
/* A reason to stop, as far as the point bears it out. */
int hybrid_borne_out(int stop, int point);
/* Takes solver->found for the answer. */
void hybrid_accept_found(hybrid_solver *solver, const hybrid_outcome *outcome);
/* Takes solver->found for the answer where that is better; `outcome` is its own. */
void hybrid_keep_best(hybrid_solver *solver, const hybrid_outcome *outcome);

/* --- next_run.c ------------------------------------------------------------------------------- */

/* The first run that asks for nothing but x0. */
hybrid_run_start hybrid_first_run(const hybrid_solver *solver);
/* The next run into solver->run, and its x0 into solver->start. Returns 0 where there is none. */
int hybrid_next_run(hybrid_solver *solver);

#endif
