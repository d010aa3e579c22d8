"""Solve a ``ca.Opti`` problem with the barrier method of this package, in one line."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.casadi_api.interface import nlpsol
from casadi_hybrid.result import Result


class OptiSolveError(RuntimeError):
    """The solve of an Opti problem did not succeed.

    Attributes:
        solution: the :class:`OptiSolution` at the best point found.
    """

    def __init__(self, message: str, solution: OptiSolution) -> None:
        self.solution = solution
        super().__init__(message)


@dataclass(frozen=True, eq=False)
class OptiSolution:
    """A solved Opti problem. It holds a copy of the problem: later changes do not reach it.

    Attributes:
        result: the solve's point, multipliers, residuals and both statuses.
    """

    result: Result
    _opti: Any = field(repr=False)
    _stats: dict[str, Any] = field(repr=False)

    @property
    def variable_names(self) -> tuple[str, ...]:
        """One per entry of ``opti.x``: symbol, entry and source line."""
        return self.result.variable_names

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """One per entry of ``opti.g``, with the source line of ``subject_to``."""
        return self.result.constraint_names

    @property
    def success(self) -> bool:
        """Whether the point is a KKT point within tolerance."""
        return self.result.success

    def value(self, expression: Any) -> Any:
        """The value of any expression of variables, parameters and multipliers.

        Shapes are those of ``opti.value``: floats for scalars, NumPy arrays otherwise.
        """
        return self._opti.debug.value(expression, self._opti.initial())

    def dual(self, constraint: Any) -> Any:
        """The multiplier of a constraint, with the sign of ``opti.value(opti.dual(c))``.

        Args:
            constraint: the expression that was given to ``subject_to``.

        Raises:
            InputError: where it is no constraint of this problem.
        """
        try:
            multiplier = self._opti.dual(constraint)
        except RuntimeError:
            raise InputError(
                f"{str(constraint)[:80]} is not a constraint of this problem; give dual() the "
                "very expression that was given to subject_to()"
            ) from None
        return self.value(multiplier)

    def describe_constraint(self, i: int) -> str:
        """Say where entry i of ``opti.g`` comes from: shape, file, line and source text."""
        return str(self._opti.debug.g_describe(i))

    def describe_variable(self, i: int) -> str:
        """Say where entry i of ``opti.x`` comes from: name, shape, file, line and source text."""
        return str(self._opti.debug.x_describe(i))

    def explain(self) -> str:
        """Say in sentences how the solve ended; constraints are named by their source lines."""
        return self.result.explain()

    def stats(self) -> dict[str, Any]:
        """Statistics under CasADi's keys, as :meth:`casadi_hybrid.NlpSolver.stats` gives them."""
        return deepcopy(self._stats)


def solve_opti(opti: Any, *, error_on_fail: bool = True, **options: Any) -> OptiSolution:
    """Solve a ``ca.Opti`` problem; ``opti`` itself is left as it is and needs no ``solver()``.

    The start is that of ``opti.set_initial``; where it names multipliers (``opti.lam_g``), the
    active set they name is tried first. Linear scales set in Opti are not used: the solver scales
    the problem itself, and values and multipliers are unscaled either way.

    Args:
        opti: the problem.
        error_on_fail: raise where the solve fails, as ``opti.solve()`` does; else return the best
            point, with ``success`` False.
        **options: those of :func:`~casadi_hybrid.nlpsol` (``tol``, ``max_iter``, ``log``,
            ``iteration_callback``, …), without the names.

    Raises:
        InputError: for a parameter without a value, a discrete variable, a semidefinite
            constraint, crossed bounds, or an unknown option.
        OptiSolveError: where the solve fails and ``error_on_fail`` is set.

    Example:
        >>> import casadi as ca
        >>> opti = ca.Opti()
        >>> x = opti.variable(2)
        >>> opti.minimize(ca.sumsqr(x))
        >>> line = ca.sum1(x) >= 2
        >>> opti.subject_to(line)
        >>> solution = solve_opti(opti)
        >>> [round(float(v), 6) for v in (*solution.value(x), solution.dual(line))]
        [1.0, 1.0, 2.0]
    """
    if not isinstance(opti, ca.Opti):
        raise InputError(f"solve_opti needs a ca.Opti, got {type(opti).__name__}")
    copy = opti.copy()
    _refuse_unsupported(copy)
    x, p = ca.MX.sym("x", copy.nx), ca.MX.sym("p", copy.np)
    # Through one Function: opti.x is a vertcat of symbols of any shape.
    graph = ca.Function("opti", [copy.x, copy.p], [copy.f, copy.g])
    f, g = graph.call([x, p], True, False)
    names = {"variable_names": _variable_names(copy), "constraint_names": _constraint_names(copy)}
    nlp = {"x": x, "p": p, "f": f, "g": g} if copy.np else {"x": x, "f": f, "g": g}
    solver = nlpsol("opti", "hybrid", nlp, {**options, **names})
    lbg, ubg = (_numbers(copy, bound, copy.ng) for bound in (copy.lbg, copy.ubg))
    solver(
        x0=_numbers(copy, copy.x, copy.nx),
        p=_numbers(copy, copy.p, copy.np),
        lbg=lbg,
        ubg=ubg,
        lam_g0=_numbers(copy, copy.lam_g, copy.ng),
    )
    result = solver.result
    copy.set_initial(copy.x, result.x)
    if copy.ng:
        copy.set_initial(copy.lam_g, result.lam_g)
    solution = OptiSolution(result, copy, solver.stats())
    if error_on_fail and not result.success:
        raise OptiSolveError(f"the Opti problem was not solved. {result.explain()}", solution)
    return solution


def _refuse_unsupported(opti: Any) -> None:
    advanced = opti.advanced
    if not opti.nx:
        raise InputError("no variable of the Opti problem occurs in its objective or constraints")
    for symbol in advanced.symvar():
        meta = advanced.get_meta(symbol)
        where = _place(meta)
        if meta.type == ca.OPTI_VAR and meta.domain != ca.OPTI_DOMAIN_REAL:
            raise InputError(
                f"variable {symbol.name()}{where} is discrete; only real variables are supported "
                "here, use a mixed-integer solver"
            )
        if meta.type == ca.OPTI_PAR:
            try:
                opti.debug.value(symbol)
            except RuntimeError:
                raise InputError(
                    f"parameter {symbol.name()}{where} has no value; give it one with "
                    "opti.set_value()"
                ) from None
    for constraint in advanced.constraints():
        meta = advanced.get_meta_con(constraint)
        if meta.type == ca.OPTI_PSD:
            raise InputError(
                f"the constraint {str(constraint)[:80]}{_place(meta)} is semidefinite (Opti reads "
                "an inequality between square matrices so); for entrywise bounds write "
                "ca.vec(X) >= 0"
            )


def _numbers(opti: Any, expression: Any, size: int) -> Vector:
    if not size:
        return np.zeros(0)
    value = opti.debug.value(expression, opti.initial())
    # A sparse value comes as a scipy matrix.
    value = value.toarray() if hasattr(value, "toarray") else value
    return np.array(value, dtype=np.float64).ravel()


def _variable_names(opti: Any) -> tuple[str, ...]:
    names: list[str] = []
    for i in range(opti.nx):
        symbol = opti.advanced.x_lookup(i)
        meta = opti.advanced.get_meta(symbol)
        entry = i - meta.start
        rows, columns = symbol.shape
        if meta.attribute != "full" or rows == columns == 1:
            index = "" if rows == columns == 1 else f"[{entry}]"
        else:
            row, column = entry % rows, entry // rows
            index = f"[{row}]" if columns == 1 else f"[{row}, {column}]"
        names.append(f"{symbol.name()}{index}{_place(meta)}")
    return tuple(names)


def _constraint_names(opti: Any) -> tuple[str, ...]:
    advanced = opti.advanced
    metas = [advanced.get_meta_con(advanced.g_lookup(i)) for i in range(opti.ng)]
    return tuple(f"g[{i}]{_place(meta)}" for i, meta in enumerate(metas))


def _place(meta: Any) -> str:
    """The file and line Opti remembers, where it does."""
    trace = meta.extra.get("stacktrace") or []
    return f" ({Path(trace[0]['file']).name}:{trace[0]['line']})" if trace else ""
