"""Functions of a problem by the parts that repeat: lists for many at once, or machine code."""
