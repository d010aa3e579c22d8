/* The least violation of the rows, by least squares inside the bounds, and its certificate. A root
 * is a point where it is zero. */
#ifndef HYBRID_FEASIBILITY_H
#define HYBRID_FEASIBILITY_H

#include "globalization/globalization.h"

void hybrid_place_search(const hybrid_plan *plan, hybrid_arena *arena, hybrid_search *search);
/* Begins near the present point, with |c|_1 = theta where the search for a root begins, or the
 * restoration, which ends where the filter takes a point again. */
void hybrid_begin_least_squares(hybrid_phase *phase, double theta);
/* One step: phase->at is the new point. At its end phase->next is the iterate there, and
 * search.begun is 0. Returns a status, with state->cause if no step leads on (HYBRID_INFEASIBLE,
 * HYBRID_STALLED). If it is not HYBRID_SOLVED nothing has changed. */
int hybrid_least_squares_step(hybrid_phase *phase);

/* Multipliers z of all bounds: at the start, and where those before belong to a point far away. */
void hybrid_equal_multipliers(const hybrid_form *form, double z, hybrid_iterate *it);
/* Returns whether |c|_2 is stationary at the iterate, or with its subgradient y |c|_1. */
int hybrid_is_stationary(hybrid_phase *phase, const double *y);

/* Numbers of the work of hybrid_violation_slope. */
long long hybrid_violation_slope_doubles(const hybrid_plan *plan);

/* The slope of the violation at a point, between 0 (stationary) and 1.
 *
 * J0: the nonzeros of J at the start. y: NULL for the violation in the two-norm, or m
 * infeasibility multipliers, for that in the one-norm, of which y has to be a subgradient: 1 where
 * it is none. W: nnz_W numbers, which are overwritten. work: as many numbers as the function above
 * says. The second function is called twice; where it is not defined curvature does not count. */
double hybrid_violation_slope(hybrid_form *form, const hybrid_point *at, const double *J0,
                              const double *y, double *W, double *work);

#endif
