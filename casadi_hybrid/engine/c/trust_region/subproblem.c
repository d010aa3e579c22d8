/* The trust-region subproblem in the coordinates of eigenvectors:
 *
 *     min sum e_i t_i^2 / 2 + b't  s.t.  |t| <= radius:   t_i = -b_i / (e_i + sigma),
 *
 * sigma >= max(0, -e_1) by Newton's method on 1/|t(sigma)| = 1/radius (Nocedal and Wright,
 * Numerical Optimization, 2nd ed., section 4.3; Conn, Gould and Toint, Trust-Region Methods,
 * section 7.3), and the rule for the next radius (section 4.1). */
#include <math.h>

#include "trust_region/trust_region.h"

/* A subproblem: eigenvalues e, of which those within `nothing` of zero or of the least are equal to
 * that. */
typedef struct {
    int n;
    const double *e, *b;
    double least, nothing;
} subproblem;

/* An eigenvalue less the least one. */
static double gap(const subproblem *of, int i) {
    double e = of->e[i], found;
    if (e < 0.0 && e >= -of->nothing) e = 0.0;
    found = e - of->least;
    return of->least < 0.0 && found <= of->nothing ? 0.0 : found;
}

/* t = -b / (gaps + tau), zero where that is; the length of t. */
static double shifted(const subproblem *of, double tau, double *t) {
    double square = 0.0;
    for (int i = 0; i < of->n; i++) {
        double by = gap(of, i) + tau;
        t[i] = by > 0.0 ? -of->b[i] / by : 0.0;
        square += t[i] * t[i];
    }
    return sqrt(square);
}

/* The root tau of |t(tau)| = radius, in an interval that |b| gives. */
static double root_of(const subproblem *of, double slope, double radius, double *t) {
    double low = of->least > 0.0 ? of->least : 0.0, high, tau;
    if (slope / radius > low) low = slope / radius;
    high = sqrt(hybrid_dot(of->n, of->b, of->b)) / radius;
    if (!(high > low)) high = low;
    tau = low;
    for (;;) {
        double size = shifted(of, tau, t), bend = 0.0;
        if (fabs(size - radius) <= HYBRID_ROUNDED * radius) return tau;
        if (size > radius) low = tau;
        else high = tau;
        for (int i = 0; i < of->n; i++) {
            double by = gap(of, i) + tau;
            if (by > 0.0) bend += t[i] * t[i] / by;
        }
        tau += size * size / bend * (size - radius) / radius;
        if (low < tau && tau < high) continue;
        tau = 0.5 * (low + high);
        if (!(low < tau && tau < high)) return tau; /* no double is between */
    }
}

double hybrid_trust_region(int n, const double *e, const double *b, double radius, double *t) {
    subproblem of = {n, e, b, 0.0, 0.0};
    double slope = 0.0, sigma;
    if (!n) return 0.0;
    of.nothing = HYBRID_EIGENVALUE_ROUNDING * hybrid_largest(n, e);
    of.least = e[0] < 0.0 && e[0] >= -of.nothing ? 0.0 : e[0];
    for (int i = 0; i < n; i++)
        if (gap(&of, i) == 0.0) slope += b[i] * b[i];
    slope = sqrt(slope);
    if (of.least >= 0.0 && (of.least > 0.0 || slope == 0.0)) {
        if (shifted(&of, of.least, t) <= radius) return 0.0;
    }
    if (of.least < 0.0 && slope == 0.0) {
        double length = shifted(&of, 0.0, t);
        if (length <= radius) {
            t[0] = sqrt(radius * radius - length * length);
            return -of.least;
        }
    }
    sigma = root_of(&of, slope, radius, t) - of.least;
    return sigma > 0.0 ? sigma : 0.0;
}

double hybrid_next_radius(double radius, double size, double ratio) {
    if (ratio >= HYBRID_TRUST_REGION_GROW_ABOVE)
        return hybrid_max(HYBRID_TRUST_REGION_GROWTH * size, radius);
    return ratio < HYBRID_TRUST_REGION_SHRINK_BELOW ? HYBRID_TRUST_REGION_SHRINK_BELOW * size
                                                    : radius;
}
