/* The graph of a pattern, whose vertices are groups of rows. Private to ldl_*.c. */
#ifndef HYBRID_LDL_GRAPH_H
#define HYBRID_LDL_GRAPH_H
#include "ldl.h"

/* The arrays of an analysis in the caller's work. */
typedef struct hybrid_graph {
    int *groups, *fronts; /* their numbers, for the second step of the analysis */
    int *weight;          /* [size] rows in a group */
    int *parent;          /* [size] in the elimination tree, -1 for a root */
    int *under;           /* [size] rows under a group */
    int *columns;         /* [size] pivots of the front that a group heads */
    int *head;            /* [size] the group that heads the front of a group */
    int *front;           /* [size] number of the front of a group */
    int *begin;           /* [size + 1] */
    int *visited;       /* [size] the last group or front that has met this one */
    int *first;           /* [size] first child */
    int *next;            /* [size] next child of the same parent */
    int *where;           /* [size] */
    int *list;            /* [entries] */
} hybrid_graph;

#define HYBRID_LDL_ARRAYS 11

/* Shares work out among them; it has hybrid_ldl_analysis integers. */
hybrid_graph hybrid_ldl_spread(int size, int *work);

/* Turns counts[0...n-1] into where each run begins, and counts[n] into the sum. Where those of runs
 * are at k + 1, counts + 1 and n - 1 are given: once they are filled run k begins at counts[k]. */
void hybrid_ldl_accumulate(int *counts, int n);

/* Weights, the elimination tree, and the number of rows under every group. */
void hybrid_ldl_tree(int size, const int *starts, const int *rows, const int *group,
                     hybrid_graph *p);

/* Sorts a list of numbers, rising. */
void hybrid_ldl_sort(int *list, int n);

/* About how long a front takes, in nanoseconds: to begin with it, to choose its pivots, to
   eliminate them, and to add what is left to the parent. */
double hybrid_ldl_duration(double pivots, double below);

/* Deals subtrees out to two halves where two threads save enough: part[fronts], as in hybrid_ldl,
   which has its tree already; sum[fronts] is work. Returns how many subtrees. */
int hybrid_ldl_halve(const hybrid_ldl *s, int *part, int *sum);
#endif
