/* Which of many equally good directions are taken, so that rounding does not decide.
 *
 * Eigenvectors Q of one eigenvalue are any basis of their span. The first becomes the projection of
 * a fixed vector v onto it: with a = Q'v / |Q'v| the basis Q is reflected by I - 2 uu'/u'u, where
 * u = a + e_1 or a - e_1, whichever cancels nothing, and its first vector is Q a then (a reflection
 * of Householder). v has the entries +-1 / (i + sqrt 2), with the signs of a Walsh function: those
 * of the first are all +. */
#include <math.h>
#include <string.h>

#include "trust_region/trust_region.h"

/* Whether an odd number of bits is set in both. */
static int is_odd(unsigned a, unsigned b) {
    unsigned both = a & b, odd = 0;
    for (; both; both &= both - 1) odd ^= 1;
    return (int)odd;
}

/* shares = Q'v / |Q'v| for the first fixed vector v that is not orthogonal to the span; v: n. */
static void project(int n, int count, const double *span, double *shares, double *v) {
    const double size = hybrid_norm(n * count, span);
    for (unsigned pattern = 0; pattern < 2 * (unsigned)n; pattern++) {
        double length;
        for (int i = 0; i < n; i++)
            v[i] = (is_odd((unsigned)i, pattern) ? -1.0 : 1.0) / (i + sqrt(2.0));
        for (int j = 0; j < count; j++) shares[j] = hybrid_dot(n, span + (long long)j * n, v);
        length = hybrid_norm(count, shares);
        if (!(length > HYBRID_EXACT * hybrid_norm(n, v) * size)) continue;
        for (int j = 0; j < count; j++) shares[j] /= length;
        return;
    }
    memset(shares, 0, (size_t)count * sizeof(double));
    shares[0] = 1.0;
}

/* Reflects the basis so that it begins with its combination u, a unit vector, which is lost. */
static void reflect(int n, int count, double *u, double *span, double *along) {
    const double sign = u[0] >= 0.0 ? 1.0 : -1.0;
    double by;
    u[0] += sign;
    by = 2.0 / hybrid_dot(count, u, u);
    hybrid_combine(n, count, span, u, along);
    for (int j = 0; j < count; j++) {
        double *column = span + (long long)j * n;
        for (int i = 0; i < n; i++) column[i] = -sign * (column[i] - along[i] * u[j] * by);
    }
}

void hybrid_orient(int n, int columns, int count, const double *values, double *directions,
                   double *shares, double *room) {
    const double near = HYBRID_EIGENVALUE_ROUNDING * hybrid_largest(columns, values);
    for (int k = 0; k < count && k < columns; k++) {
        double *span = directions + (long long)k * n;
        int end = k + 1;
        while (end < columns && values[end] <= values[k] + near) end++;
        project(n, end - k, span, shares, room);
        reflect(n, end - k, shares, span, room);
    }
}
