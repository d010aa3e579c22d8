"""A problem: symbols and names, its generated functions, its numbers, their evaluation."""
