"""Random expression graphs, built twice: in NumPy (complex arguments allowed) and in CasADi.

The NumPy side gives derivatives that owe nothing to CasADi: first derivatives by the complex step,
Im g(x + ie)/e with e = 1e-30, which has no cancellation; second derivatives by an eighth-order
central difference of those.
"""

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np
from hypothesis import strategies as st

Tree = tuple[Any, ...]

UNARY = {
    "sin": (np.sin, ca.sin),
    "cos": (np.cos, ca.cos),
    "tanh": (np.tanh, ca.tanh),
    "square": (lambda a: a * a, lambda a: a * a),
    "negate": (lambda a: -a, lambda a: -a),
    # exp and log of something bounded, so that random compositions stay finite.
    "exp sin": (lambda a: np.exp(np.sin(a)), lambda a: ca.exp(ca.sin(a))),
    "log": (lambda a: np.log(2 + np.cos(a)), lambda a: ca.log(2 + ca.cos(a))),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / (2 + b * b),
}


def trees(n: int) -> st.SearchStrategy[Tree]:
    """Trees over the variables x_0 … x_{n−1} and constants."""
    leaves = st.one_of(
        st.tuples(st.just("x"), st.integers(0, n - 1)),
        st.tuples(st.just("c"), st.integers(-20, 20).map(lambda k: k / 10)),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(sorted(UNARY)), inner),
            st.tuples(st.sampled_from(sorted(BINARY)), inner, inner),
        ),
        max_leaves=8,
    )


def evaluate(tree: Tree, x: Any, *, symbolic: bool) -> Any:
    """The value of a tree at x: NumPy numbers, or a CasADi expression."""
    kind, *rest = tree
    if kind == "x":
        return x[rest[0]]
    if kind == "c":
        return rest[0]
    arguments = [evaluate(part, x, symbolic=symbolic) for part in rest]
    if kind in BINARY:
        return BINARY[kind](*arguments)
    return UNARY[kind][1 if symbolic else 0](*arguments)


def numeric(parts: Sequence[Tree]) -> Callable[[Any], Any]:
    """Several trees as one NumPy map."""
    return lambda x: np.array([evaluate(part, x, symbolic=False) for part in parts])


def complex_step(g: Callable[[Any], Any], x: Any) -> Any:
    """Jacobian of a NumPy map at x, exact to rounding (columns over the entries of x)."""
    step = 1e-30
    columns = []
    for j in range(len(x)):
        shifted = np.array(x, dtype=complex)
        shifted[j] += 1j * step
        columns.append(np.imag(g(shifted)) / step)
    return np.stack(columns, axis=-1)


# Eighth-order central difference: error O(step⁸).
WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def central(g: Callable[[Any], Any], x: Any, step: float = 4e-3) -> Any:
    """Jacobian of a NumPy map at x by eighth-order central differences."""
    columns = []
    for j in range(len(x)):
        total: Any = 0.0
        for k, weight in WEIGHTS:
            shift = np.zeros(len(x))
            shift[j] = k * step
            total = total + weight * (g(x + shift) - g(x - shift))
        columns.append(total / step)
    return np.stack(columns, axis=-1)
