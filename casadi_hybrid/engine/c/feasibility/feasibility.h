/* The least violation of the rows, by least squares inside the bounds. */
#ifndef HYBRID_FEASIBILITY_H
#define HYBRID_FEASIBILITY_H

#include "primal_dual/primal_dual.h"

void hybrid_place_root(const hybrid_plan *plan, hybrid_arena *arena, hybrid_root *root);
void hybrid_copy_root(const hybrid_plan *plan, const hybrid_root *from, hybrid_root *to);
/* Begins near the present point. */
void hybrid_begin_root(hybrid_cold *cold);
/* One step: cold->at is the new point; at a root cold->next is the iterate there, and root.begun 0.
 * Returns a status; where it is not HYBRID_SOLVED nothing has changed. */
int hybrid_root_step(hybrid_cold *cold);

#endif
