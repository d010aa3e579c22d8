"""The engine: the method in C, compiled once a machine, with the problem's functions behind it."""
