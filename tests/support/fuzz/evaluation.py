"""Random functions in parts, evaluated by a library that was built with sanitizers.

``PYTHONPATH=tests python tests/support/fuzz/evaluation.py LIBRARY COUNT`` loads the library in
place of the one that ``core/evaluation`` builds, and compares COUNT functions with CasADi.
``test_sanitized`` runs the script.
"""

import ctypes
import sys
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.core.evaluation import elements, library, partition
from casadi_hybrid.core.evaluation.forms import Form
from casadi_hybrid.problem.elements.assembly import (
    Assemblies,
    composed,
    first_assembly,
    second_assembly,
)

OF_TWO = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    ca.fmin,
    lambda a, b: ca.if_else(a < b, a, ca.sin(b)),
)
OF_ONE = (ca.sin, ca.tanh, lambda a: a**2, lambda a: 3.5 - a, ca.fabs)
LIMITS = {
    "LARGE": (1, 20, 300),
    "OFTEN": (1, 2, 4),
    "MOST": (20, 200, 80_000),
    "MOST_ALONE": (1, 50, 4_000),
    "SHORTEST_SUM": (3, 24),
    "WIDE_USES": (2, 8, 32),
    "WIDE_RATIO": (1, 8),
}
"""Limits of ``partition`` by which small functions are cut as large ones are."""


def random_functions(seed: int, copies: int) -> tuple[ca.Function, ca.Function]:
    """A random stage, repeated, that reads of stages before it and of what all share."""
    draws = np.random.default_rng(seed)
    x, p = ca.SX.sym("x", copies + 2), ca.SX.sym("p", 2)
    recipe = [(*draws.integers(0, [2, 5, 1000, 1000]),) for _ in range(draws.integers(3, 40))]
    behind, leaves = draws.integers(0, 3), draws.integers(1, 4)
    total, outputs, last = ca.SX(0), [ca.SX(2.5), x[0]], [p[0] * p[1]]
    for k in range(copies):
        values = [x[k], x[k + 1], x[k + 2], p[0], ca.SX(float(k % 3)), ca.exp(p[1]), *last]
        for kind, which, a, b in recipe:
            one, other = values[a % len(values)], values[b % len(values)]
            values.append(OF_TWO[which](one, other) if kind else OF_ONE[which](one))
        last = values[-behind:] if behind and k % 7 else [p[0]]
        outputs += values[-leaves:]
        total += values[-1]
    return (
        ca.Function("first", [x, p], [total, ca.vertcat(*outputs), ca.jacobian(total, x)]),
        ca.Function("second", [x, ca.SX.sym("lam", 0), p], [ca.vertcat(*outputs[::-1])]),
    )


def same_bits(made: Form, which: int, function: ca.Function, *inputs: Any) -> None:
    """The compiled function gives what the interpreted one gives at these numbers."""
    buffer, evaluate = function.buffer()
    arrays = [np.array(one, dtype=float) for one in inputs]
    outputs = [np.zeros(function.nnz_out(i)) for i in range(function.n_out())]
    for i, array in enumerate(arrays):
        buffer.set_arg(i, array.data)
    for i, array in enumerate(outputs):
        buffer.set_res(i, array.data)
    evaluate()
    expected, found = np.concatenate(outputs), made.call(which, *arrays)
    assert found.shape == expected.shape
    # What a NaN looks like hangs on the order of two of them in a sum.
    known = ~np.isnan(expected)
    assert (np.isnan(found) == ~known).all()
    assert (found[known].view(np.int64) == expected[known].view(np.int64)).all()


def elements_of(first: ca.Function) -> tuple[ca.Function, ca.Function, Assemblies] | None:
    """The derivatives of the same numbers as objective and rows, by elements if there are any."""
    x, p = (ca.SX.sym(name, first.numel_in(i)) for i, name in enumerate("xp"))
    total, outputs, _ = first(x, p)
    graph = ca.Function("graph", [x, p], [total, outputs])
    found = elements.find_elements(graph)
    if found is None:  # too much is shared by all
        return None
    both = first_assembly(found), second_assembly(found)
    n, m, n_p = found.n, found.m, found.n_p
    return composed("f", both[0], (n, n_p)), composed("s", both[1], (n, m, n_p)), both


def main(path: str, count: int) -> None:
    """Compare so many functions, each cut in a way of its own, at two points."""
    library.load = lambda _: ctypes.CDLL(path)
    by_elements = 0
    elements.REPEATED, ways = 0, elements.WAYS
    for seed in range(count):
        draws = np.random.default_rng(seed)
        for name, values in LIMITS.items():
            assert hasattr(partition, name)
            setattr(partition, name, int(draws.choice(values)))
        functions = random_functions(seed, int(draws.choice([1, 2, 5, 31, 32, 33, 65])))
        made = Form(*functions)
        for which, function in enumerate(functions):
            for scale in (1e-3, 3.0):
                sizes = (function.nnz_in(i) for i in range(function.n_in()))
                numbers = (scale * draws.standard_normal(size) for size in sizes)
                same_bits(made, which, function, *numbers)
        elements.WAYS = (ways[seed % len(ways)],)
        made_of = elements_of(functions[0])
        if made_of is None:
            continue
        by_elements += 1
        made = Form(*made_of)
        for which, function in enumerate(made_of[:2]):
            sizes = (function.nnz_in(i) for i in range(function.n_in()))
            same_bits(made, which, function, *(draws.standard_normal(size) for size in sizes))
    assert by_elements > count // 2
    print("all have the same bits")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
