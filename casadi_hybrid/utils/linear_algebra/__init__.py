"""Matrices on a fixed sparse pattern, and their symmetric factorization."""
