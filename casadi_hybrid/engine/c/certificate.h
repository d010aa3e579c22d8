/* The certificate of local infeasibility: the slope of the violation, relative to its parts. */
#ifndef HYBRID_CERTIFICATE_H
#define HYBRID_CERTIFICATE_H

#include "internal.h"

/* Numbers of the work of hybrid_violation_slope. */
long long hybrid_violation_slope_doubles(const hybrid_plan *plan);

/* The slope of the violation at a point, between 0 (stationary) and 1.
 *
 * J0: the nonzeros of J at the start. y: NULL for the violation in the two-norm, or m infeasibility
 * multipliers, for that in the one-norm, of which y has to be a subgradient: 1 where it is none.
 * W: nnz_W numbers, which are overwritten. work: as many numbers as the function above says. The
 * second function is called twice; where it is not defined curvature does not count. */
double hybrid_violation_slope(hybrid_form *form, const hybrid_point *at, const double *J0,
                              const double *y, double *W, double *work);

#endif
