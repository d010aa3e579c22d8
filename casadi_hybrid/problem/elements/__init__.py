"""Derivatives by elements: parts of a problem that share no value, many of the same kind."""
