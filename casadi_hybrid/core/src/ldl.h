/* Sparse symmetric indefinite systems: multifrontal LDL^T on a fixed pattern.

   K = [[W + D, A^T], [A, -E]] is given by its lower triangle in compressed columns, every diagonal
   entry present and the first of its column. It is analysed once for its pattern, then factored and
   solved for many values:

       integers = hybrid_ldl_plan(size, starts, rows, group, places, work);
       hybrid_ldl_analyse(size, starts, rows, group, places, work, tables, &s);
       hybrid_ldl_factor(&s, values, factor, pivots, room, 0, &found);
       residual = hybrid_ldl_solve(&s, values, factor, pivots, b, x, room, 3);

   Nothing is allocated here and nothing is kept: the caller hands in all memory. So any number of
   threads may factor and solve at once, each with its own memory. The analysis is plain integers
   that are only read after it was made; they can as well be written out as constant tables.

   Pivots, 1x1 and 2x2, are chosen among the candidates of a front, and are tested against the whole
   column. A candidate that fails is delayed: it becomes a candidate of the parent, as far as that
   has places. If it has none, and the pivot would make entries grow beyond measure, the candidate
   is delayed as long as the factor has doubles to spare. Their number is fixed in the analysis, so
   that all memory is known beforehand. Else the pivot is taken nevertheless, and counted as
   doubtful. To make that rare, `group` brings a row of A into one front with a variable that it can
   be solved for. Sums are added in one order, whatever the width of a processor's vectors: with
   -ffp-contract=off the result has the same bits on all of them.

   Subtrees of a tree that takes long enough are dealt out to two halves, which share nothing and
   may be factored at once; the rest comes after both. Memory is laid out by these parts, and what a
   half may delay to the rest does not depend on the other half. So the result has the same bits by
   one thread and by two. */
#ifndef HYBRID_LDL_H
#define HYBRID_LDL_H

#ifdef __GNUC__ /* the rest of the core is hidden where it is compiled with -fvisibility=hidden */
#pragma GCC visibility push(default)
#endif

/* Two halves of a tree, and the rest of it. */
#define HYBRID_LDL_PARTS 3

/* The analysis of a pattern. Rows are numbered by position: the order in which they would be
   eliminated if none were delayed. A front is what is eliminated together: its own rows, and those
   of its children that were delayed; below them the rows that they act on. */
typedef struct hybrid_ldl {
    int size;    /* rows of K */
    int entries; /* entries of its lower triangle */
    int fronts;  /* children come before their parents */
    int deepest; /* largest height of a front, at most */
    int stack;   /* doubles for the blocks of fronts that wait for their parents */
    int factor;  /* doubles for the factor, at most */
    int places;  /* so many rows are delayed to a front where their pivots would do no harm */
    int pivots;  /* integers: four for each front, then the order of the pivots */
    int room;    /* doubles of room that hybrid_ldl_factor and hybrid_ldl_solve need */
    int dealt;   /* subtrees that are dealt out to two halves; 0: there are none */
    int panels[HYBRID_LDL_PARTS]; /* where in the factor each part begins, */
    int orders[HYBRID_LDL_PARTS]; /* where in the order of the pivots, */
    int spares[HYBRID_LDL_PARTS]; /* and its doubles for rows that are delayed */
    const int *starts;    /* [size + 1] the pattern as it was given */
    const int *rows;      /* [entries] */
    const int *position;  /* [size] of a row of K */
    const int *first;     /* [fronts + 1] position of a front's first row */
    const int *below;     /* [fronts + 1] where in rest and local a front's rows begin */
    const int *rest;      /* [below[fronts]] positions of the rows below, rising */
    const int *local;     /* [below[fronts]] where they are among the parent's rows, its own and
                             those below, counted without the delayed */
    const int *block;     /* [fronts] where its block is among those that wait */
    const int *parent;    /* [fronts] or -1 */
    const int *part;      /* [fronts] 0 or 1: of a half; 2: of the rest */
    const int *children;  /* [fronts + 1] where in child a front's begin */
    const int *child;     /* [children[fronts]] */
    const int *assembled; /* [size + 1] where in entry and home a position's column begins */
    const int *entry;     /* [entries] which entry of K */
    const int *home;      /* [entries] in which row of the front, counted as in local */
} hybrid_ldl;

/* A pivot of the equilibrated K that is as small as this has no sign. That is less than usual where
   pivots are chosen from all rows that are left: one front may have no larger ones. */
#define HYBRID_LDL_ROUNDING 1e-16
/* A residual, relative to b, that is not refined any more: IPOPT's residual_ratio_max. A solution
   with a larger one is in doubt. */
#define HYBRID_LDL_REFINED 1e-10

/* Result of a factorization. The figures are of the equilibrated K, whose largest entry is 1. */
typedef struct hybrid_inertia {
    int positive, negative, zero; /* pivots; zero: a whole column of rounding */
    int singular;     /* a pivot of rounding, which has no sign, or numbers that are no more
                         finite: do not solve */
    int delayed;      /* times a row was passed on to a parent */
    int doubtful;     /* pivots taken against the test: inertia and solutions may be wrong */
    double smallest;  /* smallest |eigenvalue| of a pivot, 0 for a zero pivot */
    double growth;    /* largest entry met: errors are about 1e-16 times this */
} hybrid_inertia;

/* Integers of work for hybrid_ldl_pair. */
int hybrid_ldl_pairing(int size, int entries);

/* Pairs rows of A with variables: K's rows from `variables` on with those before. partner[size]
   says with whom, for both, or -1. An entry of A that is large in its row is preferred; without
   values (NULL) all are alike. Returns how many pairs there are. */
int hybrid_ldl_pair(int size, int variables, const int *starts, const int *rows,
                    const double *values, int *work, int *partner);

/* Integers of work for the two steps of the analysis. */
int hybrid_ldl_analysis(int size, int entries);

/* First step of the analysis: the fronts. group[i] says when row i is eliminated: 0 first; rows
   with one number are eliminated in one front; every number from 0 to the largest occurs.
   Every front has so many places for delayed rows, as far as its descendants have so many rows;
   the factor has doubles to spare for all of them. Returns the integers that the tables need, or
   -1 where the factor needs more than an int can count. */
int hybrid_ldl_plan(int size, const int *starts, const int *rows, const int *group, int places,
                    int *work);

/* Second step, with the work of the first one as it was left: the tables, and *made, which points
   to them and to starts and rows. Returns 0, or -1 as above. */
int hybrid_ldl_analyse(int size, const int *starts, const int *rows, const int *group, int places,
                       int *work, int *tables, hybrid_ldl *made);

/* A job, and what does two of them, which share nothing: by two threads, say. */
typedef void (*hybrid_job)(void *what);
typedef void (*hybrid_pair)(hybrid_job job, void *one, void *other);

/* Factors K with these values: factor[s->factor], pivots[s->pivots], room[s->room]. `at_once` does
   both halves; NULL: one is done after the other. */
void hybrid_ldl_factor(const hybrid_ldl *s, const double *values, double *factor, int *pivots,
                       double *room, hybrid_pair at_once, hybrid_inertia *found);

/* Solves K x = b, b[size] and x[size] apart, with at most `refinements` corrections by the residual
   of K: until it is at most 1e-10 |b|, or does not halve. Returns its size relative to |b|, both in
   the largest entry; not finite where x is not. Nothing but room and x is written. */
double hybrid_ldl_solve(const hybrid_ldl *s, const double *values, const double *factor,
                        const int *pivots, const double *b, double *x, double *room,
                        int refinements);

/* K in an order that is fixed beforehand: no pivot is chosen, nothing scaled and nothing delayed,
   so that small fronts, as those of optimal control, cost a tenth. Pairs of rows are pivots of two,
   other rows pivots of one. */
typedef struct hybrid_fixed {
    int size, entries;   /* as in hybrid_ldl; size 0: there is no such analysis */
    int vertices;        /* pairs and single rows */
    int factor;          /* doubles for the factor */
    const int *position; /* [size] of a row of K */
    const int *first;    /* [vertices + 1] position of a vertex's first row */
    const int *begin;    /* [vertices + 1] where in below those of a vertex begin */
    const int *below;    /* positions that a vertex acts on, rising */
    const int *home;     /* [entries] where in the factor an entry of K goes */
    const int *target;   /* where in the factor each product of two rows below a vertex goes: first
                            that of the first row with all, then of the second with those after */
} hybrid_fixed;

/* Integers of tables for this analysis with work of hybrid_ldl_analysis integers. -1 if a group has
   more than two rows, the tables would have more than `most` products, or chosen pivots take less
   time. */
int hybrid_fixed_plan(int size, const int *starts, const int *rows, const int *group, int most,
                      int *work);

/* The tables, with the work as hybrid_fixed_plan left it. */
void hybrid_fixed_analyse(int size, const int *starts, const int *rows, const int *group,
                          int *work, int *tables, hybrid_fixed *made);

/* Factors K: factor[s->factor], room[2 s->size]. Where found->doubtful is not 0, cancellation has
   left too little of a pivot, the rest was not factored, and pivots have to be chosen. */
void hybrid_fixed_factor(const hybrid_fixed *s, const double *values, double *factor, double *room,
                         hybrid_inertia *found);

/* b becomes the solution of K x = b, without correction; room[s->size]. */
void hybrid_fixed_solve(const hybrid_fixed *s, const double *factor, double *b, double *room);

/* x += K^-1 r by the factor alone; room[s->size + s->deepest], r apart from x. */
void hybrid_ldl_correct(const hybrid_ldl *s, const double *factor, const int *pivots,
                        const double *r, double *x, double *room);

/* left = b - K x for the lower triangle given. */
void hybrid_ldl_residual(const hybrid_ldl *s, const double *values, const double *x,
                         const double *b, double *left);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
