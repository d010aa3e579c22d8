/* What the tests look at inside a run, compiled with the core. */
#include "driver/driver.h"

/* The escape from where a run by composite steps has ended, in `bytes`: its end (w, y) and what is
 * carried on from there: radius, penalty, goal, escapes. Returns whether there is one. */
int pieces_escape(void *bytes, double *w, double *y, double *carried) {
    hybrid_cold *cold = bytes;
    const hybrid_guards *of = &hybrid_composite_of(cold)->of;
    int found = hybrid_escape(cold);
    hybrid_set(cold->plan->n, cold->at->of.w, w);
    hybrid_set(cold->plan->m, cold->now.y, y);
    carried[0] = of->radius;
    carried[1] = of->penalty;
    carried[2] = of->goal;
    carried[3] = of->escapes;
    return found;
}

/* A step that reduces |c| alone, from where such a run is. Returns its status; w and c there. */
int pieces_reduce(void *bytes, double *w, double *c) {
    hybrid_cold *cold = bytes;
    int status = hybrid_newton_on_violation(cold);
    hybrid_set(cold->plan->n, cold->at->of.w, w);
    hybrid_set(cold->plan->m, cold->at->of.c, c);
    return status;
}
