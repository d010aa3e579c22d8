/* The Hessian from first derivatives: see quasi_newton.c. */
#ifndef HYBRID_QUASI_NEWTON_H
#define HYBRID_QUASI_NEWTON_H

#include "internal.h"

/* Keeps a point, if it is another one than the last. */
void hybrid_remember(const hybrid_plan *plan, const hybrid_point *at, hybrid_secants *secants);
/* Keeps the last point alone. Returns whether there were others; NULL has none. */
int hybrid_forget(hybrid_secants *secants);
/* The Hessian of objective f + lam'g as far as the points have shown it: the nonzeros in `H`, and
 * what larger blocks have besides their diagonal in `low`. There is one point at least. */
void hybrid_secant_hessian(const hybrid_plan *plan, const hybrid_secants *secants,
                           double objective, const double *lam, double *H, hybrid_low_rank *low);

#endif
