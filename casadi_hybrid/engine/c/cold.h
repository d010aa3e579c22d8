/* What the pieces of the cold mode share: the barrier method of barrier/barrier.py. */
#ifndef HYBRID_COLD_H
#define HYBRID_COLD_H

#include "internal.h"

/* A point with what the filter asks of it. */
typedef struct hybrid_spot {
    hybrid_point of;
    struct hybrid_spot *base; /* of the elastic problem: the point of the problem itself */
    double theta; /* |c|_1 */
    double logs;  /* sum of log(w - lower) + log(upper - w) */
    double linear; /* sum of w - lower or upper - w where there is one of the bounds alone */
    int outside;  /* whether w is outside a bound by more than rounding */
} hybrid_spot;

/* The Newton direction at an iterate and how far the bounds let it go. */
typedef struct {
    double *dw, *dy, *dz_lower, *dz_upper;
    double tau, alpha, alpha_z;
} hybrid_direction;

/* theta and phi_nu at one iterate, for the filter. */
typedef struct {
    double theta, phi;
    double *gradient; /* of phi_nu */
} hybrid_worth;

/* The optimality error E_nu for any nu. */
typedef struct {
    double least, most, rest, scale;
} hybrid_error;

#define HYBRID_SPOTS 4
/* Entries of a vector that a pass looks at together, and how many there are from one on. */
#define HYBRID_BLOCK 64
static inline int hybrid_block(int from, int count) {
    return count - from < HYBRID_BLOCK ? count - from : HYBRID_BLOCK;
}
/* What the residual of a step may be, relative to the right-hand side: the filter looks at every
 * step, and an error of this size only ends quadratic convergence there. */
#define HYBRID_ROUGH 1e-6

typedef struct hybrid_cold {
    hybrid_form form;
    hybrid_kernel kernel;
    const hybrid_plan *plan;
    const hybrid_numbers *numbers;
    const hybrid_attempt *attempt;
    hybrid_state *state;
    hybrid_answer *answer;
    hybrid_spot spots[HYBRID_SPOTS];
    /* at: where the iteration is; kept: where to go back to; the others are for trials. */
    hybrid_spot *at, *kept, *trial, *bent;
    hybrid_iterate now, next, watched;
    hybrid_direction direction, other;
    hybrid_worth worth;
    hybrid_error error;                  /* of the iterate whose step is due */
    double *pull;                        /* n: its A'y */
    double *W, *D, *force, *zero, *work; /* work: as long as w or x */
    double *residual;                    /* m */
    double *sizes;                       /* the longer of x and g */
    double *x_now;                       /* n_x: x of the iterate whose step is due */
    int *guess, *sides;                  /* n: the active set of before, and of now */
    double *dense;                       /* n m: for the rank of A, where it is full */
    double first_size;                   /* |x0| */
    double best_merit;
    double began, elapsed;               /* the clock at the first call; seconds since then */
    double merit_before, reach_before;   /* of the iterate before; its x is x_before, n_x */
    double *x_before;
    int looked;                          /* iterates looked at */
    hybrid_iterate before;               /* the iterate whose step is due, and its guess */
    const int *guess_before;
    /* The restoration, where one is under way: see elastic.c. `inner` has the problem as outer. */
    struct hybrid_cold *inner, *outer;
    int restoring;
    hybrid_plan lifted;
    int *lifted_rows, *lifted_cols, *lifted_starts;
    hybrid_spot bases[HYBRID_SPOTS], *parked;
    double *reference, *proximity;       /* n */
    double *penalty, *reduced;           /* m, and the longer of n and m */
    double theta_began, shift;
    hybrid_root root;                    /* the search for a root: see root.c */
    double *root_units, *root_slope, *root_D; /* n */
} hybrid_cold;

/* What is seen of an iterate before its step. */
typedef struct {
    hybrid_residuals of;
    double reach, merit; /* |x|, and the largest residual in units of its tolerance */
    int settled;         /* whether it is a solution if its residuals say so */
    int leaves;          /* whether steps lead away from it if they do: from a saddle point */
} hybrid_sight;

/* --- barrier.c: the barrier parameter, bounds and the error --------------------------------- */

double hybrid_next_nu(double nu, double floor);
/* Moves w inside its bounds by push*max(1, |bound|), at most `push` of the interval. */
void hybrid_interior(const hybrid_form *form, double push, double *w);
/* Keeps each z within a factor of nu/(distance). */
void hybrid_safe_duals(const hybrid_form *form, const hybrid_point *at, double nu,
                       double *z_lower, double *z_upper);
/* Brings each z at least onto the central path of nu. */
void hybrid_central(const hybrid_form *form, const hybrid_point *at, hybrid_iterate *it);
/* Newton steps of z_lower and z_upper that belong to dw. */
void hybrid_dual_steps(const hybrid_form *form, const hybrid_point *at,
                       const hybrid_iterate *it, hybrid_direction *d);
/* The parts of the step that w and z can take. */
void hybrid_lengths(const hybrid_form *form, const hybrid_point *at, const hybrid_iterate *it,
                    hybrid_direction *d);
/* The largest alpha <= 1 with v + alpha dv >= (1 - tau) v where `has` is set. */
double hybrid_share_to_zero(int count, const double *v, const double *dv, double sign,
                            const double *has, double tau);
/* Leaves A'y in `pull`, n numbers. */
void hybrid_measure(const hybrid_form *form, const hybrid_point *at, const hybrid_iterate *it,
                    double *pull, hybrid_error *found);
double hybrid_error_at(const hybrid_error *error, double nu);
/* Lowers nu as far as the error, cold->error, allows and marks progress. */
void hybrid_lower_barrier(hybrid_cold *cold, hybrid_iterate *it, int t);
/* nu becomes another one, for which the filter is empty. */
void hybrid_with_barrier(hybrid_iterate *it, double nu);

/* --- filter.c -------------------------------------------------------------------------------- */

/* The functions at spot->of.w. Returns 0, or 1 where they are not defined. */
int hybrid_visit(hybrid_cold *cold, hybrid_spot *spot);
/* Those of the problem itself: nothing calls itself, so the stack has a bound. */
int hybrid_visit_problem(hybrid_cold *cold, hybrid_spot *spot);
/* spot->outside, and spot->linear: the distances where there is no other bound. */
void hybrid_look_outside(const hybrid_form *form, hybrid_spot *spot);
double hybrid_phi(const hybrid_form *form, const hybrid_spot *spot, double nu);
/* theta, phi_nu and its gradient at an iterate. */
void hybrid_weigh(const hybrid_form *form, const hybrid_spot *at, double nu, hybrid_worth *worth);
double hybrid_smallest_step(const hybrid_worth *worth, double theta_start, double slope);
/* 'f' or 'h' for an accepted trial point, 0 for a refused one. `size`: |w| at the iterate. */
int hybrid_verdict(const hybrid_worth *worth, const hybrid_iterate *it, double size, double theta,
                   double phi, double alpha, double slope);
int hybrid_blocks(const hybrid_iterate *it, double theta, double phi, double reach);
/* Adds the point of `worth` to the filter. Returns 0, or 1 where that is full. */
int hybrid_extend(const hybrid_worth *worth, hybrid_iterate *it);

/* --- inertia.c ------------------------------------------------------------------------------- */

/* Factors K(D + shift, epsilon), or with a penalty of its own for each row; W may be NULL for none.
 * Returns 0 with m negative eigenvalues, 1 with another number, 2 where it is singular or in
 * doubt. */
int hybrid_factor(const hybrid_plan *plan, const double *W, const double *D, double shift,
                  const double *A, double epsilon, const double *penalty, hybrid_kernel *kernel);
/* Solves K (dw, dy) = -(force, c). Returns as hybrid_solve_pinned. */
int hybrid_solve(const hybrid_plan *plan, const double *force, const double *c,
                 hybrid_kernel *kernel, double *dw, double *dy);
/* D, the stiffness of the bounds; without a bound z is 0. */
void hybrid_stiffness(const hybrid_form *form, const hybrid_point *at, const double *z_lower,
                      const double *z_upper, double *D);
/* The same for cold->force, of the elastic problem too. */
int hybrid_direction_for(hybrid_cold *cold, const double *c, hybrid_direction *d);
/* The least shift that leaves m negative eigenvalues and solves accurately for cold->direction; it
 * is kept in the iterate. */
int hybrid_factor_with_inertia(hybrid_cold *cold, hybrid_iterate *it, double least);
/* Whether a full A has a rank below its number of rows, to rounding. */
int hybrid_rows_are_dependent(const hybrid_plan *plan, const double *A, double *dense);
/* y minimizing |grad f + A'y - z_lower + z_upper|; zero where that is implausibly large, or in
 * doubt. */
void hybrid_least_squares(hybrid_cold *cold, const hybrid_point *at, const double *z_lower,
                          const double *z_upper, double *y);

/* --- newton.c -------------------------------------------------------------------------------- */

/* One step: cold->next at *cold->trial is the new iterate. Returns a status. */
int hybrid_newton(hybrid_cold *cold, hybrid_iterate *it);

/* --- crossover.c ----------------------------------------------------------------------------- */

/* Bounds whose multiplier exceeds the distance to them: 1 for the lower, 2 for the upper. */
void hybrid_active_guess(const hybrid_form *form, const hybrid_point *at,
                         const hybrid_iterate *it, int *sides);
/* Tries the active set once it was guessed twice. *spent: the steps it took. Returns
 * HYBRID_SOLVED with the solution in cold->next at *cold->trial, HYBRID_NO_SET where there is
 * none, or what stops the mode. */
int hybrid_polish(hybrid_cold *cold, hybrid_iterate *it, int *spent);

/* --- excuse.c -------------------------------------------------------------------------------- */

/* Of each row |g| + |J||x|: what its rounding goes with. */
void hybrid_sizes_of_rows(const hybrid_plan *plan, const hybrid_point *at, double *sizes);
/* Leaves out of *found, the residuals as they are, what rounding explains. `slope`: as
 * hybrid_residuals_at leaves it, and overwritten; in it and in `sizes` there is room for as many
 * numbers as there are rows, or variables. */
void hybrid_excuse(const hybrid_form *form, const hybrid_point *at, const double *lam_x,
                   const double *lam_g, double *slope, double *sizes,
                   hybrid_residuals *found);

/* --- elastic.c ------------------------------------------------------------------------------- */

void hybrid_place_elastic(hybrid_arena *arena, hybrid_cold *outer);
/* What visits, factors and solves in the place of the ordinary ones. */
int hybrid_elastic_visit(hybrid_cold *inner, hybrid_spot *spot);
int hybrid_elastic_factor(hybrid_cold *inner, double shift, double epsilon);
int hybrid_elastic_solve(hybrid_cold *inner, const double *force, const double *c, double *dw,
                         double *dy);
/* Begins at the present point, with the best p and n for it. */
void hybrid_begin_elastic(hybrid_cold *outer, double theta);
/* One step: outer->at is the new point. Returns a status. */
int hybrid_elastic_step(hybrid_cold *outer);
/* Whether the point is good enough to go on from. */
int hybrid_restored(const hybrid_cold *outer);
/* Goes on with the barrier method from there, with new multipliers. */
void hybrid_end_elastic(hybrid_cold *outer);

/* --- root.c ---------------------------------------------------------------------------------- */

void hybrid_place_root(const hybrid_plan *plan, hybrid_arena *arena, hybrid_root *root);
void hybrid_copy_root(const hybrid_plan *plan, const hybrid_root *from, hybrid_root *to);
/* Begins near the present point. */
void hybrid_begin_root(hybrid_cold *cold);
/* One step: cold->at is the new point; at a root cold->next is the iterate there, and root.begun 0.
 * Returns a status; where it is not HYBRID_SOLVED nothing has changed. */
int hybrid_root_step(hybrid_cold *cold);

/* --- rays.c ---------------------------------------------------------------------------------- */

/* Whether the iterate is for the careful path to judge: a status, or 0. */
int hybrid_beyond(hybrid_cold *cold, const hybrid_sight *sight);
/* Whether residuals within the tolerances are those of iterates that run away. */
int hybrid_runs_away(const hybrid_cold *cold, double reach);

/* --- start.c --------------------------------------------------------------------------------- */

/* Places the memory of an attempt, whose form is made; cold->work has the start. `even`: whether
 * steep rows are scaled alone, as for composite steps. Returns a status. */
int hybrid_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                 const hybrid_numbers *numbers, const hybrid_attempt *attempt, int even,
                 void *bytes, hybrid_arena *arena, hybrid_state *state, hybrid_answer *answer);
/* Sets the numbers of an iterate to zero. */
void hybrid_clear(hybrid_iterate *it);
/* Copies numbers. */
void hybrid_set(int count, const double *from, double *to);
/* Copies an iterate with its arrays; w, where the copy has one, is given apart. */
void hybrid_copy(const hybrid_plan *plan, const hybrid_iterate *from, const double *w,
                 hybrid_iterate *to);
/* Copies the numbers of an iterate alone; its arrays stay where they are. */
void hybrid_copy_numbers(const hybrid_iterate *from, hybrid_iterate *to);

/* --- look.c ---------------------------------------------------------------------------------- */

/* Looks at the iterate. Returns a status; where it is not HYBRID_SOLVED, what is handed over. */
int hybrid_see(hybrid_cold *cold, hybrid_sight *sight);
/* Writes it down. Returns HYBRID_PAUSED where a step is due, else how the attempt has ended. */
int hybrid_record(hybrid_cold *cold, const hybrid_sight *sight);
/* After the step, which has ended with a status. Returns HYBRID_PAUSED, or that. */
int hybrid_went(hybrid_cold *cold, const hybrid_sight *sight, int status);
/* Says in the state where the careful path goes on: at the iterate that was looked at, whose row is
 * written again there. Returns the status. */
int hybrid_hand_over(hybrid_cold *cold, int status);
/* Completes the answer after a run that has ended with a status, which it returns. */
int hybrid_ended(hybrid_cold *cold, int status);
/* Residuals of an iterate as far as they count; sets the answer's multipliers. Returns the largest
 * one that nothing excuses, in units of its tolerance. */
double hybrid_judge(hybrid_cold *cold, const hybrid_point *at, const hybrid_iterate *it,
                    hybrid_residuals *found);

#endif
