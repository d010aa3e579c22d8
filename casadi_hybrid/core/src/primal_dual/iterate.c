/* Iterates (w, y, z_lower, z_upper) with their filter: memory and copies. */
#include <string.h>

#include "primal_dual/primal_dual.h"

void hybrid_place_iterate(const hybrid_plan *plan, hybrid_arena *arena, hybrid_iterate *it) {
    HYBRID_PLACE(arena, plan->n, &it->w, &it->z_lower, &it->z_upper);
    it->y = hybrid_allocate(arena, plan->m);
    it->filter = hybrid_allocate(arena, 2 * HYBRID_FILTER);
}

void hybrid_copy_scalars(const hybrid_iterate *from, hybrid_iterate *to) {
    hybrid_iterate saved = *to;
    *to = *from;
    to->w = saved.w;
    to->y = saved.y;
    to->z_lower = saved.z_lower;
    to->z_upper = saved.z_upper;
    to->filter = saved.filter;
}

void hybrid_copy_iterate(const hybrid_plan *plan, const hybrid_iterate *from, const double *w,
                         hybrid_iterate *to) {
    hybrid_copy_scalars(from, to);
    if (w) hybrid_copy(plan->n, w, to->w);
    hybrid_copy(plan->m, from->y, to->y);
    hybrid_copy(plan->n, from->z_lower, to->z_lower);
    hybrid_copy(plan->n, from->z_upper, to->z_upper);
    hybrid_copy(2 * from->entries, from->filter, to->filter);
}

void hybrid_clear_iterate(hybrid_iterate *it) {
    hybrid_iterate none;
    memset(&none, 0, sizeof none);
    hybrid_copy_scalars(&none, it);
}

void hybrid_set_barrier(hybrid_iterate *it, double nu) {
    if (nu == it->nu) return;
    it->nu = nu;
    it->entries = 0;
}
