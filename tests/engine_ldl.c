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
