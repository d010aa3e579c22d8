/* The analysis for a fixed order: see ldl.h. Where every product of the elimination goes is found
   here, once for a pattern. */
#include "ldl.h"
#include "ldl/ldl_graph.h"

/* Mean rows below a row, weighted by themselves, above which fronts with chosen pivots take less
   time. */
#define MOST_BELOW 30.0

/* The tables under the names of their places, while they are filled. */
typedef struct tables {
    int *position, *first, *begin, *below, *home, *target;
} tables;

/* Names for what the graph's arrays are used for here: vertices are the groups. */
#define VERTEX front  /* [size] of a position */
#define PANEL columns /* [size] where in the factor the columns of a vertex begin */

int hybrid_fixed_plan(int size, const int *starts, const int *rows, const int *group, int most,
                      int *work) {
    hybrid_graph p = hybrid_ldl_spread(size, work);
    double below = 0, products = 0;
    hybrid_ldl_tree(size, starts, rows, group, &p);
    for (int k = 0; k < *p.groups; k++) {
        if (p.weight[k] > 2) return -1;
        below += p.under[k];
        products += 0.5 * p.under[k] * (p.under[k] + 1.0);
    }
    if (products > most || 2 * below > most || products > MOST_BELOW * below) return -1;
    return size + 2 * (*p.groups + 1) + starts[size] + (int)below + (int)products;
}

/* The position of each row, and the vertex of each position. */
static void place(int size, const int *group, const hybrid_graph *p, const tables *t) {
    for (int k = 0; k < *p->groups; k++) t->first[k] = p->weight[k];
    hybrid_ldl_accumulate(t->first, *p->groups);
    for (int k = 0; k < *p->groups; k++) p->where[k] = t->first[k];
    for (int k = 0; k < size; k++) {
        t->position[k] = p->where[group[k]]++;
        p->VERTEX[t->position[k]] = group[k];
    }
}

/* Adds to the rows below vertex k those of a list that come after it and were not seen. */
static int add(int k, const int *list, int length, int count, const hybrid_graph *p,
               const tables *t) {
    for (int i = 0; i < length; i++)
        if (list[i] >= t->first[k + 1] && p->visited[list[i]] != k) {
            p->visited[list[i]] = k;
            t->below[count++] = list[i];
        }
    return count;
}

/* The rows below every vertex: of K, and of the children in the elimination tree. */
static void descend(int size, const int *starts, const int *rows, const hybrid_graph *p,
                    const tables *t) {
    const int vertices = *p->groups;
    for (int k = 0; k <= vertices; k++) p->begin[k] = 0;
    for (int j = 0; j < size; j++)
        for (int e = starts[j]; e < starts[j + 1]; e++) {
            const int a = t->position[rows[e]], b = t->position[j];
            p->begin[p->VERTEX[a < b ? a : b]]++;
        }
    hybrid_ldl_accumulate(p->begin, vertices);
    for (int k = 0; k < vertices; k++) p->where[k] = p->begin[k], p->first[k] = -1;
    for (int j = 0; j < size; j++)
        for (int e = starts[j]; e < starts[j + 1]; e++) {
            const int a = t->position[rows[e]], b = t->position[j];
            p->list[p->where[p->VERTEX[a < b ? a : b]]++] = a < b ? b : a;
        }
    for (int k = vertices - 1; k >= 0; k--)
        if (p->parent[k] >= 0) {
            p->next[k] = p->first[p->parent[k]];
            p->first[p->parent[k]] = k;
        }
    for (int k = 0; k < size; k++) p->visited[k] = -1;
    t->begin[0] = 0;
    for (int k = 0; k < vertices; k++) {
        int count = add(k, p->list + p->begin[k], p->begin[k + 1] - p->begin[k], t->begin[k], p, t);
        for (int c = p->first[k]; c >= 0; c = p->next[c])
            count = add(k, t->below + t->begin[c], t->begin[c + 1] - t->begin[c], count, p, t);
        hybrid_ldl_sort(t->below + t->begin[k], count - t->begin[k]);
        t->begin[k + 1] = count;
    }
}

/* Where in the factor the entry of rows a <= b is; from: an index in below at or before that of b
   among the rows below a, which is brought there. */
static int spot(int size, int a, int b, int *from, const hybrid_graph *p, const tables *t) {
    const int k = p->VERTEX[a], begin = t->begin[k];
    if (a == b) return a;
    if (b < t->first[k + 1]) return size + a;
    while (t->below[*from] != b) ++*from;
    return p->PANEL[k] + (a - t->first[k]) * (t->begin[k + 1] - begin) + *from - begin;
}

void hybrid_fixed_analyse(int size, const int *starts, const int *rows, const int *group,
                          int *work, int *into, hybrid_fixed *made) {
    hybrid_graph p = hybrid_ldl_spread(size, work);
    const int vertices = *p.groups;
    int below = 0, *target;
    tables t;
    for (int k = 0; k < vertices; k++) below += p.under[k];
    t.position = into, into += size;
    t.first = into, into += vertices + 1;
    t.begin = into, into += vertices + 1;
    t.home = into, into += starts[size];
    t.below = into, into += below;
    t.target = target = into;
    place(size, group, &p, &t);
    descend(size, starts, rows, &p, &t);
    made->factor = 2 * size;
    for (int k = 0; k < vertices; k++) {
        p.PANEL[k] = made->factor;
        made->factor += (t.first[k + 1] - t.first[k]) * (t.begin[k + 1] - t.begin[k]);
    }
    for (int j = 0; j < size; j++)
        for (int e = starts[j]; e < starts[j + 1]; e++) {
            const int one = t.position[rows[e]], two = t.position[j];
            const int first = one < two ? one : two;
            int from = t.begin[p.VERTEX[first]];
            t.home[e] = spot(size, first, one < two ? two : one, &from, &p, &t);
        }
    for (int k = 0; k < vertices; k++)
        for (int a = t.begin[k]; a < t.begin[k + 1]; a++) {
            int from = t.begin[p.VERTEX[t.below[a]]];
            for (int i = a; i < t.begin[k + 1]; i++)
                *target++ = spot(size, t.below[a], t.below[i], &from, &p, &t);
        }
    made->size = size, made->entries = starts[size], made->vertices = vertices;
    made->position = t.position, made->first = t.first, made->begin = t.begin;
    made->below = t.below, made->home = t.home, made->target = t.target;
}
