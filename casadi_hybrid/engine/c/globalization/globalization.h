/* What says whether a trial point is better: the barrier function, the filter and progress. */
#ifndef HYBRID_GLOBALIZATION_H
#define HYBRID_GLOBALIZATION_H

#include "primal_dual/primal_dual.h"

/* Those of the problem itself: nothing calls itself, so the stack has a bound. */
int hybrid_visit_problem(hybrid_run *run, hybrid_trial *trial);
/* The same where the functions at `known_x` are in the trial, if that is its x. */
int hybrid_visit_known(hybrid_run *run, hybrid_trial *trial, const double *known_x);
/* trial->outside, and trial->linear: the distances where there is no other bound. */
void hybrid_bound_terms(const hybrid_form *form, hybrid_trial *trial);
double hybrid_phi(const hybrid_form *form, const hybrid_trial *trial, double nu);
/* theta, phi_nu and its gradient at an iterate. */
void hybrid_filter_pair_at(const hybrid_form *form, const hybrid_trial *at, double nu,
                           hybrid_filter_pair *pair);
double hybrid_smallest_step(const hybrid_filter_pair *pair, double theta_start, double slope);
/* 'f' or 'h' for an accepted trial point, 0 for a refused one. `size`: |w| at the iterate. */
int hybrid_filter_accepts(const hybrid_filter_pair *pair, const hybrid_iterate *it, double size,
                          double theta,
                   double phi, double alpha, double slope);
int hybrid_filter_rejects(const hybrid_iterate *it, double theta, double phi, double reach);
/* Whether a point of the restoration is good enough to go on from: |c|_1 is a share of what it was
 * and the filter takes it. */
int hybrid_restored(const hybrid_run *run, const hybrid_trial *trial);
/* Adds the point of `worth` to the filter; where that is full another one goes. */
void hybrid_filter_add(const hybrid_filter_pair *pair, hybrid_iterate *it);

/* A new mark where the violation, the objective or the error has improved; that of a saddle is
 * forgotten on the way from there. */
void hybrid_mark_progress(hybrid_iterate *it, double theta, double f, double error, int t);

#endif
