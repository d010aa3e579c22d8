"""A baked Opti problem, made into a problem of this package and solved as often as is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.casadi_api.interface import nlpsol
from casadi_hybrid.casadi_api.opti_names import constraint_names, variable_names
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.solver import NlpSolver
from casadi_hybrid.course.record import IterationRecord
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result


@dataclass(frozen=True)
class Outcome:
    """What stays of one solve."""

    result: Result
    stats: dict[str, Any]


@dataclass(frozen=True)
class Scales:
    """CasADi's linear scales of x, g and f, and the offset of x.

    CasADi's own calls hold points of the scaled problem. The solver gets the user's units, in
    which its answer is judged, and scales by itself; so these only translate.
    """

    x: ca.DM
    offset: ca.DM
    g: ca.DM
    f: float

    @classmethod
    def of(cls, node: Any) -> Scales:
        """Those of a baked node."""
        scales = node.x_linear_scale, node.x_linear_scale_offset, node.g_linear_scale
        x, offset, g = map(ca.DM, scales)
        return cls(x, offset, g, float(node.f_linear_scale))

    def arguments(self, scaled: Mapping[str, ca.DM]) -> dict[str, ca.DM]:
        """The arguments of a solve in the user's units; Opti never scales multipliers there."""
        given = dict(scaled)
        given["x0"] = given["x0"] * self.x + self.offset
        for bound in ("lbg", "ubg"):
            given[bound] = given[bound] * self.g
        return given

    def point(self, x: Any, lam_g: Any) -> dict[str, ca.DM]:
        """An iterate as CasADi's scaled solver would have it."""
        return {"x": (ca.DM(x) - self.offset) / self.x, "lam_g": ca.DM(lam_g) * self.g / self.f}

    def answer(self, found: Mapping[str, ca.DM]) -> dict[str, ca.DM]:
        """The outputs of a solve as CasADi's scaled solver would return them."""
        return {
            **self.point(found["x"], found["lam_g"]),
            "f": found["f"] / self.f,
            "g": found["g"] / self.g,
            "lam_x": found["lam_x"] * self.x / self.f,
            "lam_p": found["lam_p"] / self.f,
        }


@dataclass(frozen=True, eq=False)
class Program:
    """The problem of one bake, with its solver.

    Attributes:
        problem: variables are the entries of ``opti.x``, constraints those of ``opti.g``.
        options: those of ``opti.solver``.
        solver: solves it; it has no listener.
    """

    problem: Problem
    options: NlpOptions
    solver: NlpSolver
    _baked: tuple[Any, ...] = field(repr=False)

    @classmethod
    def of(cls, node: Any, options: NlpOptions) -> Program:
        """Make it, with every check of the problem.

        Args:
            node: a baked ``ca.OptiAdvanced``.
            options: those of ``opti.solver``.

        Raises:
            InputError: for a problem without variables, a discrete variable, or a semidefinite
                constraint.
        """
        if not node.nx:
            raise InputError(
                "no variable of the Opti problem occurs in its objective or constraints"
            )
        walked = variable_names(node), constraint_names(node)
        x, p = ca.MX.sym("x", node.nx), ca.MX.sym("p", node.np)
        # Through one Function: opti.x is a vertcat of symbols of any shape.
        graph = ca.Function("opti", [node.x, node.p], [node.f, node.g])
        f, g = graph.call([x, p], True, False)
        problem = Problem.from_nlp(
            {"x": x, "p": p, "f": f, "g": g} if node.np else {"x": x, "f": f, "g": g},
            name="opti",
            variable_names=options.variable_names or walked[0],
            constraint_names=options.constraint_names or walked[1],
        )
        return cls(problem, options, _solver(problem, options), _parts(node))

    def is_of(self, node: Any) -> bool:
        """Whether the node is baked as it was: Opti makes new expressions where things change."""
        return all(map(_same, self._baked, _parts(node)))

    def with_options(self, options: NlpOptions) -> Program:
        """The same problem under other options."""
        return replace(self, options=options, solver=_solver(self.problem, options))

    def solve(
        self, arguments: Mapping[str, ca.DM], listener: Callable[[IterationRecord], Any] | None
    ) -> tuple[dict[str, ca.DM], Outcome]:
        """Solve for x0, p, lbg, ubg and lam_g0.

        Args:
            arguments: in the user's units.
            listener: called with the record of every iteration, in place of the option
                ``iteration_callback``.

        Raises:
            InputError: for crossed bounds, or a parameter or start that is not a number.
        """
        solver = self.solver
        if listener is not None:
            watched = replace(self.options, iteration_callback=listener, iteration_callback_step=1)
            solver = _solver(self.problem, watched)
        found = solver(**arguments)
        return found, Outcome(solver.result, solver.stats())


def _solver(problem: Problem, options: NlpOptions) -> NlpSolver:
    """With the names and the failures left to the Opti."""
    chosen = {entry.name: getattr(options, entry.name) for entry in fields(options)}
    left = {"error_on_fail": False, "variable_names": None, "constraint_names": None}
    return nlpsol("opti", "hybrid", problem, chosen | left)


def joined(plugin_options: Any = None, solver_options: Any = None) -> dict[str, Any]:
    """One dictionary for :func:`~casadi_hybrid.nlpsol` from the two of ``opti.solver``.

    In the second what is no option of this package is read as one of IPOPT, for which a script
    was written that changes nothing but the solver's name.

    Raises:
        InputError: where one is no dictionary.
    """
    for options in (plugin_options, solver_options):
        if not isinstance(options, Mapping | None):
            raise InputError(
                f"options of opti.solver must be dictionaries, got {type(options).__name__}"
            )
    known = {entry.name for entry in fields(NlpOptions)}
    solver = dict(solver_options or {})
    own = {name: value for name, value in solver.items() if name in known}
    others = {name: value for name, value in solver.items() if name not in known}
    return {**(plugin_options or {}), **({"ipopt": others} if others else {}), **own}


def _parts(node: Any) -> tuple[Any, ...]:
    return node.f, node.g, node.x, node.p, node.lam_g


def _same(one: Any, other: Any) -> bool:
    return bool(one.__hash__() == other.__hash__())
