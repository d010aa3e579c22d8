/* Four numbers side by side. Where each entry waits for the one before it, a sum takes as long as
 * its latencies: so four go at once, always in the same order. In one register where the compiler
 * has a name for that, as GCC and Clang have for any processor; the same bits everywhere. */
#ifndef HYBRID_LANES_H
#define HYBRID_LANES_H

#include <math.h>
#include <string.h>

/* LANES_ZERO(a), LANES_LOAD(x, from), x = |x|, a = a + x, x = x - y, a = x where x > a */
#if defined(__GNUC__) && !defined(HYBRID_NO_LANES)

typedef double hybrid_lanes __attribute__((vector_size(32)));
typedef double hybrid_unaligned __attribute__((vector_size(32), aligned(8), may_alias));
typedef long long hybrid_bits __attribute__((vector_size(32)));

#define LANES_NO_SIGN ((hybrid_bits){0} + 0x7fffffffffffffff)
#define LANE(a, k) ((a)[k])
#define LANES_ZERO(a) ((a) = (hybrid_lanes){0.0})
#define LANES_LOAD(x, from) ((x) = *(const hybrid_unaligned *)(from))
#define LANES_SIZE(x) ((x) = (hybrid_lanes)((hybrid_bits)(x)&LANES_NO_SIGN))
#define LANES_ADD(a, x) ((a) += (x))
#define LANES_LESS(x, y) ((x) -= (y))
#define LANES_LARGER(a, x)                                                          \
    do {                                                                            \
        const hybrid_bits is_larger = (hybrid_bits)((x) > (a));                     \
        (a) = (hybrid_lanes)(((hybrid_bits)(x)&is_larger) | ((hybrid_bits)(a) & ~is_larger)); \
    } while (0)

#else

typedef struct {
    double of[4];
} hybrid_lanes;

#define LANES_EACH(change)                           \
    do {                                             \
        for (int lane = 0; lane < 4; lane++) change; \
    } while (0)
#define LANE(a, k) ((a).of[k])
#define LANES_ZERO(a) LANES_EACH((a).of[lane] = 0.0)
#define LANES_LOAD(x, from) memcpy((x).of, from, sizeof (x).of)
#define LANES_SIZE(x) LANES_EACH((x).of[lane] = fabs((x).of[lane]))
#define LANES_ADD(a, x) LANES_EACH((a).of[lane] += (x).of[lane])
#define LANES_LESS(x, y) LANES_EACH((x).of[lane] -= (y).of[lane])
#define LANES_LARGER(a, x) \
    LANES_EACH((a).of[lane] = (x).of[lane] > (a).of[lane] ? (x).of[lane] : (a).of[lane])

#endif

#define LANES_TOTAL(a) ((LANE(a, 0) + LANE(a, 1)) + (LANE(a, 2) + LANE(a, 3)))

#endif
