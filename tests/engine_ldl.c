/* Factors and solves random systems of the form [[W + D, A'], [A, -E]] with exactly the memory that
   is asked for. Made to run under valgrind or a sanitizer; prints how many residuals were large. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "ldl.h"

static unsigned long state = 1;

static double uniform(void) {
    state = (state * 1103515245UL + 12345UL) & 0x7fffffffUL;
    return (double)state / 2147483648.0;
}

static void *get(int count, size_t size) { return malloc((size_t)count * size + (count == 0)); }

/* The same system in a fixed order, of pairs and single rows in any turn; returns whether its solution
   is wrong though no pivot was in doubt. */
static int fixed(int size, const int *starts, const int *rows, const double *values,
                 const int *group, int groups, const hybrid_ldl *whole) {
    int *turn = get(groups, sizeof(int)), *mine = get(size, sizeof(int));
    int *work = get(hybrid_ldl_analysis(size, starts[size]), sizeof(int)), i, integers, wrong = 0;
    for (i = 0; i < groups; i++) {
        const int k = (int)(uniform() * (i + 1));
        turn[i] = turn[k], turn[k] = i;
    }
    for (i = 0; i < size; i++) mine[i] = turn[group[i]];
    integers = hybrid_fixed_plan(size, starts, rows, mine, uniform() < 0.1 ? 50 : 100000, work);
    if (integers >= 0) {
        int *tables = get(integers, sizeof(int));
        double *factor, *room = get(size, sizeof(double)), *x = get(size, sizeof(double));
        double *product = get(size, sizeof(double)), *b = get(size, sizeof(double));
        double most = 0, largest = 0;
        hybrid_fixed s;
        hybrid_inertia found;
        hybrid_fixed_analyse(size, starts, rows, mine, work, tables, &s);
        factor = get(s.factor, sizeof(double));
        hybrid_fixed_factor(&s, values, factor, room, &found);
        if (!found.doubtful) {
            if (found.positive + found.negative != size) abort();
            for (i = 0; i < size; i++) b[i] = x[i] = uniform() - 0.5;
            hybrid_fixed_solve(&s, factor, x, room);
            hybrid_ldl_product(whole, values, x, product);
            for (i = 0; i < size; i++) most = fabs(x[i]) > most ? fabs(x[i]) : most;
            for (i = 0; i < starts[size]; i++)
                largest = fabs(values[i]) > largest ? fabs(values[i]) : largest;
            for (i = 0; i < size; i++) /* without correction */
                wrong |= !(fabs(product[i] - b[i]) < 1e-6 * (1 + largest * most));
        }
        free(tables), free(factor), free(room), free(x), free(product), free(b);
    }
    free(turn), free(mine), free(work);
    return wrong;
}

/* One random system; returns whether its residual is large though no pivot was in doubt. */
static int one(int n, int m, int spare) {
    const int size = n + m;
    const double dense = uniform(), empty = uniform() < 0.2, pinned = uniform() < 0.3;
    int *starts = get(size + 1, sizeof(int)), *rows = get(size * (size + 1) / 2, sizeof(int));
    double *values = get(size * (size + 1) / 2, sizeof(double));
    int i, j, count = 0, integers, wrong;
    hybrid_ldl s;
    hybrid_inertia found;
    for (j = 0; j < size; j++) {
        starts[j] = count;
        for (i = j; i < size; i++) {
            double value = uniform() - 0.5;
            if (i != j && (uniform() > dense || (j >= n && i >= n))) continue;
            if (i == j && j >= n) value = 0;
            if (i < n && empty) value = 0;
            if (i == j && j < n && pinned && uniform() < 0.3) value = 1e14;
            rows[count] = i, values[count++] = value;
        }
    }
    starts[size] = count;
    {
        int *partner = get(size, sizeof(int)), *group = get(size, sizeof(int));
        int *pairing = get(hybrid_ldl_pairing(size, count), sizeof(int));
        int *work = get(hybrid_ldl_analysis(size, count), sizeof(int)), groups = 0;
        int *tables, *pivots;
        double *factor, *room, *b = get(size, sizeof(double)), *x = get(size, sizeof(double));
        hybrid_ldl_pair(size, n, starts, rows, uniform() < 0.5 ? NULL : values, pairing, partner);
        for (i = 0; i < size; i++)
            group[i] = i >= n && partner[i] >= 0 ? group[partner[i]] : groups++;
        integers = hybrid_ldl_plan(size, starts, rows, group, spare, work);
        tables = get(integers, sizeof(int));
        if (hybrid_ldl_analyse(size, starts, rows, group, spare, work, tables, &s)) abort();
        factor = get(s.factor, sizeof(double)), pivots = get(s.pivots, sizeof(int));
        room = get(s.room, sizeof(double));
        hybrid_ldl_factor(&s, values, factor, pivots, room, &found);
        for (i = 0; i < size; i++) b[i] = uniform() - 0.5;
        wrong = 0;
        if (!found.singular) {
            const double residual = hybrid_ldl_solve(&s, values, factor, pivots, b, x, room, 3);
            double most = 0;
            for (i = 0; i < size; i++) most = fabs(x[i]) > most ? fabs(x[i]) : most;
            wrong = !found.doubtful && most < 1e6 && !(residual < 1e-8);
            if (found.positive + found.negative + found.zero != size) abort();
        }
        wrong |= fixed(size, starts, rows, values, group, groups, &s);
        free(partner), free(group), free(pairing), free(work), free(tables), free(pivots);
        free(factor), free(room), free(b), free(x);
    }
    free(starts), free(rows), free(values);
    return wrong;
}

int main(int count, char **words) {
    const int systems = count > 1 ? atoi(words[1]) : 1000;
    int k, wrong = 0;
    for (k = 0; k < systems; k++) {
        const int n = (int)(uniform() * 30), m = (int)(uniform() * (n + 3));
        wrong += one(n, m, k % 3 * 4);
    }
    printf("%d\n", wrong);
    return 0;
}
