/* Pairs each row of A with a variable that it can be solved for: see ldl.h.

   A matching along alternating paths (MC21: Duff, ACM Trans. Math. Software 7, 1981), first with
   entries that are large in their row alone, then with smaller ones as well, at last with all that
   are not zero. */
#include <math.h>
#include "ldl.h"

static const double levels[] = {0.5, 0.05, 0.0}; /* of the largest entry of the row */

/* A by rows, in the caller's work, and the state of the search. Rows are counted from 0. */
typedef struct pairing {
    int m, n;
    const double *values; /* of the entries of K, or NULL */
    int *begin;           /* [m + 1] */
    int *column, *entry;  /* [entries] */
    int *next;            /* [m] entry to test next */
    int *path;            /* [m] rows of the path */
    int *through;         /* [m] column by which the path goes on from a row */
    int *visited;       /* [n] the last search that has reached a column */
    int *crowd;           /* [n] entries of A in a column */
    int *partner;         /* [n + m] */
} pairing;

int hybrid_ldl_pairing(int size, int entries) { return 4 * (size + 1) + 2 * entries; }

static double magnitude(const pairing *p, int k) {
    return p->values ? fabs(p->values[p->entry[k]]) : 1.0;
}

/* The least that an entry of the row has to be at this level. */
static double least(const pairing *p, int row, double level) {
    double most = 0;
    for (int k = p->begin[row]; k < p->begin[row + 1]; k++)
        if (magnitude(p, k) > most) most = magnitude(p, k);
    return level * most;
}

/* The free column of the row in which A has fewest entries, -1 where none is free. */
static int vacant(const pairing *p, int row, double limit) {
    int found = -1;
    for (int k = p->begin[row]; k < p->begin[row + 1]; k++) {
        const int c = p->column[k];
        if (p->partner[c] < 0 && magnitude(p, k) > 0 && magnitude(p, k) >= limit &&
            (found < 0 || p->crowd[c] <= p->crowd[found]))
            found = c;
    }
    return found;
}

/* Finds a path from a free row to a free column, and takes it. Returns whether there is one. */
static int extend(const pairing *p, int row, double level, int search) {
    int depth = 0;
    double limit = least(p, row, level);
    p->path[0] = row, p->next[row] = p->begin[row];
    while (depth >= 0) {
        const int r = p->path[depth];
        int c = p->next[r] == p->begin[r] ? vacant(p, r, limit) : -1;
        if (c >= 0) {
            for (;; depth--) {
                p->partner[c] = p->n + p->path[depth];
                p->partner[p->n + p->path[depth]] = c;
                if (depth == 0) return 1;
                c = p->through[p->path[depth - 1]];
            }
        }
        while (p->next[r] < p->begin[r + 1]) {
            const int k = p->next[r]++;
            c = p->column[k];
            if (p->visited[c] != search && p->partner[c] >= 0 && magnitude(p, k) > 0 &&
                magnitude(p, k) >= limit)
                break;
            c = -1;
        }
        if (c >= 0) {
            const int then = p->partner[c] - p->n;
            p->visited[c] = search, p->through[r] = c;
            p->path[++depth] = then, p->next[then] = p->begin[then];
            limit = least(p, then, level);
        } else if (--depth >= 0) {
            limit = least(p, p->path[depth], level);
        }
    }
    return 0;
}

int hybrid_ldl_pair(int size, int variables, const int *starts, const int *rows,
                    const double *values, int *work, int *partner) {
    const int n = variables, m = size - variables;
    int search = 0, paired = 0;
    pairing p;
    p.m = m, p.n = n, p.values = values, p.partner = partner;
    p.begin = work, work += m + 1;
    p.next = work, work += m;
    p.path = work, work += m;
    p.through = work, work += m;
    p.visited = work, work += n;
    p.crowd = work, work += n;
    p.column = work, work += starts[size];
    p.entry = work;
    for (int k = 0; k <= m; k++) p.begin[k] = 0;
    for (int k = 0; k < size; k++) partner[k] = -1;
    for (int j = 0; j < n; j++) {
        p.crowd[j] = 0, p.visited[j] = -1;
        for (int k = starts[j]; k < starts[j + 1]; k++)
            if (rows[k] >= n) p.crowd[j]++, p.begin[rows[k] - n + 1]++;
    }
    for (int k = 0; k < m; k++) p.begin[k + 1] += p.begin[k], p.next[k] = p.begin[k];
    for (int j = 0; j < n; j++)
        for (int k = starts[j]; k < starts[j + 1]; k++)
            if (rows[k] >= n) {
                const int at = p.next[rows[k] - n]++;
                p.column[at] = j, p.entry[at] = k;
            }
    for (int level = 0; level < (int)(sizeof levels / sizeof *levels); level++)
        for (int k = 0; k < m; k++)
            /* Columns that a search has reached in vain are of no use to the next one either. */
            if (partner[n + k] < 0 && extend(&p, k, levels[level], 3 * search + level))
                search++, paired++;
    return paired;
}
