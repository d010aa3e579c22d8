/* Shapes of parts, and the kinds of equal ones. */
#include <string.h>

#include "blocks.h"

/* Name of a value in part k: its index there, or -2 - slot if it enters from outside. */
static int named(int w, int k, const int *op, const int *part_of, int *place, int *stamp,
                 int *slots, int *count) {
    if (w < 0) return -1;
    if (op[w] >= 0 && part_of[w] == k) return place[w];
    if (stamp[w] != k) {
        stamp[w] = k;
        place[w] = *count;
        slots[(*count)++] = w;
    }
    return -2 - place[w];
}

long long blocks_kinds(long long n, const int *op, const int *a, const int *b, long long parts,
                       const int *begin, const int *order, const int *part_of,
                       const int *to_outputs, const unsigned char *elsewhere, int *place,
                       int *stamp, int *shape, int *slots, int *slot_begin, long long table_size,
                       int *table, int *kind, int *first) {
    uint64_t mask = (uint64_t)table_size - 1;
    long long kinds = 0;
    int *next = slots;
    for (long long v = 0; v < n; v++) stamp[v] = -1;
    for (long long k = 0; k < table_size; k++) table[k] = -1;
    for (long long k = 0; k < parts; k++) {
        int size = begin[k + 1] - begin[k], count = 0;
        int *mine = shape + 4 * (long long)begin[k];
        uint64_t h = 11;
        /* The index of a value in its own part replaces the slot that another part gave it. */
        for (int i = 0; i < size; i++) {
            int v = order[begin[k] + i];
            int *row = mine + 4 * (long long)i;
            row[0] = op[v];
            row[1] = named(a[v], (int)k, op, part_of, place, stamp, next, &count);
            row[2] = named(b[v], (int)k, op, part_of, place, stamp, next, &count);
            row[3] = to_outputs[v] || elsewhere[v] ? 1 + 2 * to_outputs[v] + elsewhere[v] : 0;
            place[v] = i;
            for (int j = 0; j < 4; j++) h = blocks_mixed(h, (uint32_t)row[j]);
        }
        slot_begin[k] = (int)(next - slots);
        next += count;
        for (uint64_t at = h & mask;; at = (at + 1) & mask) {
            int other = table[at];
            if (other < 0) {
                table[at] = (int)k;
                first[kinds] = (int)k;
                kind[k] = (int)kinds++;
                break;
            }
            if (begin[other + 1] - begin[other] == size &&
                !memcmp(shape + 4 * (long long)begin[other], mine,
                        4 * (size_t)size * sizeof(int))) {
                kind[k] = kind[other];
                break;
            }
        }
    }
    slot_begin[parts] = (int)(next - slots);
    return kinds;
}
