"""A baked Opti problem as a problem of this package, with its solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca

from casadi_hybrid.problem.graph.expressions import labels
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.nlpsol.interface import nlpsol
from casadi_hybrid.solver.nlpsol.solver import NlpSolver
from casadi_hybrid.solver.options.options import NlpOptions
from casadi_hybrid.solver.record.record import IterationRecord
from casadi_hybrid.solver.run import Run
from casadi_hybrid.utils.errors import InputError


class Scales(NamedTuple):
    """CasADi's linear scales: the solver sees (x − offset)/x_scale, g/g_scale and f/f_scale."""

    x: tuple[float, ...]
    offset: tuple[float, ...]
    g: tuple[float, ...]
    f: tuple[float, ...]

    @classmethod
    def of(cls, node: Any) -> Scales:
        """The scales of a baked node."""
        of_x = node.x_linear_scale, node.x_linear_scale_offset
        scales = *of_x, node.g_linear_scale, node.f_linear_scale
        return cls(*(tuple(ca.DM(scale).nonzeros()) for scale in scales))

    @property
    def unit(self) -> bool:
        """True where the scales change nothing."""
        return not any(self.offset) and {*self.x, *self.g, *self.f} <= {1.0}

    def multipliers(self, lam_g: Any) -> Any:
        """Multipliers of the scaled problem. Opti scales all numbers of a start but these."""
        # f/s_f + λ̂ᵀ(g/s_g) is L/s_f for λ̂ = λ s_g/s_f.
        return lam_g if self.unit else lam_g * ca.DM(self.g) / ca.DM(self.f)


@dataclass(frozen=True, eq=False)
class Program:
    """The problem of one bake, with its solver."""

    # Variables are the entries of opti.x, rows those of opti.g, both divided by linear scales.
    problem: Problem
    options: NlpOptions
    solver: NlpSolver  # without a listener
    scales: Scales
    _baked: tuple[Any, ...] = field(repr=False)

    @classmethod
    def of(cls, node: Any, options: NlpOptions, known: Program | None) -> Program:
        """Return the program of a baked ``ca.OptiAdvanced``: the known one if still valid."""
        baked, scales = (node.f, node.g, node.x, node.p, node.lam_g), Scales.of(node)
        own_names = options.variable_names, options.constraint_names
        # Opti makes new expressions for any change but one of values.
        if known and all(map(ca.is_equal, baked, known._baked)) and scales == known.scales:
            if options is known.options:
                return known
            if own_names == (known.options.variable_names, known.options.constraint_names):
                return replace(known, options=options, solver=_solver(known.problem, options))
        names = variable_names(node), constraint_names(node)
        x, p = ca.MX.sym("x", node.nx), ca.MX.sym("p", node.np)
        # Through a Function, since opti.x is a vertcat of symbols of any shape.
        graph = ca.Function("opti", [node.x, node.p], [node.f, node.g])
        unscaled = x * ca.DM(scales.x) + ca.DM(scales.offset)  # CasADi omits factors 1 and terms 0
        f, g = graph.call([unscaled, p], True, False)
        problem = Problem.from_nlp(
            {"x": x, "p": p, "f": f / ca.DM(scales.f), "g": g / ca.DM(scales.g)},
            name="opti",
            variable_names=own_names[0] or names[0],
            constraint_names=own_names[1] or names[1],
        )
        return cls(problem, options, _solver(problem, options), scales, baked)

    def solve(
        self, node: Any, arguments: Mapping[str, ca.DM], listener: Callable[[int], Any] | None
    ) -> tuple[dict[str, ca.DM], Run]:
        """Solve for x0, p, lbg, ubg and lam_g0, as ``arg()`` has them."""
        solver = self.solver
        # A listener replaces the option iteration_callback; the node has the iterate before the
        # call.
        if listener is not None:

            def show(record: IterationRecord) -> None:
                node.res({"x": ca.DM(record.x), "lam_g": ca.DM(record.lam_g)})
                listener(int(record.iter))

            watched = replace(self.options, iteration_callback=show, iteration_callback_step=1)
            solver = _solver(self.problem, watched)
        lam_g0 = self.scales.multipliers(arguments["lam_g0"])
        outputs = solver(**{**arguments, "lam_g0": lam_g0})
        return outputs, solver._runner.last()


def _solver(problem: Problem, options: NlpOptions, error_on_fail: bool = False) -> NlpSolver:
    """Return a solver that leaves names, and by default failures, to the Opti."""
    bare = replace(options, error_on_fail=error_on_fail, variable_names=None, constraint_names=None)
    return nlpsol("opti", "hybrid", problem, bare)


def filled(assignments: Any) -> Any:
    """Drop assignments of empty symbols, which CasADi returns but does not accept."""
    if not isinstance(assignments, list | tuple):
        return assignments
    return [v for v in assignments if not (isinstance(v, ca.MX) and v.is_empty())]


def make_function(name: str, node: Any, program: Program, arguments: Sequence[Any]) -> ca.Function:
    """Make the Function of ``opti.to_function(name, *arguments)`` from a baked node."""
    inputs, results, names, options = _read(arguments)
    input_symbols = set()
    for i, argument in enumerate(inputs):
        if not isinstance(argument, ca.MX) or not argument.is_valid_input():
            raise InputError(f"Argument {i} is not purely symbolic.")
        for symbol in argument.primitives():
            node.get_meta(symbol)  # raises for a symbol of another Opti
            # A set of hashes: == of two symbols is an expression.
            input_symbols.add(symbol.__hash__())
    stacked, starts = [], []
    for kind in (ca.OPTI_VAR, ca.OPTI_PAR, ca.OPTI_DUAL_G):
        symbols = node.active_symvar(kind)
        pairs = zip(symbols, node.active_values(kind), strict=True)
        # Symbols that are no inputs have their values in the node.
        parts = [s if s.__hash__() in input_symbols else v for s, v in pairs]
        stacked.append(ca.veccat(*symbols))
        starts.append(ca.MX(ca.veccat(*parts)))
    x0, p, lam_g0 = starts
    bounds = ca.Function("bounds", [node.p], [node.lbg, node.ubg])
    lbg, ubg = bounds.call([p], True, False)
    # In a graph the option error_on_fail holds: there is no Opti that could report a failure.
    solver = _solver(program.problem, program.options, program.options.error_on_fail)
    scales = program.scales
    unit, offset, rows = ca.DM(scales.x), ca.DM(scales.offset), ca.DM(scales.g)
    # In the units of the solver, as Opti itself does for solve().
    start = {"x0": (x0 - offset) / unit, "lam_g0": scales.multipliers(lam_g0)}
    best = solver(p=p, lbg=lbg / rows, ubg=ubg / rows, **start)
    # The inverse of Scales.multipliers().
    x, lam_g = best["x"] * unit + offset, best["lam_g"] / rows * ca.DM(scales.f)
    helper = ca.Function("helper", stacked, results, options.pop("helper_options", {}))
    values = helper.call([x, p, lam_g])
    return ca.Function(name, inputs, values, *names, options)


def _read(arguments: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], dict[str, Any]]:
    """Return inputs, results, the lists of their names if there are any, and options."""
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


def refuse_sparse(node: Any) -> None:
    """Refuse variables with structural zeros before the bake, which may crash on them."""
    for symbol in node.symvar():
        if not symbol.is_dense():
            meta = node.get_meta(symbol)
            if meta.type == ca.OPTI_VAR:
                raise InputError(
                    f"variable {symbol.name()}{_source_line(meta)} is sparse; Opti solves for "
                    "dense variables: make a column x of its nonzeros and write ca.MX(sparsity, x)"
                )


def variable_names(node: Any) -> tuple[str, ...]:
    """Return a name for each entry of ``opti.x`` of a baked node: symbol, entry, source line."""
    names: list[str] = []
    # active_symvar() has the order of opti.x; a look-up by entry would be quadratic.
    for symbol in node.active_symvar(ca.OPTI_VAR):
        meta = node.get_meta(symbol)
        line, name = _source_line(meta), symbol.name()
        if meta.domain == ca.OPTI_DOMAIN_INTEGER:
            raise InputError(
                f"variable {name}{line} is discrete; only real variables are supported here, "
                "use a mixed-integer solver"
            )
        rows, columns = symbol.shape
        if columns == 1:  # also the lower triangle that Opti keeps of a symmetric variable
            entries = labels(name, rows)
        else:
            entries = [f"{name}[{i}, {j}]" for j in range(columns) for i in range(rows)]
        names += [entry + line for entry in entries]
    return tuple(names)


def constraint_names(node: Any) -> tuple[str, ...]:
    """Return a name for each entry of ``opti.g`` of a baked node, with the source line."""
    names: list[str] = []
    for constraint in node.constraints():
        meta = node.get_meta_con(constraint)
        line = _source_line(meta)
        if meta.type == ca.OPTI_PSD:
            raise InputError(
                f"the constraint {str(constraint)[:80]}{line} is semidefinite (Opti reads an "
                "inequality between square matrices so); for entrywise bounds write "
                "ca.vec(X) >= 0"
            )
        names += [f"g[{i}]{line}" for i in range(meta.start, meta.stop)]
    return tuple(names)


def _source_line(meta: Any) -> str:
    """File and line that Opti recorded; empty without a record."""
    trace = meta.extra.get("stacktrace") or []
    return f" ({Path(trace[0]['file']).name}:{trace[0]['line']})" if trace else ""
