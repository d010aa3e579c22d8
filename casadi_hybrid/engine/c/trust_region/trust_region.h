/* Composite steps, normal and tangential, within a trust region. */
#ifndef HYBRID_TRUST_REGION_H
#define HYBRID_TRUST_REGION_H

#include "primal_dual/primal_dual.h"

/* Behind the two of the barrier method in a run's memory. */
typedef struct {
    hybrid_spectrum here, there; /* of A at the iterate, and at a trial point */
    double *rows, *tau;          /* n m, n: A', for its decomposition */
    int *order;                  /* m */
    double *directions, *reduced; /* n n: in x, and in ker A */
    double *values, *slope, *t;  /* n: eigenvalues, and the slope of the model along directions */
    double *newton, *step, *back; /* n: steps */
    double *force, *left;        /* n: what pulls along directions; room */
    double *units;               /* n: of the violation */
    double *shares, *rising, *damped; /* the shorter of n and m: of the part in range A' */
    double *along, *y;           /* m */
    hybrid_policy of;            /* what is carried from step to step */
    int modelled;                /* whether W and the eigenvectors are those of the iterate */
} hybrid_composite;

static inline hybrid_composite *hybrid_composite_of(hybrid_run *run) {
    return (hybrid_composite *)(run + 2);
}

/* out = the first `count` columns of n numbers, times t. */
void hybrid_combine(int n, int count, const double *columns, const double *t, double *out);
/* The singular values of A at a point that are above this part of the largest. */
void hybrid_decompose_A(hybrid_run *run, const hybrid_point *at, double tolerance,
                        hybrid_spectrum *found);
/* y of least squares at a point where A has this decomposition. */
void hybrid_fit_multipliers(hybrid_run *run, const hybrid_point *at, const hybrid_spectrum *A,
                            double *y);
/* d = -V (Sigma^2 + damping)^-1 Sigma U'h with |d| <= radius. Returns the damping, zero inside. */
double hybrid_gauss_newton(hybrid_run *run, const hybrid_spectrum *A, const double *h,
                           double radius, double *d);
/* Goes to a point; `known`: whether A is decomposed there, in `there`. */
void hybrid_go_to(hybrid_run *run, hybrid_trial *trial, int known);

/* Eigenvalues and directions of the Hessian of L on ker A at the iterate. Returns a status. */
int hybrid_reduced_model(hybrid_run *run);
/* Whether a KKT point is no saddle point or maximizer, as far as steps have shown; *status: of the
 * model. */
int hybrid_is_second_order(hybrid_run *run, int *status);
/* The first acceptable composite step. Returns a status; where it is HYBRID_SOLVED, run->at is the
 * new point, HYBRID_NOT_NEARER where there is none. */
int hybrid_composite_step(hybrid_run *run);

/* Whether |A'c| at a point is as good as zero where |c| is not. */
int hybrid_is_stationary(hybrid_run *run, const hybrid_point *at, double tolerance);
/* A step that reduces |c| alone. Returns as hybrid_composite_step. */
int hybrid_newton_on_violation(hybrid_run *run);
/* Whether there is a point beyond a least violation where |c| is half as large: run->at then. */
int hybrid_escape(hybrid_run *run);

/* The first `count` of the directions, n numbers each, become those that are taken where several
 * are as good: `values` of each, rising. shares: columns, room: n numbers. */
void hybrid_orient(int n, int columns, int count, const double *values, double *directions,
                   double *shares, double *room);
/* The shortest minimizer t of sum e t^2 / 2 + b't with |t| <= radius, e rising.
 * Returns the multiplier of the radius. */
double hybrid_trust_region(int n, const double *e, const double *b, double radius, double *t);
/* The radius after a step of this size and ratio of gain to prediction. */
double hybrid_next_radius(double radius, double size, double ratio);

/* What is carried from a first point on, and from one beyond a least violation. */
void hybrid_begin_policy(double radius, int escapes, hybrid_policy *of);
/* Takes a step of what is due. Returns a status, with the cause where no step leads on. */
int hybrid_trust_region_step(hybrid_run *run);

#endif
