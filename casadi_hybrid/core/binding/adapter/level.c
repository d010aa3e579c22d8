/* Level of x86-64 of this processor, which selects one of a wheel's two cores. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

/* 3 if the processor has x86-64-v3 and the system saves the wide registers, else 0. */
int hybrid_level(void) {
    const unsigned avx_and_others = 1u << 28 | 1u << 12 | 1u << 22 | 1u << 29; /* FMA MOVBE F16C */
    const unsigned avx2_and_others = 1u << 5 | 1u << 3 | 1u << 8;              /* BMI1 BMI2 */
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) return 0;
    if ((c & avx_and_others) != avx_and_others) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if ((b & avx2_and_others) != avx2_and_others) return 0;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && c & 1u << 5 ? 3 : 0; /* LZCNT */
}

#else

int hybrid_level(void) { return 0; }

#endif
