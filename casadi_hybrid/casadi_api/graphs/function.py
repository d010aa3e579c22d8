"""The CasADi Function behind a solver: what mapping, symbols and derivatives go through."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.casadi_api.convention import INPUTS, OUTPUTS, STARTS, Columns, Solve, dense
from casadi_hybrid.problem.problem import Problem

if TYPE_CHECKING:
    from casadi_hybrid.casadi_api.graphs import derivatives
    from casadi_hybrid.engine.in_graph import Pool
else:
    derivatives = LateModule("casadi_hybrid.casadi_api.graphs.derivatives")  # SciPy comes along

_FAR = {"lbx": -np.inf, "ubx": np.inf, "lbg": -np.inf, "ubg": np.inf}
# CasADi holds no reference to a Python callback, and a graph in which one is dead raises. What has
# become a Function may be in any graph, so it stays for as long as the process lives.
_KEPT: list[ca.Callback] = []


class _SolveCallback(Columns):
    """(x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0) → (x, f, g, lam_x, lam_g, lam_p), in columns.

    Bounds of g are those of all rows, equations first.

    Args:
        name: for messages.
        problem: the problem.
        solve: from the eight columns to the six.
    """

    def __init__(self, name: str, problem: Problem, solve: Solve) -> None:
        self._solve = solve
        self._derivatives = cache(lambda: derivatives.Derivatives(problem))
        slopes = [label not in STARTS for label in INPUTS]
        super().__init__(name, *columns_of(problem), is_diff_in=slopes)

    def get_name_in(self, i: int) -> str:
        return INPUTS[i]

    def get_name_out(self, i: int) -> str:
        return OUTPUTS[i]

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        return self._solve(list(arguments))

    def get_forward(self, directions: int, name: str, *_names: Any) -> ca.Function:
        return self._derivatives().forward(directions, name)

    def get_reverse(self, directions: int, name: str, *_names: Any) -> ca.Function:
        return self._derivatives().reverse(directions, name)


class _Derivative(Columns):
    """(inputs, outputs, seeds) → directional or adjoint derivatives, a column a direction.

    CasADi takes it when the Function of a solve is made, and it is seldom called: what stands
    behind it is made when it is.
    """

    def __init__(
        self,
        of: Callable[[], derivatives.Derivatives],
        name: str,
        mode: str,
        directions: int,
        rows: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> None:
        self._of, self._mode, self._directions = of, mode, directions
        inputs, outputs = (1, *rows[0]), rows[1]
        self._given = len(inputs) + len(outputs)
        seeds, found = (inputs, outputs) if mode == "fwd" else (outputs, inputs)
        super().__init__(f"{mode}{directions}_{name}", (*inputs, *outputs, *seeds), found)

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return dense(self._rows_in[i], 1 if i < self._given else self._directions)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        return dense(self._rows_out[i], self._directions)

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        found = self._made.call(arguments)
        return [value if value.is_dense() else ca.densify(value) for value in found]

    def get_forward(self, directions: int, *_names: Any) -> ca.Function:
        return self._made.forward(directions)

    def get_reverse(self, directions: int, *_names: Any) -> ca.Function:
        return self._made.reverse(directions)

    @cached_property
    def _made(self) -> ca.Function:
        of = self._of()
        make = of.forward if self._mode == "fwd" else of.reverse
        return make(self._directions, self.name())


def columns_of(problem: Problem) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many rows the inputs and outputs have in columns; bounds of g are those of all rows."""
    n, m, n_p = problem.n, problem.m, problem.n_p
    return (n, n_p, n, n, m, m, n, m), (n, 1, m, n, m, n_p)


def shapes_of(problem: Problem) -> dict[str, tuple[int, int]]:
    """The shapes of a solver's inputs and outputs, as the user has x, p and g."""
    known = problem.shapes
    x = known.get("x", (problem.n, 1))
    p = known.get("p", (problem.n_p, 1))
    g = known.get("g", (problem.m, 1))
    rows = g if not problem.m_h else (problem.m - problem.m_h, 1)
    shapes = {"x0": x, "p": p, "lbx": x, "ubx": x, "lbg": rows, "ubg": rows}
    shapes |= {"lam_x0": x, "lam_g0": g}
    return shapes | {"x": x, "f": (1, 1), "g": g, "lam_x": x, "lam_g": g, "lam_p": p}


def callback(
    name: str, problem: Problem, solve: Solve, pool: Pool | None = None
) -> Callable[[list[ca.MX]], Sequence[ca.MX]]:
    """What puts a solve in numbers, as of :class:`_SolveCallback`, into a graph.

    With ``pool`` no Python is called for it, except for derivatives.
    """
    if pool is None:
        made = _SolveCallback(ca.Function.fix_name(name + "_solve"), problem, solve)
        _KEPT.append(made)
        call: Callable[[list[ca.MX]], Sequence[ca.MX]] = made.call
        return call
    of = cache(lambda: derivatives.Derivatives(problem, ("solver", *INPUTS)))
    rows = columns_of(problem)
    function = pool.function([
        _Derivative(of, pool.name, mode, k, rows) for mode in ("fwd", "adj") for k in pool.widths
    ])  # fmt: skip
    return lambda columns: function.call([ca.MX(pool.handle), *columns])


def make_function(
    name: str, problem: Problem, solved: Callable[[list[ca.MX]], Sequence[ca.MX]]
) -> ca.Function:
    """The solver as a Function with CasADi's names, shapes and defaults.

    ``solved`` takes the eight columns and gives the six, in a graph.

    CasADi knows one default number an input. Where the problem has several for one, that is NaN,
    which no input may be, and the Function puts the problem's in its place.
    """
    shapes = shapes_of(problem)
    symbols = {label: ca.MX.sym(label, *shapes[label]) for label in INPUTS}
    columns, defaults = [], []
    for (label, symbol), known in zip(symbols.items(), defaults_of(problem), strict=True):
        column = ca.vec(symbol)
        common = float(known[0]) if known.size else _FAR.get(label, 0.0)
        if known.size and not (known == common).all():
            common = np.nan
            column = ca.if_else(ca.fabs(column) <= np.inf, column, ca.DM(known))
        defaults.append(common)
        if label in ("lbg", "ubg") and problem.m_h:
            column = ca.vertcat(ca.DM.zeros(problem.m_h), column)
        columns.append(column)
    found = zip(OUTPUTS, solved(columns), strict=True)
    outputs = [ca.reshape(value, shapes[label]) for label, value in found]
    return ca.Function(
        ca.Function.fix_name(name),
        list(symbols.values()),
        outputs,
        list(INPUTS),
        list(OUTPUTS),
        # Not written out where it is called: so it may stand among SX too.
        {"default_in": defaults, "never_inline": True},
    )


def defaults_of(problem: Problem) -> list[np.ndarray]:
    """The default numbers of each input, as many as it has entries."""
    found, shapes = [], shapes_of(problem)
    for label in INPUTS:
        known = problem.defaults.given["p0" if label == "p" else label]
        if known is None:
            known = np.full(math.prod(shapes[label]), _FAR.get(label, 0.0))
        found.append(np.asarray(known))
    return found
