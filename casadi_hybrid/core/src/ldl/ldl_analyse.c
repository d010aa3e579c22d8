/* The analysis of a pattern for the sparse LDL^T: see ldl.h.

   Groups of rows are the vertices of a graph. Its elimination tree and the number of rows under
   each vertex give the fronts; small ones are merged with their parent where that costs less time
   than it saves. Then the rows of every front are listed, and where each entry of K and each row
   of a child goes. */
#include <limits.h>
#include "linear_algebra/ldl_dense.h"
#include "ldl/ldl_graph.h"

int hybrid_ldl_analysis(int size, int entries) {
    return 2 + HYBRID_LDL_ARRAYS * (size + 1) + entries;
}

/* Merges fronts with their parents where it saves time; head: the group each has joined. */
static void merge(hybrid_graph *p) {
    int groups = *p->groups;
    for (int k = 0; k < groups; k++) p->first[k] = -1, p->head[k] = k, p->columns[k] = p->weight[k];
    for (int k = groups - 1; k >= 0; k--)
        if (p->parent[k] >= 0) {
            p->next[k] = p->first[p->parent[k]];
            p->first[p->parent[k]] = k;
        }
    for (int k = 0; k < groups; k++)
        for (int c = p->first[k]; c >= 0; c = p->next[c]) {
            double apart = hybrid_ldl_duration(p->columns[c], p->under[c]) +
                           hybrid_ldl_duration(p->columns[k], p->under[k]);
            double joined = hybrid_ldl_duration(p->columns[c] + p->columns[k], p->under[k]);
            if (joined <= apart) {
                p->columns[k] += p->columns[c];
                p->head[c] = k;
            }
        }
    for (int k = groups - 1; k >= 0; k--) p->head[k] = p->head[p->head[k]];
}

/* Numbers the fronts, children before their parents, those of one parent side by side. */
static void number(hybrid_graph *p) {
    int k, groups = *p->groups, fronts = 0, top = -1;
    for (k = 0; k < groups; k++) p->first[k] = -1;
    /* Roots are the children of none: a chain of its own, begun at `top`. */
    for (k = groups - 1; k >= 0; k--)
        if (p->head[k] == k) {
            int up = p->parent[k] < 0 ? -1 : p->head[p->parent[k]];
            p->visited[k] = up;
            if (up < 0) p->next[k] = top, top = k;
            else p->next[k] = p->first[up], p->first[up] = k;
        }
    while (top >= 0) {
        int up;
        for (k = top; p->first[k] >= 0;) k = p->first[k];
        p->front[k] = fronts++;
        up = p->visited[k];
        if (up >= 0) p->first[up] = p->next[k];
        top = up >= 0 ? up : p->next[k];
    }
    for (int f = 0; f < groups; f++) p->front[f] = p->front[p->head[f]];
    *p->fronts = fronts;
}

int hybrid_ldl_plan(int size, const int *starts, const int *rows, const int *group, int places,
                    int *work) {
    hybrid_graph p = hybrid_ldl_spread(size, work);
    double factor = size, stack = 0, rest = 0;
    hybrid_ldl_tree(size, starts, rows, group, &p);
    merge(&p);
    number(&p);
    for (int k = 0; k < *p.groups; k++)
        if (p.head[k] == k) {
            rest += p.under[k];
            /* Twice what delayed rows may need, as lengthen has it at most. */
            factor += (p.columns[k] + places) * (p.columns[k] + places + p.under[k] + 8.0);
            factor += places * (2.0 * p.columns[k] + places + p.under[k] + 8.0);
            stack += p.under[k] * (p.under[k] + 3.0);
        }
    rest = 2 * rest + 2.0 * starts[size] + 2.0 * size + 7.0 * *p.fronts + 4;
    return factor + stack + rest > 0.9 * INT_MAX ? -1 : (int)rest;
}

/* The tables under the names of their places, while they are filled. */
typedef struct tables {
    int *position, *first, *below, *rest, *local, *block, *parent, *part, *children,
        *child, *assembled, *entry, *home;
} tables;

/* The position of each row of K in the order of elimination: front by front, group by group. */
static void place(int size, const int *group, const hybrid_graph *p, const tables *t) {
    int fronts = *p->fronts, *after = p->begin, *members = p->where;
    for (int k = 0; k <= fronts; k++) t->first[k] = 0;
    for (int k = 0; k < *p->groups; k++) {
        t->first[p->front[k]] += p->weight[k];
        after[k] = p->weight[k];
    }
    hybrid_ldl_accumulate(t->first, fronts);
    hybrid_ldl_accumulate(after, *p->groups);
    for (int k = 0; k < size; k++) members[after[group[k]]++] = k;
    for (int k = 0; k < fronts; k++) p->visited[k] = t->first[k];
    for (int k = 0; k < size; k++) {
        int i = members[k];
        t->position[i] = p->visited[p->front[group[i]]]++;
    }
}

/* The tree of fronts from that of the first step. */
static void descend(const hybrid_graph *p, const tables *t) {
    int f, fronts = *p->fronts;
    for (f = 0; f <= fronts; f++) t->children[f] = 0;
    for (int k = 0; k < *p->groups; k++)
        if (p->head[k] == k) {
            const int up = p->parent[k] < 0 ? -1 : p->front[p->parent[k]];
            t->parent[p->front[k]] = up;
            if (up >= 0) t->children[up + 1]++;
        }
    hybrid_ldl_accumulate(t->children + 1, fronts - 1);
    for (f = 0; f < fronts; f++)
        if (t->parent[f] >= 0) t->child[t->children[t->parent[f] + 1]++] = f;
}

/* The entries of K by the column they are assembled in: that of the row eliminated first. */
static void gather(int size, const int *starts, const int *rows, const tables *t) {
    int *column = t->assembled;
    for (int j = 0; j <= size; j++) column[j] = 0;
    for (int j = 0; j < size; j++)
        for (int e = starts[j]; e < starts[j + 1]; e++) {
            const int a = t->position[rows[e]], b = t->position[j];
            column[(a < b ? a : b) + 1]++;
        }
    hybrid_ldl_accumulate(column + 1, size - 1);
    for (int j = 0; j < size; j++)
        for (int e = starts[j]; e < starts[j + 1]; e++) {
            const int a = t->position[rows[e]], b = t->position[j];
            const int at = column[(a < b ? a : b) + 1]++;
            t->entry[at] = e;
            t->home[at] = a > b ? a : b; /* a position, until the rows of its front are known */
        }
}

/* The rows below the pivots of one front: neighbours of its pivots, and rows of its children. */
static void list(int f, const hybrid_graph *p, const tables *t) {
    int end = t->first[f + 1], count = t->below[f];
    for (int k = t->assembled[t->first[f]]; k < t->assembled[end]; k++) {
        int row = t->home[k];
        if (row >= end && p->visited[row] != f) p->visited[row] = f, t->rest[count++] = row;
    }
    for (int c = t->children[f]; c < t->children[f + 1]; c++)
        for (int k = t->below[t->child[c]]; k < t->below[t->child[c] + 1]; k++) {
            int row = t->rest[k];
            if (row >= end && p->visited[row] != f) p->visited[row] = f, t->rest[count++] = row;
        }
    hybrid_ldl_sort(t->rest + t->below[f], count - t->below[f]);
    t->below[f + 1] = count;
}

/* The places of the entries of K and of the rows of the children in a front. */
static void locate(int f, const hybrid_graph *p, const tables *t) {
    const int begin = t->first[f], end = t->first[f + 1];
    for (int k = begin; k < end; k++) p->where[k] = k - begin;
    for (int k = t->below[f]; k < t->below[f + 1]; k++)
        p->where[t->rest[k]] = end - begin + k - t->below[f];
    for (int k = t->assembled[begin]; k < t->assembled[end]; k++) t->home[k] = p->where[t->home[k]];
    for (int c = t->children[f]; c < t->children[f + 1]; c++)
        for (int k = t->below[t->child[c]]; k < t->below[t->child[c] + 1]; k++)
            t->local[k] = p->where[t->rest[k]];
}

/* The place of a front's block among those of its part that wait for their parents: two stacks
 * against each other, generations taking turns, so that it never stands on its children's. */
static void pile(int *side, const tables *t, hybrid_ldl *made) {
    int held[HYBRID_LDL_PARTS][2] = {{0}}, most[HYBRID_LDL_PARTS] = {0}, begin = 0;
    for (int f = made->fronts - 1; f >= 0; f--)
        side[f] = t->parent[f] >= 0 && !side[t->parent[f]];
    for (int f = 0; f < made->fronts; f++) {
        const int below = t->below[f + 1] - t->below[f], part = t->part[f];
        int c = t->children[f], *mine = &held[part][side[f]];
        t->block[f] = *mine;
        *mine += below * HYBRID_LDL_FOUR(below);
        if (held[part][0] + held[part][1] > most[part]) most[part] = held[part][0] + held[part][1];
        while (c < t->children[f + 1] && t->part[t->child[c]] != part) c++;
        if (c < t->children[f + 1]) held[part][!side[f]] = t->block[t->child[c]];
    }
    for (int k = 0; k < HYBRID_LDL_PARTS; begin += most[k++])
        for (int f = 0; f < made->fronts; f++) {
            const int below = t->below[f + 1] - t->below[f];
            if (t->part[f] != k) continue;
            if (side[f]) t->block[f] = most[k] - t->block[f] - below * HYBRID_LDL_FOUR(below);
            t->block[f] += begin;
        }
    made->stack = begin;
}

/* Lays out the factor, with what delayed rows may need: so many places in every front, as far as
 * its descendants have so many rows. If pivots do harm, the same doubles serve any front of a part.
 * Then a front may become twice as high as the highest one is without delays. */
static void lengthen(int places, const hybrid_graph *p, const tables *t, hybrid_ldl *made) {
    const int rise = places > made->deepest ? places : made->deepest;
    int *delayed = p->where, narrowest = made->deepest;
    double spare[HYBRID_LDL_PARTS] = {0}, panels[HYBRID_LDL_PARTS] = {0};
    int rows[HYBRID_LDL_PARTS] = {0};
    for (int f = 0; f < made->fronts; f++) delayed[f] = 0;
    for (int f = 0; f < made->fronts; f++) {
        const int part = t->part[f];
        const int own = t->first[f + 1] - t->first[f], up = t->parent[f];
        const int below = t->below[f + 1] - t->below[f];
        const int placed = own + (delayed[f] < places ? delayed[f] : places);
        const int risen = own + (delayed[f] < rise ? delayed[f] : rise);
        const int height = HYBRID_LDL_FOUR(risen) + HYBRID_LDL_FOUR(below);
        const int least = HYBRID_LDL_FOUR(own + 1) + HYBRID_LDL_FOUR(below);
        panels[part] += hybrid_ldl_length(own, below), rows[part] += own;
        if (!places) continue;
        spare[part] += hybrid_ldl_length(placed, below) - hybrid_ldl_length(own, below);
        if (height > made->deepest) made->deepest = height;
        if (delayed[f] && least < narrowest) narrowest = least;
        if (up >= 0) delayed[up] += delayed[f] + own;
    }
    /* Each half may use one half of it, by which its own rows can come to the places of the
     * rest. */
    if (made->dealt) spare[2] = 2 * spare[2] + spare[0] + spare[1];
    made->places = places, made->factor = made->size, made->pivots = 4 * made->fronts;
    for (int k = 0; k < HYBRID_LDL_PARTS; k++) {
        made->panels[k] = made->factor, made->orders[k] = made->pivots;
        made->spares[k] = (int)spare[k];
        made->factor += (int)panels[k] + made->spares[k];
        /* A delayed row is at least one column of the narrowest front that can have one. */
        made->pivots += rows[k] + made->spares[k] / (narrowest + 2);
    }
}

/* The room that the factorization and the solution need, which share it; -1 for too much. */
static int roomy(const hybrid_ldl *s) {
    const double front = (HYBRID_LDL_BATCH + 2.0) * s->deepest;
    const double factor = (double)s->entries + s->stack + s->size + (s->dealt ? 2 : 1) * front;
    const double solve = 2.0 * s->size + s->deepest;
    const double room = factor > solve ? factor : solve;
    return room > 0.9 * INT_MAX ? -1 : (int)room;
}

/* Shares the caller's memory out among the tables. `below` is the most they can have. */
static tables share(int size, int entries, int fronts, int below, int *into) {
    tables t;
    int **const each[] = {
        &t.position, &t.first, &t.below, &t.block, &t.parent, &t.part, &t.children,
        &t.child, &t.assembled, &t.entry, &t.home, &t.rest, &t.local};
    const int lengths[] = {
        size, fronts + 1, fronts + 1, fronts, fronts, fronts, fronts + 1,
        fronts, size + 1, entries, entries, below, below};
    for (int k = 0; k < (int)(sizeof each / sizeof *each); into += lengths[k++]) *each[k] = into;
    return t;
}

int hybrid_ldl_analyse(int size, const int *starts, const int *rows, const int *group, int places,
                       int *work, int *into, hybrid_ldl *made) {
    hybrid_graph p = hybrid_ldl_spread(size, work);
    const int fronts = *p.fronts;
    int below = 0;
    tables t;
    for (int f = 0; f < *p.groups; f++)
        if (p.head[f] == f) below += p.under[f];
    t = share(size, starts[size], fronts, below, into);
    made->size = size, made->entries = starts[size], made->fronts = fronts;
    made->starts = starts, made->rows = rows, made->position = t.position, made->first = t.first;
    made->below = t.below, made->rest = t.rest, made->local = t.local;
    made->block = t.block, made->parent = t.parent, made->part = t.part;
    made->children = t.children, made->child = t.child, made->assembled = t.assembled;
    made->entry = t.entry, made->home = t.home;
    descend(&p, &t);
    place(size, group, &p, &t);
    gather(size, starts, rows, &t);
    made->deepest = 0;
    for (int f = 0; f < size; f++) p.visited[f] = -1;
    t.below[0] = 0;
    for (int f = 0; f < fronts; f++) {
        const int columns = t.first[f + 1] - t.first[f];
        int height, under;
        list(f, &p, &t);
        under = t.below[f + 1] - t.below[f];
        height = HYBRID_LDL_FOUR(columns) + HYBRID_LDL_FOUR(under);
        if (height > made->deepest) made->deepest = height;
        locate(f, &p, &t);
    }
    made->dealt = hybrid_ldl_halve(made, t.part, p.next);
    pile(p.next, &t, made);
    lengthen(places, &p, &t, made);
    made->room = roomy(made);
    return made->room < 0 ? -1 : 0;
}
