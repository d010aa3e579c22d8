"""``ca.Opti`` with the solver of this package among its solvers."""
