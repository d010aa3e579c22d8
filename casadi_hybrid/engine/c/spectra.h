/* Singular values and eigenvectors of small full matrices, and what is made of them. */
#ifndef HYBRID_SPECTRA_H
#define HYBRID_SPECTRA_H

/* B, m x n, with its singular values that count: B = U diag(sigma) Y', as rules/spectra.py. */
typedef struct {
    double *U;     /* m each */
    double *V;     /* n each, n of them: the columns of Y, then those of Z, which span ker B */
    double *sigma; /* falling */
    int rank;      /* how many count */
} hybrid_spectrum;

/* The decomposition of B from its rows, n numbers each, which are lost; `tau` has n numbers and
 * `order` m. Singular values below this part of the largest count as zero. */
void hybrid_singular(int m, int n, double *rows, double tolerance, double *tau, int *order,
                     hybrid_spectrum *found);
/* Eigenvalues, rising, and eigenvectors, in the columns of A, of a full symmetric A; `work` has n
 * numbers. Returns 0, or 1 where they did not converge. */
int hybrid_symmetric(int n, double *A, double *values, double *work);
/* The shortest minimizer t of sum e t^2 / 2 + b't with |t| <= radius, e rising, and the multiplier of
 * the radius: as iterations/trust_region.py. Returns 0; where the slope does not say in which
 * direction to leave, among how many eigenvectors the first was taken. */
int hybrid_trust_region(int n, const double *e, const double *b, double radius, double *t,
                        double *multiplier);
/* The radius after a step of this size and ratio of gain to prediction: as there. */
double hybrid_next_radius(double radius, double size, double ratio);

#endif
