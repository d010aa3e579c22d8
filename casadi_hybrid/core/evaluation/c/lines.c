/* The program of a kind of part, which lanes.c interprets. */
#include "blocks.h"

typedef struct {
    int *next, *unused;
    long long free;
    int registers;
} lines_made;

static void add(lines_made *made, int word, int z, int x, int y) {
    int *line = made->next;
    line[0] = word;
    line[1] = z;
    line[2] = x;
    line[3] = y;
    made->next = line + 4;
}

static int taken(lines_made *made) {
    return made->free ? made->unused[--made->free] : made->registers++;
}

long long blocks_lines(long long size, const int *shape, const int *slots, int leaving, int *last,
                       int *where, int *unused, int *lines, int *registers) {
    lines_made made = {lines, unused, 0, 0};
    /* Slots come before the values in `last` and `where`: slot w is at index w + 1 < 0. */
    int n_slots = slots[0];
    last += n_slots;
    where += n_slots;
    for (long long i = -n_slots; i < size; i++) last[i] = where[i] = -1;
    for (long long i = 0; i < size; i++)
        for (int side = 1; side < 3; side++) {
            int w = shape[4 * i + side];
            if (w != -1) last[w < 0 ? w + 1 : w] = (int)i;
        }
    for (long long i = 0; i < size; i++) {
        const int *row = shape + 4 * i;
        int read[2], at[2];
        for (int side = 0; side < 2; side++) {
            int w = row[1 + side];
            at[side] = w < 0 ? w + 1 : w;
            if (w == -1) {
                at[side] = at[0];
                read[side] = read[0];
                continue;
            }
            if (where[at[side]] < 0) {
                const int *slot = slots + 1 + 2 * (-2 - w);
                where[at[side]] = taken(&made);
                add(&made, slot[0], where[at[side]], slot[1], 0);
            }
            read[side] = where[at[side]];
        }
        where[i] = taken(&made); /* never an operand's register: operate() has restrict pointers */
        add(&made, row[0], where[i], read[0], read[1]);
        if (row[3]) {
            for (int k = (row[3] - 1) / 2; k > 0; k--)
                add(&made, HYBRID_LINE_OUTPUT, where[i], leaving++, 0);
            if ((row[3] - 1) % 2) add(&made, HYBRID_LINE_HAND_ON, where[i], leaving++, 0);
        }
        for (int side = 0; side < 2; side++)
            if (last[at[side]] == i && where[at[side]] >= 0) {
                made.unused[made.free++] = where[at[side]];
                where[at[side]] = -1;
            }
        if (last[i] < 0) made.unused[made.free++] = where[i];
    }
    *registers = made.registers;
    return (made.next - lines) / 4;
}
