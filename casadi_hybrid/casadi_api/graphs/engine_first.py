"""A solver in a graph by two branches: the engine in C, and Python for what that leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import casadi as ca

from casadi_hybrid.casadi_api.convention import INPUTS, OUTPUTS, STARTS, Columns, Solve
from casadi_hybrid.casadi_api.graphs.derivatives import Derivatives
from casadi_hybrid.engine.in_graph import DERIVATIVES, Pool
from casadi_hybrid.problem.problem import Problem

_DATA = tuple(name for name in INPUTS if name not in STARTS)


def engine_first(
    name: str, problem: Problem, pool: Pool, solve: Solve
) -> tuple[ca.Function, ca.Callback]:
    """The solver in columns, and what has to be kept for as long as that is in use.

    CasADi evaluates one branch of a conditional and differentiates both. That of the engine has no
    slope, so what needs derivatives has to take the other one. It does: a Function of derivatives
    alone has no f, and so does not ask the engine's Function for the zero that is taken from f,
    which is how that one knows. CasADi makes derivatives Functions of their own wherever a Function
    is not written out where it is called.

    Raises:
        BuildError: where the adapter cannot be built or loaded.
    """
    by_engine = pool.function()
    by_python = _ByPython(f"{name}_by_python", problem, pool, solve)
    inputs = [ca.MX.sym(label, rows) for label, rows in zip(INPUTS, pool.sizes, strict=True)]
    answer, branch, zero, starts = by_engine(ca.vertcat(*inputs))
    data = ca.vertcat(*(inputs[INPUTS.index(label)] for label in _DATA))
    symbols = by_python.mx_in()
    # Were that ever not so, slopes shall not be zero but no numbers: those of the root of a zero.
    spread = ca.sum1(ca.fmin(ca.fmax(symbols[1], -1), 1))
    nothing = ca.sqrt(ca.fabs(symbols[3] * spread))
    as_it_is = ca.Function(f"{name}_by_engine", symbols, [symbols[2] - nothing])
    either = ca.Function.conditional("either", [as_it_is], by_python)
    n, m = problem.n, problem.m
    found = either(branch, starts, data, answer, branch)
    outputs = ca.vertsplit(found, _ends((n, 1, m, n, m, problem.n_p)))
    outputs[OUTPUTS.index("f")] -= zero
    names = list(INPUTS), list(OUTPUTS)
    return ca.Function(name, inputs, outputs, *names, {"never_inline": True}), by_python


class _ByPython(Columns):
    """(starts, data, answer, branch) → answer: as it is where the engine has it, else solved.

    Starts are x0, lam_x0 and lam_g0 in one column, data the other inputs, an answer the outputs.
    Derivatives are those of a solution by the data.
    """

    def __init__(self, name: str, problem: Problem, pool: Pool, solve: Solve) -> None:
        self._problem, self._solve = problem, solve
        n, m = problem.n, problem.m
        sizes = dict(zip(INPUTS, pool.sizes, strict=True))
        self._starts = _ends(sizes[name] for name in STARTS)
        self._data = _ends(sizes[name] for name in _DATA)
        self._answer = _ends((n, 1, m, n, m, problem.n_p))
        self._made: Derivatives | None = None
        rows = self._starts[-1], self._data[-1], self._answer[-1]
        super().__init__(name, (*rows, 1), (rows[-1],))

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        """Solve at numbers, unless that has been done."""
        starts, data, answer, branch = arguments
        if branch == DERIVATIVES:
            return [answer]
        return [ca.vertcat(*self._solve(self._inputs(starts, data)))]

    def has_jac_sparsity(self, _output: int, wrt: int) -> bool:
        """Whether less is known: a solution depends on the data alone."""
        return wrt != 1

    def get_forward(
        self, directions: int, name: str, inames: Any, onames: Any, _options: Any
    ) -> ca.Function:
        """The Function of directional derivatives."""
        given, known = self._symbols()
        seeds = [ca.MX.sym("seed", symbol.numel(), directions) for symbol in given]
        ahead = self._derivatives().forward(directions, "ahead", *_names(22, 6))
        found = ahead.call([
            *self._inputs(given[0], given[1]), *ca.vertsplit(known, self._answer),
            *self._inputs(seeds[0], seeds[1]),
        ])  # fmt: skip
        # What p does not reach has no entries, and CasADi takes all entries of an output or none.
        out = ca.densify(ca.vertcat(*found))
        return ca.Function(name, [*given, known, *seeds], [out], inames, onames)

    def get_reverse(
        self, directions: int, name: str, inames: Any, onames: Any, _options: Any
    ) -> ca.Function:
        """The Function of adjoint derivatives."""
        given, known = self._symbols()
        seed = ca.MX.sym("seed", known.numel(), directions)
        back = self._derivatives().reverse(directions, "back", *_names(20, 8))
        found = back.call([
            *self._inputs(given[0], given[1]), *ca.vertsplit(known, self._answer),
            *ca.vertsplit(seed, self._answer),
        ])  # fmt: skip
        adjoints = [ca.MX(symbol.numel(), directions) for symbol in given]
        by_name = dict(zip(INPUTS, found, strict=True))
        adjoints[1] = ca.densify(ca.vertcat(*(by_name[label] for label in _DATA)))
        return ca.Function(name, [*given, known, seed], adjoints, inames, onames)

    def _symbols(self) -> tuple[list[ca.MX], ca.MX]:
        given = [ca.MX.sym("given", rows) for rows in self._rows_in]
        return given, ca.MX.sym("known", self._rows_out[0])

    def _inputs(self, starts: Any, data: Any) -> list[Any]:
        """All inputs in their order."""
        parts = dict(zip(STARTS, ca.vertsplit(starts, self._starts), strict=True))
        parts |= dict(zip(_DATA, ca.vertsplit(data, self._data), strict=True))
        return [parts[name] for name in INPUTS]

    def _derivatives(self) -> Derivatives:
        if self._made is None:
            self._made = Derivatives(self._problem)
        return self._made


def _ends(sizes: Iterable[int]) -> list[int]:
    return [0, *accumulate(sizes)]


def _names(inputs: int, outputs: int) -> tuple[list[str], list[str]]:
    return [f"i{k}" for k in range(inputs)], [f"o{k}" for k in range(outputs)]
