/* The primal-dual barrier method: its parameter, its step, the elastic problem and restoration. */
#ifndef HYBRID_BARRIER_H
#define HYBRID_BARRIER_H

#include "globalization/globalization.h"

double hybrid_next_nu(double nu, double floor);
/* Lowers nu as far as the error, cold->error, allows and marks progress. */
void hybrid_lower_barrier(hybrid_cold *cold, hybrid_iterate *it, int t);

/* The functions at spot->of.w. Returns 0, or 1 where they are not defined. */
int hybrid_visit(hybrid_cold *cold, hybrid_spot *spot);
/* The least shift that leaves m negative eigenvalues; it is kept in the iterate. */
int hybrid_factor_with_inertia(hybrid_cold *cold, hybrid_iterate *it, double least);

/* One step: cold->next at *cold->trial is the new iterate. Returns a status. */
int hybrid_newton(hybrid_cold *cold, hybrid_iterate *it);

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

/* The patterns and the bounds of (w, p, n): made once an attempt. */
void hybrid_make_elastic(hybrid_cold *outer);
/* What nu makes of the distance from the reference. */
void hybrid_set_proximity(hybrid_cold *outer, double nu);
/* The functions at (w, p, n), whose w is that of spot->base, which is known. */
void hybrid_lift(const hybrid_cold *outer, hybrid_spot *spot);
/* The first iterate; cold->work has the start. */
int hybrid_first_iterate(hybrid_cold *cold);

#endif
