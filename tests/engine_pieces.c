/* What the tests look at inside a run, compiled with the core. */
#include "driver/driver.h"

/* The escape from where a run by composite steps has ended, in `bytes`: its end (w, y) and what is
 * carried on from there: radius, penalty, goal, escapes. Returns whether there is one. */
int pieces_escape(void *bytes, double *w, double *y, double *carried) {
    hybrid_run *run = bytes;
    const hybrid_policy *of = &run->composite->of;
    int found = hybrid_escape(run);
    hybrid_set(run->plan->n, run->at->of.w, w);
    hybrid_set(run->plan->m, run->now.y, y);
    carried[0] = of->radius;
    carried[1] = of->penalty;
    carried[2] = of->target_violation;
    return found;
}

/* A step that reduces |c| alone, from where such a run is. Returns its status; w and c there. */
int pieces_reduce(void *bytes, double *w, double *c) {
    hybrid_run *run = bytes;
    int status = hybrid_reduce_violation(run);
    hybrid_set(run->plan->n, run->at->of.w, w);
    hybrid_set(run->plan->m, run->at->of.c, c);
    return status;
}
