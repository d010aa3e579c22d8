"""Solves by the core in C: numbers in, who looks on, results out."""
