/* Composite steps, normal and tangential, within a trust region. */
#ifndef HYBRID_TRUST_REGION_H
#define HYBRID_TRUST_REGION_H

#include "primal_dual/primal_dual.h"

/* What composite steps carry from one to the next: see trust_region/policy.c. */
typedef struct {
    double radius, penalty;  /* of the trust region; of |c|_2 in the penalty function */
    double reference;        /* |c|_2 that the progress test needs next */
    double target_violation; /* |c|_2 at which the reduction of the violation alone ends, negative
                              * while there is none */
    int patience;            /* steps left until the progress test fails */
} hybrid_policy;

/* What composite steps work on. */
typedef struct hybrid_composite {
    hybrid_spectrum here, there;  /* of A at the iterate, and at a trial point */
    double *rows, *tau;           /* n m, n: A', for its decomposition */
    int *order;                   /* m */
    double *directions, *reduced; /* n n: eigenvectors in w, and in ker A */
    double *values, *slope, *t;   /* n: eigenvalues; slopes and step in eigenvectors */
    double *newton, *step, *back; /* n: steps */
    double *force, *left;         /* n: the gradient of the model; room */
    double *shares, *rising, *damped; /* the shorter of n and m: of the part in range A' */
    double *along, *y;            /* m */
    hybrid_policy of;             /* what is carried from step to step */
    int modelled;                 /* whether W and the eigenvectors are those of the iterate */
} hybrid_composite;

/* out = the first `count` columns of n numbers, times t. */
void hybrid_combine(int n, int count, const double *columns, const double *t, double *out);
/* The singular values of A at a point that count. */
void hybrid_decompose_A(hybrid_run *run, const hybrid_point *at, hybrid_spectrum *found);
/* A at run->at in `here`, and y of least squares, zero where the violation alone is reduced. */
void hybrid_arrive(hybrid_run *run);
/* d = -V (Sigma^2 + damping)^-1 Sigma U'h with |d| <= radius. Returns the damping, zero inside. */
double hybrid_gauss_newton(hybrid_run *run, const hybrid_spectrum *A, const double *h,
                           double radius, double *d);
/* Goes to a point. */
void hybrid_go_to(hybrid_run *run, hybrid_trial *trial);

/* Eigenvalues and eigenvectors of the Hessian of L on ker A at the iterate. Returns a status. */
int hybrid_reduced_model(hybrid_run *run);
/* Whether a KKT point has no negative curvature on ker A; *status: of the model. */
int hybrid_is_second_order(hybrid_run *run, int *status);
/* The first acceptable composite step, with a radius that shrinks until there is one. Returns a
 * status; where it is HYBRID_SOLVED, run->at is the new point, HYBRID_NOT_NEARER for none. */
int hybrid_composite_step(hybrid_run *run);

/* A step of the search for the least |c|. Returns a status; where it is HYBRID_SOLVED, run->at is
 * the new point. */
int hybrid_reduce_violation(hybrid_run *run);
/* Whether there is a point beyond a least violation where |c| is half as large: run->at then. */
int hybrid_escape(hybrid_run *run);

/* The first `count` of the directions, n numbers each, become those that no rounding chooses where
 * several have one of the rising `values`. shares: columns, room: n numbers. */
void hybrid_orient(int n, int columns, int count, const double *values, double *directions,
                   double *shares, double *room);
/* The shortest minimizer t of sum e t^2 / 2 + b't with |t| <= radius, e rising.
 * Returns the multiplier of the radius. */
double hybrid_trust_region(int n, const double *e, const double *b, double radius, double *t);
/* The radius after a step of this size and ratio of gain to prediction. */
double hybrid_next_radius(double radius, double size, double ratio);

/* What composite steps carry, at a first point and at one beyond a least violation. */
void hybrid_begin_policy(double radius, hybrid_policy *of);
/* Takes the step that is due. Returns a status, with the cause where no step leads on. */
int hybrid_trust_region_step(hybrid_run *run);

#endif
