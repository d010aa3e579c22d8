"""A problem: its symbols, generated functions, arguments of a solve, and their evaluation."""
