"""A small problem for the tests of ``Opti``."""

import casadi as ca

from casadi_hybrid import Opti

QUIET = ({"print_time": False}, {"print_level": 0, "sb": "yes"})


def corner(kind=Opti):
    """min (x₀ − p)² + (x₁ − p)² s.t. x₀ + x₁ ≤ 2, x₀ ≥ 0."""
    opti = kind()
    x, p = opti.variable(2), opti.parameter()
    opti.minimize(ca.sumsqr(x - p))
    line = ca.sum1(x) <= 2
    opti.subject_to(line)
    opti.subject_to(x[0] >= 0)
    opti.set_value(p, 3)
    return opti, x, p, line


def hybrid(opti, *options):
    opti.solver("hybrid", *options)
    return opti
