"""The quasi-definite kernel K(D, E), its factorizations, and matrices on a fixed pattern."""
