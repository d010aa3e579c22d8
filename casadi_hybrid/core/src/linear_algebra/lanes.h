/* Four numbers side by side. A sum whose entries wait for each other takes as long as its
 * latencies: so four are added at once, always in the same order. As many of them lie in one
 * register as the processor's has room for: of wider ones compilers make worse code than of plain
 * numbers. The same bits everywhere. */
#ifndef HYBRID_LANES_H
#define HYBRID_LANES_H

#include <math.h>

#if !defined(__GNUC__) || defined(HYBRID_NO_LANES)
#define LANES_TOGETHER 1
#elif defined(__AVX__)
#define LANES_TOGETHER 4
#elif defined(__SSE2__) || defined(__aarch64__)
#define LANES_TOGETHER 2
#else
#define LANES_TOGETHER 1
#endif

#if LANES_TOGETHER > 1

#define LANES_BYTES (8 * LANES_TOGETHER)
typedef double hybrid_register __attribute__((vector_size(LANES_BYTES)));
typedef double hybrid_unaligned
    __attribute__((vector_size(LANES_BYTES), aligned(8), may_alias));
typedef long long hybrid_bits __attribute__((vector_size(LANES_BYTES)));

#define LANES_NO_SIGN ((hybrid_bits){0} + 0x7fffffffffffffff)
#define LANE(a, k) ((a).of[(k) / LANES_TOGETHER][(k) % LANES_TOGETHER])
#define REGISTER_ZERO ((hybrid_register){0.0})
#define REGISTER_LOAD(from) (*(const hybrid_unaligned *)(from))
#define REGISTER_STORE(to, x) (*(hybrid_unaligned *)(to) = (x))
#define REGISTER_SIZE(x) ((hybrid_register)((hybrid_bits)(x)&LANES_NO_SIGN))

static inline hybrid_register hybrid_register_max(hybrid_register a, hybrid_register x) {
    const hybrid_bits is_larger = (hybrid_bits)(x > a);
    return (hybrid_register)(((hybrid_bits)x & is_larger) | ((hybrid_bits)a & ~is_larger));
}

static inline hybrid_register hybrid_register_min(hybrid_register a, hybrid_register x) {
    const hybrid_bits is_smaller = (hybrid_bits)(x < a);
    return (hybrid_register)(((hybrid_bits)x & is_smaller) | ((hybrid_bits)a & ~is_smaller));
}

#else

typedef double hybrid_register;

#define LANE(a, k) ((a).of[k])
#define REGISTER_ZERO 0.0
#define REGISTER_LOAD(from) (*(from))
#define REGISTER_STORE(to, x) (*(to) = (x))
#define REGISTER_SIZE(x) fabs(x)

static inline double hybrid_register_max(double a, double x) { return x > a ? x : a; }
static inline double hybrid_register_min(double a, double x) { return x < a ? x : a; }

#endif

typedef struct {
    hybrid_register of[4 / LANES_TOGETHER];
} hybrid_lanes;

/* a = 0, a = value, LANES_LOAD(x, from), x = |x|, a = a + x, a = a x, x = x - y, a = x where x > a,
 * a = x where x < a */
#define LANES_EACH(change)                                      \
    do {                                                        \
        for (int at = 0; at < 4 / LANES_TOGETHER; at++) change; \
    } while (0)
#define LANES_ZERO(a) LANES_EACH((a).of[at] = REGISTER_ZERO)
#define LANES_SET(a, value) LANES_EACH((a).of[at] = REGISTER_ZERO + (value))
#define LANES_LOAD(x, from) LANES_EACH((x).of[at] = REGISTER_LOAD((from) + LANES_TOGETHER * at))
#define LANES_SIZE(x) LANES_EACH((x).of[at] = REGISTER_SIZE((x).of[at]))
#define LANES_ADD(a, x) LANES_EACH((a).of[at] += (x).of[at])
#define LANES_TIMES(a, x) LANES_EACH((a).of[at] *= (x).of[at])
#define LANES_LESS(x, y) LANES_EACH((x).of[at] -= (y).of[at])
#define LANES_LARGER(a, x) LANES_EACH((a).of[at] = hybrid_register_max((a).of[at], (x).of[at]))
#define LANES_SMALLER(a, x) LANES_EACH((a).of[at] = hybrid_register_min((a).of[at], (x).of[at]))

#define LANES_TOTAL(a) ((LANE(a, 0) + LANE(a, 1)) + (LANE(a, 2) + LANE(a, 3)))
#define LANES_PRODUCT(a) ((LANE(a, 0) * LANE(a, 1)) * (LANE(a, 2) * LANE(a, 3)))

#endif
