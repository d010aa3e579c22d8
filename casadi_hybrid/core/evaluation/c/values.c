/* CasADi's instructions become values (static single assignment), each computed once. */
#include <string.h>

#include "blocks.h"

/* The first two entries of a vector (-1: absent), which is then released. C++ returns a std::vector
 * by value as C returns a large structure: in memory whose address the caller passes. */
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

/* The value with this operation and these operands, appended if it is new. */
static int value_of(int o, int x, int y, int *count, int *op, int *a, int *b, uint64_t mask,
                 int *table) {
    uint64_t h = blocks_mixed(blocks_mixed(blocks_mixed(1, (uint32_t)o), (uint32_t)x), (uint32_t)y);
    for (uint64_t at = h & mask;; at = (at + 1) & mask) {
        int v = table[at];
        if (v < 0) {
            v = table[at] = (*count)++;
            op[v] = o;
            a[v] = x;
            b[v] = y;
            return v;
        }
        if (op[v] == o && a[v] == x && b[v] == y) return v;
    }
}

/* Index of a constant in the pool, compared by its bits. */
static int pooled(double c, int *constants, double *pool, uint64_t mask, int *table) {
    uint64_t bits;
    memcpy(&bits, &c, sizeof bits);
    for (uint64_t at = blocks_mixed(7, bits) & mask;; at = (at + 1) & mask) {
        int k = table[at];
        if (k < 0) {
            k = table[at] = (*constants)++;
            pool[k] = c;
            return k;
        }
        if (!memcmp(&pool[k], &c, sizeof c)) return k;
    }
}

long long blocks_values(long long n, const int *operation, const int *in0, const int *in1,
                        const int *out0, const int *out1, const double *constant,
                        const blocks_special *special, const int *in_at, const int *out_at,
                        int *registers, long long table_size, int *table, int *op, int *a, int *b,
                        double *pool, int *constants, int *result) {
    uint64_t mask = (uint64_t)table_size - 1;
    int *of_pool = table + table_size, count = 0;
    for (long long k = 0; k < 2 * table_size; k++) table[k] = -1;
    *constants = 0;
    for (long long k = 0; k < n; k++) {
        int o = operation[k], x, y = -1;
        if (o == special->output) {
            result[out_at[out0[k]] + out1[k]] = registers[in0[k]];
            continue;
        }
        if (o == special->input) {
            o = HYBRID_LEAF_INPUT;
            x = in_at[in0[k]] + in1[k];
        } else if (o == special->constant) {
            o = HYBRID_LEAF_CONSTANT;
            x = pooled(constant[k], constants, pool, mask, of_pool);
        } else {
            x = registers[in0[k]];
            if (in1[k] >= 0) y = registers[in1[k]];
        }
        registers[out0[k]] = value_of(o, x, y, &count, op, a, b, mask, table);
    }
    return count;
}

void blocks_uses(long long n, const int *op, const int *a, const int *b, long long outputs,
                 const int *result, int *uses) {
    memset(uses, 0, (size_t)n * sizeof(int));
    for (long long k = 0; k < outputs; k++)
        if (result[k] >= 0) uses[result[k]]++;
    for (long long v = n - 1; v >= 0; v--) {
        if (!uses[v] || op[v] < 0) continue;
        uses[a[v]]++;
        if (b[v] >= 0) uses[b[v]]++;
    }
}
