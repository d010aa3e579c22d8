"""Solvers as texts and files that CasADi reads."""
