/* What says whether a trial point is better: the barrier function, the filter and progress. */
#ifndef HYBRID_GLOBALIZATION_H
#define HYBRID_GLOBALIZATION_H

#include "primal_dual/primal_dual.h"

/* Those of the problem itself: nothing calls itself, so the stack has a bound. */
int hybrid_visit_problem(hybrid_cold *cold, hybrid_spot *spot);
/* The same where the functions at `known_x` are in the spot, if that is its x. */
int hybrid_visit_known(hybrid_cold *cold, hybrid_spot *spot, const double *known_x);
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
/* Whether a point of the restoration is good enough to go on from: |c|_1 is a share of what it was
 * and the filter takes it. */
int hybrid_restored(const hybrid_cold *cold, const hybrid_spot *spot);
/* Adds the point of `worth` to the filter; where that is full another one goes. */
void hybrid_extend(const hybrid_worth *worth, hybrid_iterate *it);

/* A new mark where the violation, the objective or the error has improved; that of a saddle is
 * forgotten on the way from there. */
void hybrid_mark_progress(hybrid_iterate *it, double theta, double f, double error, int t);

#endif
