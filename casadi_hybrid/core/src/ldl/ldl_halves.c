/* A tree of fronts, dealt out to two threads: see ldl.h. */
#include "ldl/ldl_graph.h"

/* Nanoseconds from which a second thread is worth its start, and the longest share of them that two
   threads may take. */
#ifndef HYBRID_LDL_WORTH
#define HYBRID_LDL_WORTH 1e6
#endif
#define LONGEST 0.85
/* Durations are counted in such parts of the whole; subtrees to deal take LARGEST at most, or half
   of it and so on down to SMALLEST. */
#define UNITS 1000000000
#define LARGEST (UNITS / 2)
#define SMALLEST (UNITS / 64)

double hybrid_ldl_duration(double pivots, double below) {
    double all = pivots + below;
    double work = pivots * all * all - pivots * pivots * all + pivots * pivots * pivots / 3;
    return 150.0 + 30.0 * pivots + 2.0 * pivots * all / 4 + work / 6 + below * below;
}

static double duration(const hybrid_ldl *s, int f) {
    return hybrid_ldl_duration(s->first[f + 1] - s->first[f], s->below[f + 1] - s->below[f]);
}

/* Deals out the subtrees that take `most` at most, each to the half that has less so far; sum: how
   long they take. Returns how long two threads take. */
static int deal(const hybrid_ldl *s, int most, const int *sum, int *part) {
    int load[HYBRID_LDL_PARTS] = {0};
    for (int f = s->fronts - 1; f >= 0; f--) {
        const int up = s->parent[f];
        if (up >= 0 && part[up] < 2) {
            part[f] = part[up];
            continue;
        }
        part[f] = sum[f] > most ? 2 : load[1] < load[0];
        load[part[f]] += sum[f];
        for (int c = s->children[f]; part[f] == 2 && c < s->children[f + 1]; c++)
            load[2] -= sum[s->child[c]];
    }
    return load[2] + (load[0] > load[1] ? load[0] : load[1]);
}

int hybrid_ldl_halve(const hybrid_ldl *s, int *part, int *sum) {
    double whole = 0;
    int least = UNITS, best = 0, dealt = 0;
    for (int f = 0; f < s->fronts; f++) whole += duration(s, f), part[f] = 2, sum[f] = 0;
    if (!(whole > HYBRID_LDL_WORTH)) return 0;
    for (int f = 0; f < s->fronts; f++) {
        sum[f] += (int)(duration(s, f) / whole * UNITS);
        if (s->parent[f] >= 0) sum[s->parent[f]] += sum[f];
    }
    for (int most = LARGEST; most >= SMALLEST; most /= 2) {
        const int time = deal(s, most, sum, part);
        if (time < least) least = time, best = most;
    }
    deal(s, least <= LONGEST * UNITS ? best : -1, sum, part); /* -1: none */
    for (int f = 0; f < s->fronts; f++)
        dealt += part[f] < 2 && (s->parent[f] < 0 || part[s->parent[f]] == 2);
    return dealt;
}
