/* Vectors: sizes, sums and products in an order that is the same on every processor. */
#include <math.h>
#include <string.h>

#include "linear_algebra/linear_algebra.h"
#include "linear_algebra/lanes.h"

#define LEAST(a) hybrid_min(hybrid_min(LANE(a, 0), LANE(a, 1)), hybrid_min(LANE(a, 2), LANE(a, 3)))
#define MOST(a) hybrid_max(hybrid_max(LANE(a, 0), LANE(a, 1)), hybrid_max(LANE(a, 2), LANE(a, 3)))

double hybrid_norm_inf(int count, const double *v) {
    hybrid_lanes most[4], sum[4], x; /* the sums pass a NaN on */
    double largest = 0.0, total = 0.0;
    int i = 0;
    for (int k = 0; k < 4; k++) {
        LANES_ZERO(most[k]);
        LANES_ZERO(sum[k]);
    }
    for (; i + 16 <= count; i += 16)
        for (int k = 0; k < 4; k++) {
            LANES_LOAD(x, v + i + 4 * k);
            LANES_SIZE(x);
            LANES_LARGER(most[k], x);
            LANES_ADD(sum[k], x);
        }
    for (; i + 4 <= count; i += 4) {
        LANES_LOAD(x, v + i);
        LANES_SIZE(x);
        LANES_LARGER(most[0], x);
        LANES_ADD(sum[0], x);
    }
    for (; i < count; i++) {
        largest = hybrid_max(fabs(v[i]), largest);
        total += fabs(v[i]);
    }
    for (int k = 1; k < 4; k++) {
        LANES_LARGER(most[0], most[k]);
        LANES_ADD(sum[0], sum[k]);
    }
    return isnan(LANES_TOTAL(sum[0]) + total) ? NAN : hybrid_max(MOST(most[0]), largest);
}

double hybrid_max_entry(int count, const double *v) {
    hybrid_lanes most[2], x;
    double found = 0.0;
    int i = 0;
    LANES_ZERO(most[0]);
    LANES_ZERO(most[1]);
    for (; i + 8 <= count; i += 8) {
        LANES_LOAD(x, v + i);
        LANES_LARGER(most[0], x);
        LANES_LOAD(x, v + i + 4);
        LANES_LARGER(most[1], x);
    }
    for (; i < count; i++) found = hybrid_max(v[i], found);
    LANES_LARGER(most[0], most[1]);
    return hybrid_max(MOST(most[0]), found);
}

double hybrid_min_entry(int count, const double *v) {
    hybrid_lanes least, x;
    double found = INFINITY;
    int i = 0;
    LANES_SET(least, INFINITY);
    for (; i + 4 <= count; i += 4) {
        LANES_LOAD(x, v + i);
        LANES_SMALLER(least, x);
    }
    for (; i < count; i++) found = hybrid_min(v[i], found);
    return hybrid_min(LEAST(least), found);
}

/* The product of this many factors between 1/MIDDLE and MIDDLE does not overflow. */
enum { FACTORS = 16 };
#define MIDDLE 1e18

double hybrid_sum_log(int count, const double *v) {
    double sum = 0.0;
    int i = 0;
    for (; i + FACTORS <= count; i += FACTORS) {
        hybrid_lanes product, least, most, x;
        LANES_LOAD(product, v + i);
        least = most = product;
        for (int k = 4; k < FACTORS; k += 4) {
            LANES_LOAD(x, v + i + k);
            LANES_TIMES(product, x);
            LANES_SMALLER(least, x);
            LANES_LARGER(most, x);
        }
        if (LEAST(least) > 1.0 / MIDDLE && MOST(most) < MIDDLE)
            sum += log(LANES_PRODUCT(product));
        else
            for (int k = 0; k < FACTORS; k++) sum += log(v[i + k]);
    }
    for (; i < count; i++) sum += log(v[i]);
    return sum;
}

double hybrid_max_violation(int count, const double *v, const double *lower, const double *upper) {
    hybrid_lanes above, under, value, beyond, below;
    double largest = 0.0;
    int i = 0;
    LANES_ZERO(above);
    LANES_ZERO(under);
    for (; i + 4 <= count; i += 4) {
        LANES_LOAD(value, v + i);
        LANES_LOAD(beyond, upper + i);
        LANES_LOAD(below, lower + i);
        LANES_LESS(below, value);
        LANES_LESS(value, beyond);
        LANES_LARGER(above, value);
        LANES_LARGER(under, below);
    }
    for (; i < count; i++)
        largest = hybrid_max(hybrid_max(v[i] - upper[i], lower[i] - v[i]), largest);
    LANES_LARGER(above, under);
    return hybrid_max(MOST(above), largest);
}

double hybrid_norm1(int count, const double *v) {
    hybrid_lanes sum[4], x;
    double total = 0.0;
    int i = 0;
    for (int k = 0; k < 4; k++) LANES_ZERO(sum[k]);
    for (; i + 16 <= count; i += 16)
        for (int k = 0; k < 4; k++) {
            LANES_LOAD(x, v + i + 4 * k);
            LANES_SIZE(x);
            LANES_ADD(sum[k], x);
        }
    for (; i + 4 <= count; i += 4) {
        LANES_LOAD(x, v + i);
        LANES_SIZE(x);
        LANES_ADD(sum[0], x);
    }
    for (; i < count; i++) total += fabs(v[i]);
    LANES_ADD(sum[0], sum[1]);
    LANES_ADD(sum[2], sum[3]);
    LANES_ADD(sum[0], sum[2]);
    return LANES_TOTAL(sum[0]) + total;
}

double hybrid_dot(int count, const double *a, const double *b) {
    hybrid_lanes sum[2], x, y;
    double total = 0.0;
    int i = 0;
    if (count >= 8) {
        LANES_ZERO(sum[0]);
        LANES_ZERO(sum[1]);
        for (; i + 8 <= count; i += 8)
            for (int k = 0; k < 2; k++) {
                LANES_LOAD(x, a + i + 4 * k);
                LANES_LOAD(y, b + i + 4 * k);
                LANES_TIMES(x, y);
                LANES_ADD(sum[k], x);
            }
        LANES_ADD(sum[0], sum[1]);
        total = LANES_TOTAL(sum[0]);
    }
    for (; i < count; i++) total += a[i] * b[i];
    return total;
}

void hybrid_gather(int count, int size, const int *at, const double *from, double *to) {
    if (count == size) {
        memcpy(to, from, (size_t)size * sizeof(double));
        return;
    }
    for (int i = 0; i < count; i++) to[i] = from[at[i]];
}

void hybrid_clamp_vector(int count, const double *v, const double *lower, const double *upper,
                         double *restrict out) {
    for (int i = 0; i < count; i++) out[i] = hybrid_clamp(v[i], lower[i], upper[i]);
}

int hybrid_all_finite(int count, const double *v) {
    /* The sum may overflow where the numbers do not; then each is tested. */
    if (isfinite(hybrid_norm1(count, v))) return 1;
    for (int i = 0; i < count; i++)
        if (!isfinite(v[i])) return 0;
    return 1;
}

void hybrid_copy(int count, const double *from, double *to) {
    if (count) memcpy(to, from, (size_t)count * sizeof(double));
}

void hybrid_zero(int count, double *v) {
    if (count) memset(v, 0, (size_t)count * sizeof(double));
}
