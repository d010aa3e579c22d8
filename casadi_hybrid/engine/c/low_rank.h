/* A kernel whose W has a change of low rank: see low_rank.c. */
#ifndef HYBRID_LOW_RANK_H
#define HYBRID_LOW_RANK_H

#include "internal.h"

/* Whether a block has no more than its diagonal in the pattern of the Hessian. */
int hybrid_is_large(const hybrid_plan *plan, int block);
void hybrid_place_low_rank(const hybrid_plan *plan, hybrid_arena *arena, hybrid_low_rank *low);
/* Completes the factorization of K0, the K without the change, with `count` entries of w pinned.
 * Returns as hybrid_factor. */
int hybrid_factor_low_rank(const hybrid_plan *plan, hybrid_kernel *kernel, int count);
/* kernel->solution of K for kernel->right. Returns as hybrid_resolve. */
int hybrid_resolve_low_rank(const hybrid_plan *plan, hybrid_kernel *kernel);
/* left = right - K x. */
void hybrid_left_by(const hybrid_plan *plan, const hybrid_kernel *kernel, const double *right,
                    const double *x, double *left);
/* out += U diag(w) U'v, where v counts in the `count` entries at `of` alone; NULL: in all n. */
void hybrid_add_low_rank(const hybrid_plan *plan, hybrid_low_rank *low, const double *v, int count,
                         const int *of, double *out);
/* The largest |entry| of W, of its change only the diagonal. */
double hybrid_largest_of_W(const hybrid_plan *plan, const double *W, const hybrid_low_rank *low);

#endif
