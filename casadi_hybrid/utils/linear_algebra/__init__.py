"""Matrices on a fixed sparse pattern, and the symmetric factorization of sparse matrices."""
