/* Elements: terms of an objective and rows that share no value. Derivatives are taken of each. */
#include "blocks.h"

static int adds(int op, const blocks_linear *words) {
    return op == words->add || op == words->subtract;
}

/* The value u of a value v = factor * u; multiplies *factor. Returns -1 if v is no such product. */
static int scaled(int v, const int *op, const int *a, const int *b, const double *pool,
                  const blocks_linear *words, double *factor) {
    const int left = a[v], right = b[v], o = op[v];
    const int by_constant = right >= 0 && op[right] == HYBRID_LEAF_CONSTANT;
    if (o == words->negate) *factor = -*factor;
    else if (o == words->twice) *factor *= 2;
    else if (o == words->multiply && op[left] == HYBRID_LEAF_CONSTANT) {
        *factor *= pool[a[left]];
        return right;
    } else if (o == words->multiply && by_constant) *factor *= pool[a[right]];
    else if (o == words->divide && by_constant) *factor /= pool[a[right]];
    else return -1;
    return left;
}

/* True for a sum of many terms, as one over all stages. */
static int is_long(int v, const int *op, const int *a, const int *b, const int *uses,
                   const blocks_linear *words) {
    int count = 0;
    while (op[v] >= 0 && uses[v] == 1 && adds(op[v], words)) {
        if (++count >= words->longest) return 1;
        v = op[a[v]] >= 0 && adds(op[a[v]], words) ? a[v] : b[v];
    }
    return 0;
}

/* Appends the terms of one sum to `count` others; returns the new count. */
static long long terms_of(int root, const int *op, const int *a, const int *b, const int *uses,
                          const double *pool, const blocks_linear *words, int *stack,
                          double *pending, unsigned char *spine, long long count, int *term,
                          double *factor) {
    long long top = 0;
    int first = 1;
    stack[top] = root;
    pending[top++] = 1;
    while (top) {
        double mine = pending[--top], outer = mine;
        int v = stack[top], inner = -1;
        if (op[v] >= 0 && uses[v] == 1) inner = scaled(v, op, a, b, pool, words, &outer);
        if (inner >= 0 && (first || op[v] == words->negate ||
                           is_long(inner, op, a, b, uses, words))) {
            /* The cost of one stage stays whole: only long sums are taken apart. */
            spine[v] = 1;
            stack[top] = inner;
            pending[top++] = outer;
        } else if (op[v] >= 0 && uses[v] == 1 && adds(op[v], words)) {
            spine[v] = 1;
            first = 0;
            stack[top] = b[v];
            pending[top++] = op[v] == words->add ? mine : -mine;
            stack[top] = a[v];
            pending[top++] = mine;
        } else {
            term[count] = v;
            factor[count++] = mine;
        }
    }
    return count;
}

long long blocks_terms(long long roots, const int *root, const int *op, const int *a, const int *b,
                       const int *uses, const double *pool, const blocks_linear *words, int *stack,
                       double *pending, unsigned char *spine, int *owner, int *term,
                       double *factor) {
    long long count = 0;
    for (long long k = 0; k < roots; k++) {
        long long end = terms_of(root[k], op, a, b, uses, pool, words, stack, pending, spine, count,
                                 term, factor);
        while (count < end) owner[count++] = (int)k;
    }
    return count;
}

void blocks_small(long long n, const int *op, const int *a, const int *b, int most, int *size,
                  unsigned char *early) {
    for (long long v = 0; v < n; v++) {
        long long mine = op[v] >= 0;
        if (op[v] >= 0) mine += (long long)size[a[v]] + (b[v] < 0 ? 0 : size[b[v]]);
        size[v] = mine > most ? most + 1 : (int)mine;
        if (op[v] >= 0 && size[v] <= most) early[v] = 1;
    }
}

long long blocks_elements(long long n, const int *op, const int *a, const int *b,
                          const unsigned char *live, int *part) {
    long long count = 0;
    for (long long v = 0; v < n; v++) {
        part[v] = live[v] ? (int)v : -1;
        if (!live[v]) continue;
        for (int side = 0; side < 2; side++) {
            int w = side ? b[v] : a[v];
            if (w < 0 || op[w] < 0 || !live[w]) continue;
            blocks_join(part, w, (int)v);
        }
    }
    /* The root of each element is its first value. */
    for (long long v = 0; v < n; v++)
        if (part[v] >= 0) part[v] = blocks_root(part, (int)v);
    for (long long v = 0; v < n; v++)
        if (part[v] == v) part[v] = -2 - (int)count++;
        else if (part[v] >= 0) part[v] = part[part[v]];
    for (long long v = 0; v < n; v++)
        if (part[v] < -1) part[v] = -2 - part[v];
    return count;
}

long long blocks_closed(long long elements, const int *begin, const int *order, const int *op,
                        const int *a, const int *b, const unsigned char *early, int *place,
                        int *stamp, int *stack, long long first, long long most, int *new_begin,
                        int *new_op, int *new_a, int *new_b) {
    long long next = first;
    for (long long k = 0; k < elements; k++) {
        new_begin[k] = (int)next;
        for (int i = begin[k]; i < begin[k + 1]; i++) {
            int top = 0;
            stack[top++] = order[i];
            while (top) {
                int v = stack[top - 1], waits = 0;
                for (int side = 0; side < 2; side++) {
                    int w = side ? b[v] : a[v];
                    if (w < 0 || op[w] < 0 || !early[w] || stamp[w] == k) continue;
                    stack[top++] = w;
                    waits = 1;
                    break;
                }
                if (waits) continue;
                top--;
                if (early[v] && stamp[v] == k) continue;
                if (next == most) return -1;
                new_op[next] = op[v];
                new_a[next] = place[a[v]];
                new_b[next] = b[v] < 0 ? -1 : place[b[v]];
                stamp[v] = (int)k;
                place[v] = (int)next++;
            }
        }
    }
    new_begin[elements] = (int)next;
    return next;
}
