/* The primal-dual barrier method: its parameter, its step, the elastic problem and restoration. */
#ifndef HYBRID_BARRIER_H
#define HYBRID_BARRIER_H

#include "globalization/globalization.h"

double hybrid_next_nu(double nu, double floor);
/* Lowers nu as far as the error, cold->error, allows and marks progress. */
void hybrid_lower_barrier(hybrid_cold *cold, hybrid_iterate *it, int t);

/* The functions at spot->of.w. Returns 0, or 1 where they are not defined. */
int hybrid_visit(hybrid_cold *cold, hybrid_spot *spot);
/* hybrid_solve for cold->force, of the elastic problem too. */
int hybrid_direction_for(hybrid_cold *cold, const double *c, hybrid_direction *d);
/* The least shift that leaves m negative eigenvalues and solves for (dw, dy) of cold->direction
 * accurately; it is kept in the iterate. */
int hybrid_factor_with_inertia(hybrid_cold *cold, hybrid_iterate *it, double least);

/* One step: cold->next at *cold->trial is the new iterate. Returns a status. */
int hybrid_newton(hybrid_cold *cold, hybrid_iterate *it);

void hybrid_place_elastic(hybrid_arena *arena, hybrid_cold *outer);
/* What visits, factors and solves in the place of the ordinary ones. */
int hybrid_elastic_visit(hybrid_cold *inner, hybrid_spot *spot);
int hybrid_elastic_factor(hybrid_cold *inner, double shift, double epsilon);
int hybrid_elastic_solve(hybrid_cold *inner, const double *force, const double *c, double *dw,
                         double *dy);
/* Reduces the violation alone from step t on: the first of its steps. Returns a status. */
int hybrid_begin_restoration(hybrid_cold *cold, int t);
/* A step of the restoration, or of the search for a root, that leads to step t; where it ends the
 * barrier method goes on. Returns a status. */
int hybrid_restore(hybrid_cold *cold, int t);

/* The patterns and the bounds of (w, p, n): made once an attempt. */
void hybrid_make_elastic(hybrid_cold *outer);
/* What nu makes of the distance from the reference. */
void hybrid_set_proximity(hybrid_cold *outer, double nu);
/* The functions at (w, p, n), whose w is that of spot->base, which is known. */
void hybrid_lift(const hybrid_cold *outer, hybrid_spot *spot);
/* The first iterate; cold->work has the start. */
int hybrid_first_iterate(hybrid_cold *cold);

#endif
