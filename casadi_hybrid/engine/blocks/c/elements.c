/* Terms of an objective and rows that share no value: elements, whose derivatives are taken alone. */
#include "blocks.h"

long long blocks_terms(long long root, const int *op, const int *a, const int *b, const int *uses,
                       const double *pool, const blocks_linear *words, int *stack, double *pending,
                       unsigned char *spine, int *term, double *factor) {
    long long count = 0, top = 0;
    double outer = 1;
    int v = (int)root;
    /* A number before the whole of it. */
    while (op[v] >= 0 && uses[v] == 1) {
        int next = a[v];
        double by = 1;
        if (op[v] == words->negate) by = -1;
        else if (op[v] == words->twice) by = 2;
        else if (op[v] == words->multiply && op[a[v]] == LEAF_CONSTANT) {
            by = pool[a[a[v]]];
            next = b[v];
        } else if (op[v] == words->multiply && op[b[v]] == LEAF_CONSTANT) by = pool[a[b[v]]];
        else if (op[v] == words->divide && op[b[v]] == LEAF_CONSTANT) by = 1 / pool[a[b[v]]];
        else break;
        spine[v] = 1;
        outer *= by;
        v = next;
    }
    stack[top] = v;
    pending[top++] = outer;
    while (top) {
        double mine = pending[--top];
        v = stack[top];
        if (op[v] >= 0 && uses[v] == 1 &&
            (op[v] == words->add || op[v] == words->subtract || op[v] == words->negate)) {
            spine[v] = 1;
            if (op[v] != words->negate) {
                stack[top] = b[v];
                pending[top++] = op[v] == words->add ? mine : -mine;
            }
            stack[top] = a[v];
            pending[top++] = op[v] == words->negate ? -mine : mine;
        } else {
            term[count] = v;
            factor[count++] = mine;
        }
    }
    return count;
}

static int root_of(int *part, int v) {
    while (part[v] != v) v = part[v] = part[part[v]];
    return v;
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
            int r = root_of(part, w), s = root_of(part, (int)v);
            if (r < s) part[s] = r;
            else part[r] = s;
        }
    }
    /* The first value of each is its root: by then all later ones are joined to it. */
    for (long long v = 0; v < n; v++)
        if (part[v] >= 0) part[v] = root_of(part, (int)v);
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
