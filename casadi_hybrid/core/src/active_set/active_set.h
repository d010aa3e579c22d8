/* Steps on a working set of the bounds: the quadratic model and the refinement of a solution. */
#ifndef HYBRID_ACTIVE_SET_H
#define HYBRID_ACTIVE_SET_H

#include "primal_dual/primal_dual.h"

/* Changes of the set for which one factorization serves. */
#define HYBRID_SCHUR_COLUMNS 16

/* The base, which is the set that was factored last, and the columns of changes of it: see
 * schur_complement.c. */
typedef struct {
    double *base;     /* n: dw where free, the slope where pinned */
    double *columns;  /* n each: what a unit of each change adds to the base */
    double *sizes;    /* the largest |number| of each */
    int *of, known;   /* the entries whose columns are known */
    int *used, count; /* the columns of the present changes */
    double *L;        /* the factors of their Schur complement */
    double *units;    /* how much of each */
    int usable;       /* whether there is a base */
} hybrid_schur;

/* The quadratic model at an iterate. */
typedef struct {
    hybrid_kkt kkt;
    hybrid_schur schur;
    double *W, *force;    /* nnz_W; n: the gradient of f + y'c */
    double *dw, *dy;      /* its solution with the bounds pinned */
    double *left, *along; /* m: what it leaves of the rows; dy along a direction */
    double *z;            /* n: multipliers of pinned bounds */
    int *sides;           /* n: the set: 1 at a lower bound, 2 at an upper one, 0 at none */
    int *wrong, count;    /* n: what is wrong with it, and how much: 1 and 2 below a lower and
                               * above an upper bound, 3 where a multiplier has the wrong sign */
    int regularization;   /* the first one of a singular KKT matrix that serves */
    double shift;         /* what that adds to the diagonal of W */
    double until;         /* the clock's time from which on nothing begins */
    int *first_sides;     /* the first set that was solved */
    double *homotopy_w, *homotopy_z; /* n: the present point of the homotopy */
} hybrid_model;

/* The task of one call of SQP, which is more than to follow its multipliers: at most one of these.
 *   perturbed: steps of a search for a KKT point of equations that keep their values at x0
 *   least:     whether smaller multipliers of x0 are looked for, without steps
 *   curved:    1 or -1: second-order conditions at x0, without steps. Returns HYBRID_PAUSED with a
 *              lower point along negative curvature, which has this sign first. */
typedef struct {
    int perturbed, least, curved;
} hybrid_sqp_task;

/* Returns whether there is a working set, or a multiplier that is not zero, to begin with. */
static inline int hybrid_has_guess(const hybrid_plan *plan, const hybrid_numbers *numbers) {
    return numbers->side_x || hybrid_norm1(plan->n_x, numbers->lam_x0) != 0.0 ||
           hybrid_norm1(plan->n_g, numbers->lam_g0) != 0.0;
}

int hybrid_run_sqp(const hybrid_plan *plan, const hybrid_functions *functions,
                   const hybrid_numbers *numbers, const hybrid_sqp_task *task, double *doubles,
                   int *ints, hybrid_answer *answer);

void hybrid_place_quadratic_program(const hybrid_plan *plan, hybrid_arena *arena,
                                    hybrid_model *model);
/* From W, force and the first guess of the set: the solution and its set. Returns a status. */
int hybrid_solve_quadratic_program(hybrid_model *model, hybrid_form *form, const hybrid_point *at,
                                   const double *z_lower, const double *z_upper);
void hybrid_place_schur(const hybrid_plan *plan, hybrid_arena *arena, hybrid_schur *schur);
/* The set that was factored last, and its dw and z, become the base. */
void hybrid_begin_schur(const hybrid_plan *plan, hybrid_model *model);
/* dw and z of the set by the base and the Schur complement of what has changed since. Returns 0, or
 * 1 with nothing changed but z where the set needs a factorization of its own. */
int hybrid_solve_schur(hybrid_model *model, const hybrid_form *form, const hybrid_point *at);
/* (dw, dy) with the set pinned, by the first regularization of K that serves, with which the next
 * set begins. Returns a status. */
int hybrid_regularized_solution(hybrid_model *model, hybrid_form *form, const hybrid_point *at);
/* (dw, dy) by the last factorization for model->force and the c of an iterate. Returns as
 * hybrid_solve_pinned. */
int hybrid_pinned_solution(hybrid_model *model, const hybrid_form *form, const hybrid_point *at);
/* Says in wrong[] which bounds w + dw violates by more than rounding. Returns their number. */
int hybrid_find_violated_bounds(hybrid_model *model, const hybrid_form *form,
                                const hybrid_point *at);
/* Multipliers of an iterate next to y0, those of pinned bounds by their sides. One that would have
 * the wrong sign is zero, and its bound no longer pinned. Other bounds keep theirs, and
 * model->force becomes grad f + A'y. Returns a status. */
int hybrid_least_multipliers(hybrid_model *model, const hybrid_form *form, const hybrid_point *at,
                             const double *y0, double *y, double *z_lower, double *z_upper);

/* Second-order conditions at a KKT point with model->sides pinned: HYBRID_SUFFICIENT, ... Curvature
 * down to -flat counts as none. With HYBRID_NEGATIVE model->dw is a unit direction with that
 * *curvature. */
int hybrid_second_order(hybrid_model *model, hybrid_form *form, const hybrid_point *at,
                        const double *y, double flat, double *curvature);

/* Goes on from a solution if rounding explains a part of its residuals. It takes a step or two on
 * the active set as long as these leave less to explain. */
void hybrid_refine_solution(hybrid_phase *phase);

#endif
