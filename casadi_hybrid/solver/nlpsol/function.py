"""The CasADi Function behind a solver, for maps, symbols and derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from casadi_hybrid.core.binding.externals import without_c
from casadi_hybrid.problem.arguments import NUMBERS
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.options.convention import (
    INPUTS,
    OUTPUTS,
    STARTS,
    Columns,
    Solve,
    columns_of,
)
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.late import LateModule

if TYPE_CHECKING:
    from casadi_hybrid.core.binding.in_graph import Pool
    from casadi_hybrid.solver.nlpsol import derivatives
else:
    derivatives = LateModule("casadi_hybrid.solver.nlpsol.derivatives")  # SciPy comes along

Rows = tuple[tuple[int, ...], tuple[int, ...]]
Source = Callable[[], "derivatives.Derivatives"]
_FAR = {"lbx": -np.inf, "ubx": np.inf, "lbg": -np.inf, "ubg": np.inf}
# CasADi holds no reference to a Python callback, and a graph with a dead one raises. A Function may
# be in any graph, so its callback stays for as long as the process lives.
_KEPT: list[ca.Callback] = []


class _SolveCallback(Columns):
    """(solver, x0, p, …, lam_g0) → (x, …, lam_p) in columns, as solves of the core in graphs."""

    def __init__(self, name: str, of: Source, rows: Rows, solve: Solve) -> None:
        self._of, self._solve = of, solve
        # A solution does not depend on the starts, nor on the number of the solver.
        slopes = [False, *(label not in STARTS for label in INPUTS)]
        super().__init__(name, (1, *rows[0]), rows[1], is_diff_in=slopes)

    def get_name_in(self, i: int) -> str:  # CasADi prints the names where a solve raises
        return ("solver", *INPUTS)[i]

    def get_name_out(self, i: int) -> str:
        return OUTPUTS[i]

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        return self._solve(list(arguments[1:]))

    def get_forward(self, directions: int, name: str, *_names: Any) -> ca.Function:
        return self._of().forward(directions, name)

    def get_reverse(self, directions: int, name: str, *_names: Any) -> ca.Function:
        return self._of().reverse(directions, name)


class _Derivative(Columns):
    """(inputs, outputs, seeds) → directional or adjoint derivatives, a column a direction."""

    def __init__(self, of: Source, name: str, mode: str, directions: int, rows: Rows) -> None:
        # CasADi takes the object with every Function of a solve, and seldom calls it: derivatives
        # are made at the first call.
        self._of, self._mode, self._directions = of, mode, directions
        inputs, outputs = (1, *rows[0]), rows[1]
        seeds, results = (inputs, outputs) if mode == "fwd" else (outputs, inputs)
        name = f"{mode}{directions}_{name}"
        super().__init__(name, inputs + outputs, results, seeds=seeds, directions=directions)

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        return [ca.densify(value) for value in self._made.call(arguments)]

    def get_forward(self, directions: int, *_names: Any) -> ca.Function:
        return self._made.forward(directions)

    def get_reverse(self, directions: int, *_names: Any) -> ca.Function:
        return self._made.reverse(directions)

    @cached_property
    def _made(self) -> ca.Function:
        of = self._of()
        make = of.forward if self._mode == "fwd" else of.reverse
        return make(self._directions, self.name())


def shapes_of(problem: Problem) -> dict[str, tuple[int, int]]:
    """The shapes of a solver's inputs and outputs, as the user has x, p and g."""
    sizes = {"x": problem.n, "p": problem.n_p, "g": problem.m}
    x, p, g = (problem.shapes.get(name, (size, 1)) for name, size in sizes.items())
    rows = g if not problem.m_h else (problem.m - problem.m_h, 1)
    shapes = x, p, x, x, rows, rows, x, g, x, (1, 1), g, x, g, p
    return dict(zip(INPUTS + OUTPUTS, shapes, strict=True))


def callback(
    name: str, problem: Problem, solve: Solve, pool: Pool | None = None
) -> Callable[[list[ca.MX]], Sequence[ca.MX]]:
    """Return the function that puts a solve into a graph; with ``pool`` it calls no Python."""
    of, rows = cache(lambda: derivatives.Derivatives(problem)), columns_of(problem)
    if pool is None:
        handle = ca.MX(0)
        function = _SolveCallback(ca.Function.fix_name(name + "_solve"), of, rows, solve)
        _KEPT.append(function)
    else:
        modes, handle = product(("fwd", "adj"), pool.widths), without_c(pool.handle)
        function = pool.function(_Derivative(of, pool.name, *mode, rows) for mode in modes)
    return lambda columns: function.call([handle, *columns])


def make_function(
    name: str, problem: Problem, solved: Callable[[list[ca.MX]], Sequence[ca.MX]]
) -> ca.Function:
    """Return the solver as a Function with CasADi's names, shapes and defaults."""
    shapes = shapes_of(problem)
    symbols = {label: ca.MX.sym(label, *shapes[label]) for label in INPUTS}
    columns, defaults = [], []
    for (label, symbol), values in zip(symbols.items(), defaults_of(problem), strict=True):
        column = ca.vec(symbol)
        common = float(values[0]) if values.size else _FAR.get(label, 0.0)
        if not (values == common).all():
            # CasADi has one default number an input. NaN, which no input may be, stands for the
            # problem's several: it alone fails the comparison below.
            common = np.nan
            column = ca.if_else(ca.fabs(column) <= np.inf, column, ca.DM(values))
        defaults.append(common)
        if label in ("lbg", "ubg") and problem.m_h:
            column = ca.vertcat(ca.DM.zeros(problem.m_h), column)
        columns.append(column)
    results = zip(OUTPUTS, solved(columns), strict=True)
    outputs = {label: ca.reshape(value, shapes[label]) for label, value in results}
    # Never inlined: then it can be called with SX too.
    options = {"default_in": defaults, "never_inline": True}
    name = ca.Function.fix_name(name)
    return ca.Function(name, symbols | outputs, [*INPUTS], [*OUTPUTS], options)


def defaults_of(problem: Problem) -> list[Vector]:
    """Default values of each input, one an entry; zeros without a default."""
    values, rows = map(problem.defaults.given.get, NUMBERS), columns_of(problem)[0]
    return [np.zeros(n) if value is None else value for value, n in zip(values, rows, strict=True)]
