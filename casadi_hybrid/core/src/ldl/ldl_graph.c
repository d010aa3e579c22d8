/* The graph with which both analyses of a pattern begin: see ldl_graph.h. */
#include "ldl/ldl_graph.h"

hybrid_graph hybrid_ldl_spread(int size, int *work) {
    hybrid_graph p;
    int **part[HYBRID_LDL_ARRAYS];
    part[0] = &p.weight, part[1] = &p.parent, part[2] = &p.under, part[3] = &p.columns;
    part[4] = &p.head, part[5] = &p.front, part[6] = &p.visited, part[7] = &p.first;
    part[8] = &p.next, part[9] = &p.where, part[10] = &p.begin;
    p.groups = work, p.fronts = work + 1;
    work += 2;
    for (int k = 0; k < HYBRID_LDL_ARRAYS; k++) {
        *part[k] = work;
        work += size + 1;
    }
    p.list = work;
    return p;
}

void hybrid_ldl_accumulate(int *counts, int n) {
    int sum = 0;
    for (int k = 0; k < n; k++) {
        int count = counts[k];
        counts[k] = sum;
        sum += count;
    }
    counts[n] = sum;
}

/* For every group the neighbours that are eliminated before it: list, from begin on. */
static void neighbours(int size, const int *starts, const int *rows, const int *group,
                       hybrid_graph *p) {
    int groups = 0;
    for (int k = 0; k <= size; k++) p->begin[k] = 0, p->weight[k] = 0;
    for (int j = 0; j < size; j++) {
        p->weight[group[j]]++;
        if (group[j] >= groups) groups = group[j] + 1;
        for (int t = starts[j]; t < starts[j + 1]; t++) {
            int a = group[rows[t]], b = group[j];
            if (a != b) p->begin[(a > b ? a : b) + 1]++;
        }
    }
    *p->groups = groups;
    hybrid_ldl_accumulate(p->begin + 1, groups - 1);
    for (int j = 0; j < size; j++)
        for (int t = starts[j]; t < starts[j + 1]; t++) {
            int a = group[rows[t]], b = group[j];
            if (a > b) p->list[p->begin[a + 1]++] = b;
            if (b > a) p->list[p->begin[b + 1]++] = a;
        }
}

/* The elimination tree (Liu, SIAM J. Matrix Anal. Appl. 11, 1990), with shortcuts to the roots in
 * `visited`; then the rows under a group. */
static void grow(hybrid_graph *p) {
    int groups = *p->groups;
    for (int k = 0; k < groups; k++) {
        p->parent[k] = p->visited[k] = -1;
        for (int t = p->begin[k]; t < p->begin[k + 1]; t++) {
            int j = p->list[t];
            while (p->visited[j] != -1 && p->visited[j] != k) {
                int up = p->visited[j];
                p->visited[j] = k;
                j = up;
            }
            if (p->visited[j] == -1 && j != k) p->visited[j] = k, p->parent[j] = k;
        }
    }
    for (int k = 0; k < groups; k++) p->under[k] = 0, p->visited[k] = -1;
    for (int k = 0; k < groups; k++) {
        p->visited[k] = k;
        for (int t = p->begin[k]; t < p->begin[k + 1]; t++) {
            int j;
            for (j = p->list[t]; p->visited[j] != k; j = p->parent[j]) {
                p->visited[j] = k;
                p->under[j] += p->weight[k];
            }
        }
    }
}

void hybrid_ldl_tree(int size, const int *starts, const int *rows, const int *group,
                     hybrid_graph *p) {
    neighbours(size, starts, rows, group, p);
    grow(p);
}

/* Shell's sort, with the gaps of Ciura and then powers. */
void hybrid_ldl_sort(int *list, int n) {
    static const int gaps[] = {46000, 20000, 8900, 3900, 1750, 701, 301, 132, 57, 23, 10, 4, 1};
    int j;
    for (int g = 0; g < (int)(sizeof gaps / sizeof *gaps); g++)
        for (int i = gaps[g]; i < n; i++) {
            int item = list[i];
            for (j = i; j >= gaps[g] && list[j - gaps[g]] > item; j -= gaps[g])
                list[j] = list[j - gaps[g]];
            list[j] = item;
        }
}
