/* The primal-dual barrier method: its parameter, its step, the elastic problem and restoration. */
#ifndef HYBRID_BARRIER_H
#define HYBRID_BARRIER_H

#include "globalization/globalization.h"

/* The barrier parameter after nu, nu_min at least. */
double hybrid_next_nu(double nu, double nu_min);
/* Lowers nu as far as phase->error allows, and renews the reference of the progress test. */
void hybrid_update_barrier(hybrid_phase *phase, hybrid_iterate *it);
/* A new reference of the progress test at step it->t. It is set if the violation, the objective or
 * the error has improved by a part of itself since the last one. */
void hybrid_mark_progress(hybrid_iterate *it, double theta, double f, double error);

/* hybrid_try_problem and hybrid_complete_problem, of the elastic problem too. */
int hybrid_try(hybrid_phase *phase, hybrid_trial *trial);
int hybrid_complete(hybrid_phase *phase, hybrid_trial *trial);
/* hybrid_solve_kkt for phase->force, of the elastic problem too. */
int hybrid_solve_direction(hybrid_phase *phase, const double *c, hybrid_direction *d);
/* The inertia correction: the least shift, `least` at least, that leaves m negative eigenvalues
 * and solves for (dw, dy) of phase->direction accurately; the iterate remembers it. Returns a
 * status. */
int hybrid_factor_with_inertia(hybrid_phase *phase, hybrid_iterate *it, double least);

/* One step: phase->next at *phase->trial is the new iterate. Returns a status. */
int hybrid_newton_step(hybrid_phase *phase, hybrid_iterate *it);

/* The memory of the elastic problem. */
void hybrid_place_elastic(hybrid_arena *arena, hybrid_phase *outer);
/* hybrid_factor and hybrid_solve_kkt of the elastic problem. */
int hybrid_elastic_factor(hybrid_phase *inner, double shift, double epsilon);
int hybrid_elastic_solve(hybrid_phase *inner, const double *force, const double *c, double *dw,
                         double *dy);
/* Reduces the violation alone from here on: the first of its steps. Returns a status. */
int hybrid_begin_restoration(hybrid_phase *phase);
/* A step of the restoration, or of the search for a root; where it ends the barrier method goes on.
 * Returns a status. */
int hybrid_restoration_step(hybrid_phase *phase);

/* The patterns and the bounds of (w, p, n): made once a phase. */
void hybrid_make_elastic(hybrid_phase *outer);
/* zeta R^2 for this nu, the weights of the distance from the reference. */
void hybrid_set_proximity(hybrid_phase *outer, double nu);
/* The functions at (w, p, n), whose w is that of trial->base, which is known. */
void hybrid_evaluate_elastic(const hybrid_phase *outer, hybrid_trial *trial);
/* The first iterate; phase->work has the start. */
int hybrid_first_iterate(hybrid_phase *phase);

#endif
