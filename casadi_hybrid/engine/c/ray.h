/* Iterates that run away: the ray test, the divergence test, and the extrapolation along the ray. */
#ifndef HYBRID_RAY_H
#define HYBRID_RAY_H

#include "internal.h"

/* The ray test at a point: HYBRID_UNBOUNDED, HYBRID_DIVERGED, or HYBRID_SOLVED where it says nothing.
 * `merit`: the largest residual there in units of its tolerance. `sizes`: work, n_g numbers. */
int hybrid_ray_test(const hybrid_plan *plan, const hybrid_numbers *numbers, const hybrid_point *at,
                    double merit, double *sizes, hybrid_ray *ray);
/* Whether f < -limit at a feasible point, HYBRID_UNBOUNDED, or |x| > limit, HYBRID_DIVERGED; else
 * HYBRID_SOLVED. */
int hybrid_divergence_test(const hybrid_plan *plan, const hybrid_numbers *numbers,
                           const hybrid_point *at, double limit, double *sizes);

#endif
