/* The tests of a trial point: the barrier function and the filter. */
#ifndef HYBRID_GLOBALIZATION_H
#define HYBRID_GLOBALIZATION_H

#include "primal_dual/primal_dual.h"

/* The functions of the problem itself at trial->of.w, with theta and the terms of the bounds.
 * Returns 0, or 1 where they are not defined. Apart from hybrid_try, so that no function calls
 * itself and the stack has a bound. */
int hybrid_evaluate_problem(hybrid_phase *phase, hybrid_trial *trial);
/* hybrid_evaluate_problem if the functions at `known_x` are in the trial: they are not called again
 * if that is its x. */
int hybrid_evaluate_known(hybrid_phase *phase, hybrid_trial *trial, const double *known_x);
/* hybrid_evaluate_problem of f and c alone, if these have a function of their own. */
int hybrid_try_problem(hybrid_phase *phase, hybrid_trial *trial);
/* All of a point that was tried so, before it is gone on from. */
int hybrid_complete_problem(hybrid_phase *phase, hybrid_trial *trial);
/* HYBRID_SOLVED if a search may go on with its next trial, else the status with which it ends. */
int hybrid_search_ends(const hybrid_phase *phase);
/* trial->outside, and trial->linear: the distances where there is no other bound. */
void hybrid_bound_terms(const hybrid_form *form, hybrid_trial *trial);
/* phi_nu, infinite outside the bounds. */
double hybrid_phi(const hybrid_form *form, const hybrid_trial *trial, double nu);
/* The gradient of phi_nu. */
void hybrid_gradient_of_phi(const hybrid_form *form, const hybrid_trial *at, double nu,
                            double *restrict slope);
/* theta, phi_nu and its gradient at an iterate. */
void hybrid_filter_pair_at(const hybrid_form *form, const hybrid_trial *at, double nu,
                           hybrid_filter_pair *pair);
/* Measures the noise of f at a refused trial point, a part of the whole step away. *off is the
 * distance of f from its tangent. It is noise if it is as large as at four times the length,
 * `before`, or if f has not changed at all. A kink leaves a quarter of `before`, a smooth function
 * less. Returns whether phase->noise has grown. */
int hybrid_measure_noise(hybrid_phase *phase, const hybrid_trial *trial, double part, double before,
                         double *off);
/* Returns whether noise may make f, or phi, too large by this excess. Noise is the largest that was
 * measured, or the tolerance relative to the size. */
static inline int hybrid_may_be_noise(const hybrid_phase *phase, double excess, double size) {
    return excess <= hybrid_max(phase->noise, phase->numbers->tol * fabs(size));
}
/* alpha_min: the shortest step of the line search (Waechter and Biegler 2006, section 2.3). */
double hybrid_alpha_min(const hybrid_filter_pair *pair, double theta_start, double slope);
/* An f-type step decreases phi, an h-type step theta or phi. */
enum { HYBRID_REJECTED = 0, HYBRID_F_TYPE = 1, HYBRID_H_TYPE = 2 };
/* The type of an accepted trial point, or HYBRID_REJECTED. `pair`: of the iterate; `size`: |w|
 * there. */
int hybrid_filter_accepts(const hybrid_filter_pair *pair, const hybrid_iterate *it, double size,
                          double theta, double phi, double alpha, double slope);
/* Returns whether a pair of the filter is as good in both, or theta beyond theta_max max(1,
 * reach). */
int hybrid_filter_rejects(const hybrid_iterate *it, double theta, double phi, double reach);
/* Returns whether a point of the restoration is good enough to go on from: |c|_1 is a share of
 * what it was and the filter takes it. */
int hybrid_is_restored(const hybrid_phase *phase, const hybrid_trial *trial);
/* Adds the pair of an iterate to the filter; where that is full the oldest goes. */
void hybrid_filter_add(const hybrid_filter_pair *pair, hybrid_iterate *it);

#endif
