/* The pivoted QR decomposition, and eigenvectors by the implicit QL iteration on a tridiagonal
 * matrix (Golub and Van Loan, Matrix Computations, 4th ed., sections 5.4 and 8.3). The matrices are
 * so small that calls of LAPACK would take longer. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "linear_algebra/linear_algebra.h"

#define SWEEPS 40

static void swap(int count, double *a, double *b) {
    for (int i = 0; i < count; i++) {
        double saved = a[i];
        a[i] = b[i];
        b[i] = saved;
    }
}

/* Sorts n eigenvalues, rising, with their eigenvectors, the columns of A. */
static void sort(int n, double *values, double *A) {
    for (int j = 0; j < n; j++) {
        int least = j;
        for (int k = j + 1; k < n; k++)
            if (values[k] < values[least]) least = k;
        if (least == j) continue;
        swap(1, values + j, values + least);
        swap(n, A + (long long)j * n, A + (long long)least * n);
    }
}

/* Turns columns a and b of n numbers by a plane rotation. */
static void turn(int n, double c, double s, double *a, double *b) {
    for (int k = 0; k < n; k++) {
        double saved = b[k];
        b[k] = s * a[k] + c * saved;
        a[k] = c * a[k] - s * saved;
    }
}

/* Reflects the columns after column j of m, n numbers each, by v from entry j on, whose first entry
 * is one. */
static void reflect(int m, int n, int j, double tau, const double *v, double *columns) {
    for (int c = j + 1; c < m; c++) {
        double *column = columns + (long long)c * n + j;
        const double along = tau * (column[0] + hybrid_dot(n - j - 1, v + 1, column + 1));
        for (int i = 0; i < n - j; i++) column[i] -= along * v[i];
    }
}

void hybrid_qr_diagonal(int m, int n, double *columns, double *diagonal) {
    const int count = m < n ? m : n;
    for (int j = 0; j < count; j++) {
        double most = -1.0, size, *v = columns + (long long)j * n;
        int longest = j;
        for (int c = j; c < m; c++) {
            const double *column = columns + (long long)c * n + j;
            const double square = hybrid_dot(n - j, column, column);
            if (square > most) {
                most = square;
                longest = c;
            }
        }
        if (longest != j) swap(n, v, columns + (long long)longest * n);
        v += j;
        size = sqrt(most > 0.0 ? most : 0.0);
        diagonal[j] = v[0] > 0.0 ? -size : size;
        if (size > 0.0) {
            const double first = v[0] - diagonal[j];
            for (int i = 1; i < n - j; i++) v[i] /= first;
            v[0] = 1.0;
            reflect(m, n, j, -first / diagonal[j], v, columns);
        }
    }
}

/* --- eigenvectors ----------------------------------------------------------------------------- */

/* A becomes the columns of Q and (values, off) a tridiagonal T with A = Q T Q', off[0] = 0. By
 * reflections, the last row first. */
static void tridiagonal(int n, double *A, double *values, double *off) {
    for (int i = n - 1; i > 0; i--) {
        double *row = A + (long long)i * n, scale = 0.0, square = 0.0, f, g, h;
        for (int k = 0; k < i; k++) scale += fabs(row[k]);
        if (i == 1 || scale == 0.0) {
            off[i] = row[i - 1];
            values[i] = 0.0;
            continue;
        }
        for (int k = 0; k < i; k++) {
            row[k] /= scale;
            square += row[k] * row[k];
        }
        f = row[i - 1];
        g = f > 0.0 ? -sqrt(square) : sqrt(square);
        off[i] = scale * g;
        h = square - f * g;
        row[i - 1] = f - g;
        for (int j = 0; j < i; j++) { /* of each column of the block what is up to the diagonal */
            const double *column = A + (long long)j * n;
            off[j] = hybrid_dot(j + 1, column, row);
            for (int k = 0; k < j; k++) off[k] += row[j] * column[k];
        }
        for (int j = 0; j < i; j++) off[j] /= h;
        f = hybrid_dot(i, off, row) / (h + h);
        for (int j = 0; j < i; j++) off[j] -= f * row[j];
        for (int j = 0; j < i; j++)
            for (int k = 0; k <= j; k++)
                A[(long long)j * n + k] -= row[j] * off[k] + off[j] * row[k];
        values[i] = h;
    }
    off[0] = values[0] = 0.0;
    for (int i = 0; i < n; i++) { /* Q from the reflections, the first first */
        double *row = A + (long long)i * n;
        if (values[i] != 0.0)
            for (int j = 0; j < i; j++) {
                double *column = A + (long long)j * n;
                double sum = hybrid_dot(i, row, column) / values[i];
                for (int k = 0; k < i; k++) column[k] -= sum * row[k];
            }
        values[i] = row[i];
        row[i] = 1.0;
        for (int j = 0; j < i; j++) row[j] = A[(long long)j * n + i] = 0.0;
    }
}

/* One QL step with the implicit shift of Wilkinson on the block from l to m. */
static void chase(int n, int l, int m, double *A, double *values, double *off) {
    double g = (values[l + 1] - values[l]) / (2.0 * off[l]), r = sqrt(g * g + 1.0);
    double s = 1.0, c = 1.0, p = 0.0;
    g = values[m] - values[l] + off[l] / (g + (g < 0.0 ? -r : r));
    for (int i = m - 1; i >= l; i--) {
        double f = s * off[i], b = c * off[i];
        r = sqrt(f * f + g * g);
        off[i + 1] = r;
        if (r == 0.0) { /* the block has fallen apart */
            values[i + 1] -= p;
            off[m] = 0.0;
            return;
        }
        s = f / r;
        c = g / r;
        g = values[i + 1] - p;
        r = (values[i] - g) * s + 2.0 * c * b;
        p = s * r;
        values[i + 1] = g + p;
        g = c * r - b;
        turn(n, c, s, A + (long long)i * n, A + (long long)(i + 1) * n);
    }
    values[l] -= p;
    off[l] = g;
    off[m] = 0.0;
}

int hybrid_eigen(int n, double *A, double *values, double *work) {
    double *off = work, size = 0.0, largest = hybrid_norm_inf(n * n, A);
    int exponent = 0;
    if (isfinite(largest)) frexp(largest, &exponent);
    for (int k = 0; k < n * n; k++) A[k] = ldexp(A[k], -exponent); /* squares stay in range */
    tridiagonal(n, A, values, off);
    for (int i = 1; i < n; i++) off[i - 1] = off[i];
    if (n) off[n - 1] = 0.0;
    for (int i = 0; i < n; i++)
        if (fabs(values[i]) + fabs(off[i]) > size) size = fabs(values[i]) + fabs(off[i]);
    for (int l = 0; l < n; l++) {
        for (int tries = 0;; tries++) {
            int m = l;
            while (m < n - 1 && !(fabs(off[m]) <= DBL_EPSILON * size)) m++;
            if (m == l) break;
            if (tries == SWEEPS) return 1;
            chase(n, l, m, A, values, off);
        }
    }
    for (int i = 0; i < n; i++) values[i] = ldexp(values[i], exponent);
    sort(n, values, A);
    return !hybrid_all_finite(n, values);
}
