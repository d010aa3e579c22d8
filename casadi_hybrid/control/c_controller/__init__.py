"""A controller as C99: the solver with its names, its scales and its loop."""
