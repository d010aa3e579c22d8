"""The method in C: its sources, its binding, evaluation of a problem's functions, export."""
