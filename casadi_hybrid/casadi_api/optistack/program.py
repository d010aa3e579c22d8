"""A baked Opti problem, made into a problem of this package and solved as often as is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.casadi_api.interface import nlpsol
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.optistack.names import constraint_names, variable_names
from casadi_hybrid.casadi_api.solver import NlpSolver
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result.record import IterationRecord
from casadi_hybrid.result.result import Result


@dataclass(frozen=True)
class Outcome:
    """What stays of one solve; ``scaled`` is whether linear scales were set."""

    result: Result
    stats: dict[str, Any]
    scaled: bool


@dataclass(frozen=True)
class Scales:
    """CasADi's linear scales: the solver sees (x − offset)/x_scale, g/g_scale and f/f_scale."""

    x: tuple[float, ...]
    offset: tuple[float, ...]
    g: tuple[float, ...]
    f: float

    @classmethod
    def of(cls, node: Any) -> Scales:
        """Those of a baked node."""
        x, offset, g = (
            tuple(ca.DM(scale).nonzeros())
            for scale in (node.x_linear_scale, node.x_linear_scale_offset, node.g_linear_scale)
        )
        return cls(x, offset, g, float(node.f_linear_scale))

    @property
    def unit(self) -> bool:
        """Whether they change nothing."""
        return not any(self.offset) and {*self.x, *self.g, self.f} <= {1.0}

    def scaled(self, graph: ca.Function, x: ca.MX, p: ca.MX) -> tuple[ca.MX, ca.MX]:
        """f and g of the scaled problem, of its own x."""
        if self.unit:
            return tuple(graph.call([x, p], True, False))
        inside = x * ca.DM(self.x) + ca.DM(self.offset)
        f, g = graph.call([inside, p], True, False)
        return f / self.f, g / ca.DM(self.g)

    def multipliers(self, lam_g: Any) -> Any:
        """Multipliers of the scaled problem. Opti scales all numbers of a start but these."""
        return lam_g if self.unit else lam_g * ca.DM(self.g) / self.f

    def start(self, x0: ca.MX, lbg: ca.MX, ubg: ca.MX, lam_g0: ca.MX) -> dict[str, ca.MX]:
        """Arguments of the scaled problem."""
        given = {"x0": x0, "lbg": lbg, "ubg": ubg, "lam_g0": self.multipliers(lam_g0)}
        if not self.unit:
            given["x0"] = (x0 - ca.DM(self.offset)) / ca.DM(self.x)
            given |= {"lbg": lbg / ca.DM(self.g), "ubg": ubg / ca.DM(self.g)}
        return given

    def point(self, x: ca.MX, lam_g: ca.MX) -> tuple[ca.MX, ca.MX]:
        """x and multipliers as the problem is written, from those of the scaled one."""
        if self.unit:
            return x, lam_g
        return x * ca.DM(self.x) + ca.DM(self.offset), lam_g / ca.DM(self.g) * self.f


@dataclass(frozen=True, eq=False)
class Program:
    """The problem of one bake, with its solver.

    Attributes:
        problem: what the solver sees; variables are the entries of ``opti.x``, constraints those
            of ``opti.g``, scaled by the linear scales where there are any.
        options: those of ``opti.solver``.
        solver: solves it; it has no listener.
    """

    problem: Problem
    options: NlpOptions
    solver: NlpSolver
    scales: Scales
    _baked: tuple[Any, ...] = field(repr=False)

    @classmethod
    def of(cls, node: Any, options: NlpOptions) -> Program:
        """Make it, with every check of the problem.

        Args:
            node: a baked ``ca.OptiAdvanced``.
            options: those of ``opti.solver``.

        Raises:
            InputError: for a discrete variable or a semidefinite constraint.
        """
        walked = variable_names(node), constraint_names(node)
        x, p = ca.MX.sym("x", node.nx), ca.MX.sym("p", node.np)
        # Through one Function: opti.x is a vertcat of symbols of any shape.
        graph = ca.Function("opti", [node.x, node.p], [node.f, node.g])
        scales = Scales.of(node)
        f, g = scales.scaled(graph, x, p)
        problem = Problem.from_nlp(
            {"x": x, "p": p, "f": f, "g": g} if node.np else {"x": x, "f": f, "g": g},
            name="opti",
            variable_names=options.variable_names or walked[0],
            constraint_names=options.constraint_names or walked[1],
        )
        return cls(problem, options, _solver(problem, options), scales, _parts(node))

    def under(self, node: Any, options: NlpOptions) -> Program:
        """The program of a baked node: this one where nothing has changed.

        Raises:
            InputError: see :meth:`of`.
        """
        # Opti makes new expressions where anything changes, other than numbers.
        same = all(map(_same, self._baked, _parts(node))) and Scales.of(node) == self.scales
        if not same or _names(options) != _names(self.options):
            return Program.of(node, options)
        if options is self.options:
            return self
        return replace(self, options=options, solver=_solver(self.problem, options))

    def function(self) -> NlpSolver:
        """The solver that may stand in a graph: it fails there as its options say."""
        kept = replace(self.options, variable_names=None, constraint_names=None)
        return nlpsol("opti", "hybrid", self.problem, _chosen(kept))

    def solve(
        self, arguments: Mapping[str, ca.DM], listener: Callable[[IterationRecord], Any] | None
    ) -> tuple[dict[str, ca.DM], Outcome]:
        """Solve for x0, p, lbg, ubg and lam_g0.

        Args:
            arguments: as ``arg()`` has them.
            listener: called with the record of every iteration, in place of the option
                ``iteration_callback``.

        Raises:
            InputError: for crossed bounds, or a parameter or start that is not a number.
        """
        solver = self.solver
        if listener is not None:
            watched = replace(self.options, iteration_callback=listener, iteration_callback_step=1)
            solver = _solver(self.problem, watched)
        lam_g0 = self.scales.multipliers(arguments["lam_g0"])
        found = solver(**{**arguments, "lam_g0": lam_g0})
        return found, Outcome(solver.result, solver.stats(), not self.scales.unit)


def _solver(problem: Problem, options: NlpOptions) -> NlpSolver:
    """With the names and the failures left to the Opti."""
    left = replace(options, error_on_fail=False, variable_names=None, constraint_names=None)
    return nlpsol("opti", "hybrid", problem, _chosen(left))


def _chosen(options: NlpOptions) -> dict[str, Any]:
    return {entry.name: getattr(options, entry.name) for entry in fields(options)}


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


def shown(node: Any, listener: Callable[[int], Any]) -> Callable[[IterationRecord], None]:
    """The listener, called for each record, when the node holds the iterate."""

    def show(record: IterationRecord) -> None:
        node.res({"x": ca.DM(record.x), "lam_g": ca.DM(record.lam_g)})
        listener(int(record.iter))

    return show


def prepare(node: Any) -> None:
    """Read the numbers of a solve."""
    # CasADi would count iterations of a callback that only its own solvers have.
    node.callback_class()
    node.solve_prepare()


def filled(assignments: Any) -> Any:
    """A list without the entries of empty symbols, which CasADi makes and does not take back."""
    if not isinstance(assignments, list | tuple):
        return assignments
    return [v for v in assignments if not (isinstance(v, ca.MX) and v.is_empty())]


def _names(options: NlpOptions) -> tuple[Any, Any]:
    return options.variable_names, options.constraint_names


def _parts(node: Any) -> tuple[Any, ...]:
    return node.f, node.g, node.x, node.p, node.lam_g


def _same(one: Any, other: Any) -> bool:
    return bool(one.__hash__() == other.__hash__())
