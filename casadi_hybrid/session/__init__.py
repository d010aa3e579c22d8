"""Solves by the core in C: numbers in, iterates shown, results out."""
