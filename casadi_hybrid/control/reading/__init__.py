"""What can be read from a solution: values in between, errors, active limits, figures, tables."""
