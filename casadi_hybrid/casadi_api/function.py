"""The CasADi Function behind a solver: what mapping, symbols and derivatives go through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.casadi_api.convention import INPUTS, OUTPUTS, STARTS, Columns
from casadi_hybrid.casadi_api.derivatives import Derivatives
from casadi_hybrid.engine.building.compiler import BuildError
from casadi_hybrid.engine.in_graph import Pool
from casadi_hybrid.problem.problem import Problem

_FAR = {"lbx": -np.inf, "ubx": np.inf, "lbg": -np.inf, "ubg": np.inf}
# CasADi holds no reference to a Python callback, and a graph in which one is dead raises. What has
# become a Function may be in any graph, so it stays for as long as the process lives.
_KEPT: list[ca.Callback] = []


class SolveCallback(Columns):
    """(x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0) → (x, f, g, lam_x, lam_g, lam_p), in columns.

    Bounds of g are those of all rows, equations first.

    Args:
        name: for messages.
        problem: the problem.
        solve: from the eight columns to the six.
    """

    def __init__(
        self, name: str, problem: Problem, solve: Callable[[list[ca.DM]], list[ca.DM]]
    ) -> None:
        n, m, n_p = problem.n, problem.m, problem.n_p
        self._problem, self._solve = problem, solve
        self._derivatives: Derivatives | None = None
        super().__init__(name, (n, n_p, n, n, m, m, n, m), (n, 1, m, n, m, n_p))

    def get_name_in(self, i: int) -> str:
        """Name of input i."""
        return INPUTS[i]

    def get_name_out(self, i: int) -> str:
        """Name of output i."""
        return OUTPUTS[i]

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        """Solve at numbers."""
        return self._solve(list(arguments))

    def get_forward(
        self, directions: int, name: str, inames: Any, onames: Any, _options: Any
    ) -> ca.Function:
        """The Function of directional derivatives."""
        return self._made().forward(directions, name, inames, onames)

    def get_reverse(
        self, directions: int, name: str, inames: Any, onames: Any, _options: Any
    ) -> ca.Function:
        """The Function of adjoint derivatives."""
        return self._made().reverse(directions, name, inames, onames)

    def has_jac_sparsity(self, _output: int, wrt: int) -> bool:
        """Whether less is known: no solution depends on where its search began."""
        return INPUTS[wrt] in STARTS

    def _made(self) -> Derivatives:
        if self._derivatives is None:
            self._derivatives = Derivatives(self._problem)
        return self._derivatives


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


def make_function(
    name: str,
    problem: Problem,
    solve: Callable[[list[ca.DM]], list[ca.DM]] | None,
    pool: Pool | None = None,
) -> ca.Function:
    """The solver as a Function with CasADi's names, shapes and defaults.

    Without ``solve`` it has these and gives zeros. With ``pool`` the engine in C is asked first.

    CasADi knows one default number an input. Where the problem has several for one, that is NaN,
    which no input may be, and the Function puts the problem's in its place.
    """
    shapes = shapes_of(problem)
    symbols = {label: ca.MX.sym(label, *shapes[label]) for label in INPUTS}
    columns, defaults = [], []
    for label, symbol in symbols.items():
        column = ca.vec(symbol)
        known = default_of(problem, label)
        common = float(known[0]) if known.size else _FAR.get(label, 0.0)
        if known.size and not (known == common).all():
            common = np.nan
            column = ca.if_else(ca.fabs(column) <= np.inf, column, ca.DM(known))
        defaults.append(common)
        if label in ("lbg", "ubg") and problem.m_h:
            column = ca.vertcat(ca.DM.zeros(problem.m_h), column)
        columns.append(column)
    if solve is None:
        outputs = [ca.DM.zeros(*shapes[label]) for label in OUTPUTS]
    else:
        callback = SolveCallback(ca.Function.fix_name(name + "_solve"), problem, solve)
        _KEPT.append(callback)
        known = callback
        if pool is not None:
            # Not built where no folder for temporary files has any that may be run.
            with suppress(BuildError):
                known = _engine_first(callback, pool)
        found = zip(OUTPUTS, known.call(columns), strict=True)
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


def _engine_first(callback: SolveCallback, pool: Pool) -> ca.Function:
    """The callback, asked only for what the engine in C does not solve, and for derivatives.

    CasADi evaluates one branch of a conditional and differentiates both. That of the engine has no
    slope. So derivatives need the other one, and get it: the engine's Function solves nothing where
    its zero is not asked for, and a Function of derivatives alone has no f to take the zero from.
    CasADi makes such a Function of every one that is not written out where it is called.
    """
    inputs = [ca.MX.sym(name, size) for name, size in zip(INPUTS, pool.sizes, strict=True)]
    answer, branch, zero, starts = pool.function()(ca.vertcat(*inputs))
    data = [i for i, name in enumerate(INPUTS) if name not in STARTS]
    given = ca.vertcat(*(inputs[i] for i in data))
    symbols = [ca.MX.sym("part", part.numel()) for part in (starts, given, answer)]
    order = [i for i, name in enumerate(INPUTS) if name in STARTS] + data
    parts = ca.vertsplit(
        ca.vertcat(*symbols[:2]), [0, *accumulate(pool.sizes[i] for i in order)]
    )  # fmt: skip
    columns = [parts[order.index(i)] for i in range(len(INPUTS))]
    by_python = ca.Function("by_python", symbols, [ca.vertcat(*callback.call(columns))])
    by_engine = ca.Function("by_engine", symbols, [symbols[2]])
    either = ca.Function.conditional("either", [by_engine], by_python)
    sizes = [callback.numel_out(i) for i in range(len(OUTPUTS))]
    outputs = ca.vertsplit(either(branch, starts, given, answer), [0, *accumulate(sizes)])
    outputs[OUTPUTS.index("f")] -= zero
    return ca.Function(
        callback.name(), inputs, outputs, list(INPUTS), list(OUTPUTS), {"never_inline": True}
    )


def default_of(problem: Problem, label: str) -> np.ndarray:
    """The default numbers of one input, as many as it has entries."""
    known = getattr(problem.defaults, "p0" if label == "p" else label)
    if known is not None:
        return np.asarray(known)
    rows, columns = shapes_of(problem)[label]
    return np.full(rows * columns, _FAR.get(label, 0.0))
