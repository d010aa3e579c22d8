"""Symbols and expressions of a problem, and the functions generated from them."""
