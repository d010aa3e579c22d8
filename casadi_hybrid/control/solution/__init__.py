"""Postprocessing of a solution: values in between, errors, active limits, figures, tables."""
