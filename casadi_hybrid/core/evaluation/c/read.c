/* Instructions of a casadi::Function, read by its own methods.
 *
 * C++ returns a std::vector by value as C returns a large structure: in memory whose address the
 * caller passes. */
#include "blocks.h"

static void numbers(const blocks_casadi *casadi, blocks_vector vector, int *first, int *second) {
    long long count = vector.end - vector.begin;
    *first = count > 0 ? (int)vector.begin[0] : -1;
    *second = count > 1 ? (int)vector.begin[1] : -1;
    if (vector.begin) casadi->release((void *)vector.begin);
}

void blocks_read(const blocks_casadi *casadi, const void *function, long long n,
                 const blocks_special *special, int *operation, int *in0, int *in1, int *out0,
                 int *out1, double *constant) {
    for (long long k = 0; k < n; k++) {
        operation[k] = (int)casadi->id(function, k);
        numbers(casadi, casadi->output(function, k), &out0[k], &out1[k]);
        if (operation[k] == special->constant) {
            in0[k] = in1[k] = -1;
            constant[k] = casadi->constant(function, k);
        } else {
            numbers(casadi, casadi->input(function, k), &in0[k], &in1[k]);
            constant[k] = 0;
        }
    }
}
