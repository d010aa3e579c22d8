"""A baked Opti problem, made into a problem of this package and solved as often as is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.casadi_api.interface import nlpsol
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.optistack.names import constraint_names, variable_names
from casadi_hybrid.casadi_api.solver import NlpSolver
from casadi_hybrid.casadi_api.stats import Run
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result.record import IterationRecord


class Scales(NamedTuple):
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
        """f and g of the scaled problem, of its own x. CasADi leaves out what changes nothing."""
        inside = x * ca.DM(self.x) + ca.DM(self.offset)
        f, g = graph.call([inside, p], True, False)
        return f / self.f, g / ca.DM(self.g)

    def multipliers(self, lam_g: Any) -> Any:
        """Multipliers of the scaled problem. Opti scales all numbers of a start but these."""
        return lam_g if self.unit else lam_g * ca.DM(self.g) / self.f

    def start(self, x0: ca.MX, lbg: ca.MX, ubg: ca.MX, lam_g0: ca.MX) -> dict[str, ca.MX]:
        """Arguments of the scaled problem."""
        x0, g = (x0 - ca.DM(self.offset)) / ca.DM(self.x), ca.DM(self.g)
        return {"x0": x0, "lbg": lbg / g, "ubg": ubg / g, "lam_g0": self.multipliers(lam_g0)}

    def point(self, x: ca.MX, lam_g: ca.MX) -> tuple[ca.MX, ca.MX]:
        """x and multipliers as the problem is written, from those of the scaled one."""
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
        """Make it of a baked ``ca.OptiAdvanced``, with every check of the problem."""
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
        """The program of a baked node: this one where nothing has changed."""
        # Opti makes new expressions where anything changes, other than numbers.
        same = all(map(ca.is_equal, self._baked, _parts(node)))
        same = same and Scales.of(node) == self.scales
        names = ((one.variable_names, one.constraint_names) for one in (options, self.options))
        if not same or next(names) != next(names):
            return Program.of(node, options)
        if options is self.options:
            return self
        return replace(self, options=options, solver=_solver(self.problem, options))

    def solve(
        self, node: Any, arguments: Mapping[str, ca.DM], listener: Callable[[int], Any] | None
    ) -> tuple[dict[str, ca.DM], Run]:
        """Solve for x0, p, lbg, ubg and lam_g0, as ``arg()`` has them.

        The listener takes the place of the option ``iteration_callback``: it is called at every
        iteration, when the node holds the iterate.
        """
        solver = self.solver
        if listener is not None:

            def show(record: IterationRecord) -> None:
                node.res({"x": ca.DM(record.x), "lam_g": ca.DM(record.lam_g)})
                listener(int(record.iter))

            watched = replace(self.options, iteration_callback=show, iteration_callback_step=1)
            solver = _solver(self.problem, watched)
        lam_g0 = self.scales.multipliers(arguments["lam_g0"])
        found = solver(**{**arguments, "lam_g0": lam_g0})
        return found, solver._runner.last()


def _solver(problem: Problem, options: NlpOptions, error_on_fail: bool = False) -> NlpSolver:
    """With the names, and failures where nothing else is said, left to the Opti."""
    left = replace(options, error_on_fail=error_on_fail, variable_names=None, constraint_names=None)
    return nlpsol("opti", "hybrid", problem, left)


def filled(assignments: Any) -> Any:
    """A list without the entries of empty symbols, which CasADi makes and does not take back."""
    if not isinstance(assignments, list | tuple):
        return assignments
    return [v for v in assignments if not (isinstance(v, ca.MX) and v.is_empty())]


def _parts(node: Any) -> tuple[Any, ...]:
    return node.f, node.g, node.x, node.p, node.lam_g


def make_function(name: str, node: Any, program: Program, arguments: Sequence[Any]) -> ca.Function:
    """What ``opti.to_function(name, *arguments)`` returns, of a baked ``ca.OptiAdvanced``.

    The values of the node stand for what is no input.
    """
    inputs, results, names, options = _read(arguments)
    given = set()
    for i, argument in enumerate(inputs):
        if not isinstance(argument, ca.MX) or not argument.is_valid_input():
            raise InputError(f"Argument {i} is not purely symbolic.")
        for symbol in argument.primitives():
            node.get_meta(symbol)  # raises where it is none of this Opti
            given.add(symbol.__hash__())
    stacked, starts = [], []
    for kind in (ca.OPTI_VAR, ca.OPTI_PAR, ca.OPTI_DUAL_G):
        symbols = node.active_symvar(kind)
        pairs = zip(symbols, node.active_values(kind), strict=True)
        stacked.append(ca.veccat(*symbols))
        starts.append(ca.MX(ca.veccat(*(s if s.__hash__() in given else v for s, v in pairs))))
    x0, p, lam_g0 = starts
    bounds = ca.Function("bounds", [node.p], [node.lbg, node.ubg])
    lbg, ubg = bounds.call([p], True, False)
    # In a graph it fails as its options say.
    solver = _solver(program.problem, program.options, program.options.error_on_fail)
    best = solver(p=p, **program.scales.start(x0, lbg, ubg, lam_g0))
    x, lam_g = program.scales.point(best["x"], best["lam_g"])
    helper = ca.Function("helper", stacked, results, options.pop("helper_options", {}))
    values = helper.call([x, p, lam_g])
    return ca.Function(name, inputs, values, *names, options)


def _read(arguments: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], dict[str, Any]]:
    """Inputs, results, the lists of their names if there are any, and options."""
    rest = list(arguments)
    options = dict(rest.pop()) if len(rest) > 2 and isinstance(rest[-1], Mapping) else {}
    if len(rest) == 3 and isinstance(rest[0], Mapping):
        parts, *names = rest
        for label in (*names[0], *names[1]):
            if label not in parts:
                raise InputError(f"to_function has no expression for the name {label!r}")
        rest = [*([parts[label] for label in labels] for labels in names), *names]
    if len(rest) not in (2, 4):
        raise InputError(
            "to_function takes a name, inputs, results and the names of both, or a name, a "
            "dictionary and the names of inputs and results; options may follow"
        )
    inputs, results, *names = map(list, rest)
    return inputs, results, names, options
