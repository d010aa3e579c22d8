/* One dense front of the sparse LDL^T: the choice of pivots and the elimination. See ldl_dense.h.

   Columns are brought up to date one by one, when they are tested (Bunch and Kaufman, Math. Comp.
   31, 1977, blocked as in LAPACK); the others are then updated by a batch of pivots at once. */
#include <math.h>
#include "linear_algebra/ldl_dense.h"

/* The test: entries of L that an accepted pivot makes, at most. The first that passes is taken: the
   solution is refined, and a better one costs another column (MA57's threshold is 1e-2; for solvers
   of interior-point methods IPOPT has 1e-6 to 1e-8). */
#define FAIR 1e3
#define ROUNDING HYBRID_LDL_ROUNDING
#define DOUBT 1e7 /* what a pivot taken against the test may add to an entry of one */

/* A way to go on: eliminate row a alone, or a and b together. */
typedef struct choice {
    int a, b;      /* b = -1: a alone */
    double growth; /* largest entry of L, or HUGE_VAL */
    double change; /* largest change of an entry that is left */
} choice;

/* Brings column c up to date with the pivots of this batch, rows `from` and later. Rows above c
   come from row c. Reads from the last multiple of four, where the rows above mean nothing. */
static void fetch(const hybrid_front *f, int from, int batch, int c, double *column) {
    const int height = f->height, low = from & ~3;
    const double *own = f->panel + (long long)c * height, *L = f->panel + (long long)batch * height;
    const double *D = f->scaled + c;
    int k, count = from - batch;
    for (int i = low; i < height; i++) column[i] = own[i];
    for (int i = from; i < c; i++) column[i] = f->panel[c + (long long)i * height];
    for (k = 0; k + 4 <= count; k += 4) {
        const double *restrict l0 = L + (long long)k * height, *restrict l1 = l0 + height,
                     *restrict l2 = l1 + height, *restrict l3 = l2 + height;
        const double d0 = D[(long long)k * height], d1 = D[(long long)(k + 1) * height],
                     d2 = D[(long long)(k + 2) * height], d3 = D[(long long)(k + 3) * height];
        double *restrict x = column;
        for (int i = low; i < height; i++)
            x[i] -= (l0[i] * d0 + l1[i] * d1) + (l2[i] * d2 + l3[i] * d3);
    }
    for (; k < count; k++) {
        const double *restrict l = L + (long long)k * height;
        const double d = D[(long long)k * height];
        double *restrict x = column;
        for (int i = low; i < height; i++) x[i] -= l[i] * d;
    }
}

/* The largest |entry| of x[begin...end-1]. */
static double largest(const double *x, int begin, int end) {
    double m0 = 0, m1 = 0, m2 = 0, m3 = 0;
    int i = begin;
    for (; i + 4 <= end; i += 4) {
        double a = fabs(x[i]), b = fabs(x[i + 1]), c = fabs(x[i + 2]), d = fabs(x[i + 3]);
        m0 = a > m0 ? a : m0, m1 = b > m1 ? b : m1, m2 = c > m2 ? c : m2, m3 = d > m3 ? d : m3;
    }
    for (; i < end; i++) m0 = fabs(x[i]) > m0 ? fabs(x[i]) : m0;
    m0 = m1 > m0 ? m1 : m0, m2 = m3 > m2 ? m3 : m2;
    return m2 > m0 ? m2 : m0;
}

/* The place of the largest |entry| of the candidates from...count-1 but `skip`, -1 if all are
 * zero. */
static int partner(const double *x, int from, int count, int skip) {
    double most = 0;
    int at = -1;
    for (int i = from; i < count; i++)
        if (i != skip && fabs(x[i]) > most) most = fabs(x[i]), at = i;
    return at;
}

/* The largest |entry| of a column beside the rows a and b, both candidates. */
static double others(const hybrid_front *f, const double *x, int from, int a, int b) {
    double most = largest(x, HYBRID_LDL_FOUR(f->candidates), f->height);
    for (int i = from; i < f->candidates; i++)
        if (i != a && i != b && fabs(x[i]) > most) most = fabs(x[i]);
    return most;
}

static choice alone(int a, double pivot, double column) {
    choice made = {a, -1, 0, 0};
    pivot = fabs(pivot);
    if (column > 0) {
        made.growth = pivot > 0 ? column / pivot : HUGE_VAL;
        made.change = made.growth * column;
    }
    return made;
}

/* Rows a and b together: pivots A and B, C between them, and the rest of their columns. */
static choice both(int a, int b, double A, double B, double C, double of_a, double of_b) {
    choice made = {a, b, HUGE_VAL, HUGE_VAL};
    const double p = A / C, q = B / C, det = fabs((p * q - 1) * C);
    if (det > 0) {
        double in_a = (fabs(q) * of_a + of_b) / det, in_b = (of_a + fabs(p) * of_b) / det;
        made.growth = in_a > in_b ? in_a : in_b;
        made.change = in_a * of_a + in_b * of_b;
    }
    return made;
}

/* Exchanges n numbers of x and y that are `step` apart in each. */
static void exchange(double *x, double *y, int n, long step) {
    for (; n > 0; n--, x += step, y += step) {
        double saved = *x;
        *x = *y;
        *y = saved;
    }
}

/* Exchanges the rows and columns k <= q of what is left; `one` and `two` are columns in hand. */
static void swap(const hybrid_front *f, int k, int q, int batch, double *one, double *two) {
    const long long height = f->height;
    double *panel = f->panel;
    int row;
    if (k == q) return;
    row = f->order[k], f->order[k] = f->order[q], f->order[q] = row;
    exchange(one + k, one + q, 1, 1);
    exchange(two + k, two + q, 1, 1);
    exchange(panel + k, panel + q, k, height);
    exchange(f->scaled + k, f->scaled + q, k - batch, height);
    exchange(panel + k * height + k, panel + q * height + q, 1, 1);
    for (row = k + 1; row < q; row++)
        exchange(panel + k * height + row, panel + row * height + q, 1, 1);
    exchange(panel + k * height + q + 1, panel + q * height + q + 1, f->height - q - 1, 1);
}

/* Notes the pivot d: its sign and size. */
static void count(double d, hybrid_inertia *found) {
    if (d > 0) found->positive++;
    else found->negative++;
    if (!(fabs(d) >= found->smallest)) found->smallest = fabs(d);
}

/* Column k of L and of L D for the pivot column[k] alone. */
static void single(const hybrid_front *f, int k, int batch, const double *column, double inverse) {
    double *restrict L = f->panel + (long long)k * f->height;
    double *restrict D = f->scaled + (long long)(k - batch) * f->height;
    for (int i = k & ~3; i < f->height; i++) {
        D[i] = column[i];
        L[i] = column[i] * inverse;
    }
    for (int i = k & ~3; i <= k; i++) L[i] = 0;
    f->diagonal[k] = inverse, f->off_diagonal[k] = 0;
}

/* Columns k and k + 1 for the pivot of the two columns in hand. */
static void pair(const hybrid_front *f, int k, int batch, const double *one, const double *two,
                 hybrid_inertia *found) {
    double *restrict L = f->panel + (long long)k * f->height, *restrict M = L + f->height;
    double *restrict D = f->scaled + (long long)(k - batch) * f->height;
    double *restrict E = D + f->height;
    const double C = one[k + 1], p = one[k] / C, q = two[k + 1] / C;
    const double scale = 1 / ((p * q - 1) * C), a = q * scale, b = p * scale, c = -scale;
    for (int i = k & ~3; i < f->height; i++) {
        const double x = one[i], y = two[i];
        D[i] = x, E[i] = y;
        L[i] = x * a + y * c, M[i] = x * c + y * b;
    }
    for (int i = k & ~3; i <= k + 1; i++) L[i] = M[i] = 0;
    f->diagonal[k] = a, f->diagonal[k + 1] = b, f->off_diagonal[k] = c, f->off_diagonal[k + 1] = 0;
    {
        /* The eigenvalues of the pivot, the larger one first. */
        const double half = 0.5 * (p + q), root = sqrt(0.25 * (p - q) * (p - q) + 1);
        const double larger = half >= 0 ? half + root : half - root;
        count(larger * C, found);
        count((p * q - 1) / larger * C, found);
    }
}

/* Looks for the next pivot among the candidates from k on; the columns of the choice are left in
 * one, two. */
static choice choose(const hybrid_front *f, int k, int batch, double *one, double *two,
                     double *growth) {
    choice best = {0, -1, HUGE_VAL, HUGE_VAL}, now;
    int r, held = -1, off_diagonal = -1;
    for (int c = k; c < f->candidates; c++) {
        double below, column, of_r, pivot;
        fetch(f, k, batch, c, one);
        held = c;
        pivot = one[c];
        below = largest(one, HYBRID_LDL_FOUR(f->candidates), f->height);
        r = partner(one, k, f->candidates, c);
        column = r >= 0 && fabs(one[r]) > below ? fabs(one[r]) : below;
        if (column > *growth) *growth = column;
        if (!(fabs(pivot) <= *growth)) *growth = pivot == pivot ? fabs(pivot) : HUGE_VAL;
        now = alone(c, pivot, column);
        if (now.growth <= FAIR || column <= ROUNDING) {
            now.growth = 0;
            return now;
        }
        if (c == k || now.growth < best.growth) best = now;
        if (r >= 0) {
            fetch(f, k, batch, r, two);
            off_diagonal = r;
            of_r = others(f, two, k, c, r);
            now = both(c, r, pivot, two[r], one[r], others(f, one, k, c, r), of_r);
            if (now.growth < best.growth) best = now;
            if (fabs(one[r]) > of_r) of_r = fabs(one[r]);
            now = alone(r, two[r], of_r);
            if (now.growth < best.growth) best = now;
        }
        if (best.growth <= FAIR) break;
    }
    if (best.a == off_diagonal)
        for (int i = k & ~3; i < f->height; i++) one[i] = two[i];
    else if (best.a != held) fetch(f, k, batch, best.a, one);
    if (best.b >= 0 && best.b != off_diagonal) fetch(f, k, batch, best.b, two);
    return best;
}

/* Takes one pivot, of one or two rows, after those before k; returns how many. None where no pivot
   passes the test and the parent can have what is left. */
static int take(const hybrid_front *f, int k, int batch, hybrid_inertia *found) {
    double *one = f->scaled + (long long)HYBRID_LDL_BATCH * f->height, *two = one + f->height;
    choice made = choose(f, k, batch, one, two, &found->growth);
    int doubtful = made.growth > FAIR && !(made.change <= DOUBT);
    if (made.growth > FAIR && f->candidates - k <= (doubtful ? f->most : f->delays)) return 0;
    if (made.b >= 0) {
        swap(f, k, made.a, batch, one, two);
        if (made.b == k) made.b = made.a;
        swap(f, k + 1, made.b, batch, one, two);
        pair(f, k, batch, one, two, found);
        found->doubtful += doubtful;
        return 2;
    }
    swap(f, k, made.a, batch, one, two);
    if (fabs(one[k]) <= ROUNDING && made.growth == 0) {
        /* The whole column is rounding: it is left out. */
        int i;
        for (i = k & ~3; i < f->height; i++) one[i] = 0;
        single(f, k, batch, one, 0.0);
        found->zero++;
        found->smallest = 0;
        return 1;
    }
    count(one[k], found);
    if (made.growth > FAIR && fabs(one[k]) <= 1 / DOUBT) {
        doubtful = doubtful || fabs(one[k]) <= ROUNDING;
        if (doubtful) one[k] = one[k] < 0 ? -1 / DOUBT : 1 / DOUBT;
    }
    found->doubtful += doubtful;
    single(f, k, batch, one, 1 / one[k]);
    return 1;
}

int hybrid_ldl_eliminate(const hybrid_front *f, hybrid_inertia *found) {
    const int all = f->candidates, inner = HYBRID_LDL_FOUR(all), outer = f->height - inner;
    int k = 0, batch = 0, taken = 1;
    for (; taken && k < all; batch = k) {
        const double *L = f->panel + (long long)batch * f->height;
        while (k < all && k + 2 <= batch + HYBRID_LDL_BATCH) {
            taken = take(f, k, batch, found);
            if (!taken) break;
            k += taken;
        }
        if (k == batch) break;
        if (k < all)
            hybrid_ldl_update(f->height, all - k, k - batch, k, L, f->height, f->scaled + k,
                              f->height, f->panel + (long long)k * f->height, f->height);
        if (f->below)
            hybrid_ldl_update(outer, f->below, k - batch, 0, L + inner, f->height,
                              f->scaled + inner, f->height, f->block, outer);
    }
    return k;
}
