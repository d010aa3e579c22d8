/* Cuts between values and their readers, and the parts that remain connected. */
#include <string.h>

#include "blocks.h"

void blocks_sums(long long n, const int *op, const int *a, const int *b, const int *uses,
                 const unsigned char *mode, int add, int subtract, int shortest, int piece,
                 int *length, int *down, unsigned char *cut) {
    for (long long v = 0; v < n; v++) {
        length[v] = 0;
        down[v] = -1;
        if (!uses[v] || !mode[v] || (op[v] != add && op[v] != subtract)) continue;
        for (int side = 0; side < 2; side++) {
            int w = side ? b[v] : a[v];
            if (uses[w] == 1 && length[w] > length[v]) {
                length[v] = length[w];
                down[v] = w;
            }
        }
        length[v]++;
    }
    /* From the last sum down: partial sums of a longer one have length 0 by then. */
    for (long long v = n - 1; v >= 0; v--) {
        int total = length[v], whole = total - total % piece;
        if (total < shortest) continue;
        for (int s = (int)v; s >= 0;) {
            int below = down[s];
            if (length[s] % piece == 0 || length[s] > whole) cut[s] = 1;
            for (int side = 0; side < 2; side++) {
                int w = side ? b[s] : a[s];
                if (w != below && op[w] >= 0) cut[w] = 1;
            }
            length[s] = 0;
            s = below;
        }
    }
}

void blocks_early(long long n, const int *op, const int *a, const int *b,
                  const unsigned char *wide, unsigned char *early) {
    for (long long v = 0; v < n; v++) {
        if (op[v] == HYBRID_LEAF_CONSTANT) early[v] = 1;
        else if (op[v] == HYBRID_LEAF_INPUT) early[v] = wide[a[v]];
        else early[v] = early[a[v]] && (b[v] < 0 || early[b[v]]);
    }
}

/* --- Sets of inputs --------------------------------------------------------------------------- */

typedef struct {
    int *at, *members, *table, *memo;
    long long count, most_sets, most_members;
    uint64_t table_mask, memo_mask;
    int largest;
} sets;

enum { NONE = 0, MANY = 1 };

/* Number of the set whose members lie behind all stored ones; stores a new set. */
static int number_of(sets *all, int size) {
    const int *mine = all->members + all->at[all->count];
    uint64_t h = 3;
    if (!size) return NONE;
    if (size > all->largest) return MANY;
    for (int k = 0; k < size; k++) h = blocks_mixed(h, (uint32_t)mine[k]);
    for (uint64_t at = h & all->table_mask;; at = (at + 1) & all->table_mask) {
        int s = all->table[at];
        if (s < 0) {
            if (all->count + 1 >= all->most_sets) return MANY;
            s = all->table[at] = (int)all->count++;
            all->at[all->count] = all->at[s] + size;
            return s;
        }
        if (all->at[s + 1] - all->at[s] == size &&
            !memcmp(all->members + all->at[s], mine, (size_t)size * sizeof(int)))
            return s;
    }
}

static int united(sets *all, int x, int y) {
    if (x == y || y == NONE) return x;
    if (x == NONE) return y;
    if (x == MANY || y == MANY) return MANY;
    if (x > y) {
        int t = x;
        x = y;
        y = t;
    }
    const uint64_t h = blocks_mixed(blocks_mixed(5, (uint32_t)x), (uint32_t)y);
    int *entry = all->memo + 3 * (h & all->memo_mask);
    if (entry[0] == x && entry[1] == y) return entry[2];
    int size_x = all->at[x + 1] - all->at[x], size_y = all->at[y + 1] - all->at[y];
    int begin = all->at[all->count];
    if ((long long)begin + size_x + size_y > all->most_members) return MANY;
    const int *p = all->members + all->at[x], *p_end = p + size_x;
    const int *q = all->members + all->at[y], *q_end = q + size_y;
    int *r = all->members + begin;
    while (p < p_end || q < q_end) {
        int next = q == q_end || (p < p_end && *p <= *q) ? *p : *q;
        p += p < p_end && *p == next;
        q += q < q_end && *q == next;
        *r++ = next;
    }
    entry[2] = number_of(all, (int)(r - all->members) - begin);
    entry[0] = x;
    entry[1] = y;
    return entry[2];
}

void blocks_supports(long long n, const int *op, const int *a, const int *b,
                     const unsigned char *mode, const unsigned char *wide, int largest,
                     long long most_sets, long long most_members, int *at, int *members,
                     long long table_size, int *table, long long memo_size, int *memo,
                     int *support) {
    sets all = {at, members, table, memo, 2, most_sets, most_members,
                (uint64_t)table_size - 1, (uint64_t)memo_size - 1, largest};
    at[0] = at[1] = at[2] = 0;
    for (long long k = 0; k < table_size; k++) table[k] = -1;
    for (long long k = 0; k < 3 * memo_size; k++) memo[k] = -1;
    for (long long v = 0; v < n; v++) {
        support[v] = NONE;
        if (op[v] == HYBRID_LEAF_INPUT) {
            if (wide[a[v]] || at[all.count] >= most_members) continue;
            members[at[all.count]] = a[v];
            support[v] = number_of(&all, 1);
        } else if (op[v] != HYBRID_LEAF_CONSTANT && mode[v] == 2) {
            support[v] = united(&all, support[a[v]], b[v] < 0 ? NONE : support[b[v]]);
        }
    }
}

/* --- Parts ------------------------------------------------------------------------------------ */

static int step(const unsigned char *mode, const unsigned char *cut, const int *support, int w,
                long long v) {
    return cut[w] || (mode[v] == 2 && mode[w] == 2 && support[w] != support[v]);
}

void blocks_parts(long long n, const int *op, const int *a, const int *b, const int *uses,
                  const unsigned char *mode, const unsigned char *cut, const unsigned char *early,
                  const int *support, int *phase, int *part) {
    int base = 0;
    for (int late = 0; late < 2; late++)
        for (long long v = 0; v < n; v++) {
            int least = 0;
            if (op[v] < 0 || !uses[v]) {
                phase[v] = 0;
                continue;
            }
            if (late != !early[v]) continue;
            if (late && mode[v]) least = base;
            for (int side = 0; side < 2; side++) {
                int w = side ? b[v] : a[v];
                if (w < 0 || op[w] < 0) continue;
                int mine = phase[w] + step(mode, cut, support, w, v);
                if (mine > least) least = mine;
            }
            phase[v] = least;
            if (!late && least >= base) base = least + 1;
        }
    for (long long v = 0; v < n; v++) {
        part[v] = op[v] < 0 || !uses[v] ? -1 : (int)v;
        if (part[v] < 0) continue;
        for (int side = 0; side < 2; side++) {
            int w = side ? b[v] : a[v];
            if (w < 0 || op[w] < 0 || phase[w] != phase[v] || step(mode, cut, support, w, v))
                continue;
            blocks_join(part, w, (int)v);
        }
    }
    for (long long v = 0; v < n; v++)
        if (part[v] >= 0) part[v] = blocks_root(part, (int)v);
}
