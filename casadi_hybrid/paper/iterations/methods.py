"""The named methods for equations: each name is one composition of a rule and an iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from casadi_hybrid.paper import iterations as its
from casadi_hybrid.paper import rules
from casadi_hybrid.paper.iterations import Hybrid, Iteration
from casadi_hybrid.paper.iterations.equations import OnEquations
from casadi_hybrid.solver.methods import OF_SOLVERS, Method, refuse_unknown
from casadi_hybrid.utils.errors import InputError

# The known options, and the function that makes an iteration of them.
Made = tuple[set[str], Callable[..., Iteration]]
# Fields of a method, and of its parts, whose own fields are options of the method.
_PARTS = {"rule", "inner", "split", "steps"}


def _names(part: Any) -> set[str]:
    names = {field.name for field in fields(part)}
    return (names - _PARTS).union(*(_names(getattr(part, name)) for name in names & _PARTS))


def _changed(part: Any, options: dict[str, Any]) -> Any:
    """Return a copy with these options, each in the part that has a field of its name."""
    names = {field.name for field in fields(part)}
    parts = {name: _changed(getattr(part, name), options) for name in names & _PARTS}
    return replace(part, **parts, **{name: options[name] for name in names & options.keys()})


def _made_from(base: Iteration, *closed: str) -> Made:
    """Return a method by its defaults: every field is an option, except the closed ones."""
    names = _names(base)
    # δ is a field of the strength; as an option it chooses the paper's strength.
    designed = {"delta"} if "strength" in names else set()
    known = (names | designed) - {*OF_SOLVERS, *closed}

    def make(**options: Any) -> Any:
        if "theta" in known and "theta" not in options:
            raise InputError(f"method {base.label!r} needs theta, a number in [0, 1]")
        if designed and "delta" in options:
            if "strength" in options:
                raise InputError("delta and strength both choose α; give one of them")
            options["strength"] = rules.TargetCurvature(options.pop("delta"))
        return _changed(base, options)

    return known, make


def _designed(label: str, split: rules.Split, *closed: str) -> Made:
    return _made_from(Hybrid(rules.DesignRule(split=split), label), *closed)


ITERATIONS: dict[str, Made] = {
    # Algorithm 1: only its constants, R and the margin are options.
    "algorithm-1": _made_from(
        Hybrid(
            rules.DesignRule(steps=rules.StepRule(s1="printed")),
            "algorithm-1",
            hessian_at="printed",
            dual_start="multipliers",
        ),
        *("hessian_at", "dual_start", "s1", "memory", "cancellation", "strength", "kernel_floor"),
    ),
    "closed-form": _designed("closed-form", rules.ClosedFormSplit()),
    "pure-augmented": _designed("pure-augmented", rules.PureAugmented()),
    "pure-optimistic": _designed("pure-optimistic", rules.PureOptimistic()),
    "grid": _designed("grid", rules.GridSplit(), "strengths", "thetas"),
    "given-theta": _designed("given-theta", rules.GivenSplit(0.5)),
    "whitened": _made_from(Hybrid(rules.WhitenedRule(), "whitened")),
    "matrix-memory": _made_from(Hybrid(rules.MatrixRule(drive="memory"), "matrix-memory"), "drive"),
    "matrix-lookahead": _made_from(Hybrid(rules.MatrixRule(), "matrix-lookahead"), "drive"),
    "constant": _made_from(Hybrid(rules.ConstantRule(), "constant")),
    "gda": _made_from(its.GradientDescentAscent()),
    "ogda": _made_from(its.OptimisticGradient()),
    "extragradient": _made_from(its.Extragradient()),
    "pdhg": _made_from(its.PrimalDualHybridGradient()),
    "linearized-al": _made_from(its.LinearizedAugmentedLagrangian()),
}


def named(name: str, options: dict[str, Any]) -> Method:
    """Return the method of this name with its options.

    Raises:
        InputError: for an unknown option, with the closest known one.
    """
    known, make = ITERATIONS[name]
    refuse_unknown(name, options, known)
    return OnEquations(make(**options), name)


def own(iteration: Any, options: dict[str, Any]) -> Method:
    """Return the method of an iteration of the user's.

    Raises:
        InputError: for another object, or for options beside it.
    """
    if not isinstance(iteration, Iteration):
        raise InputError(
            "method must be a name of METHODS, or an object of a subclass of "
            f"casadi_hybrid.paper.iterations.Iteration, got {type(iteration).__name__}"
        )
    if options:
        raise InputError(
            f"option {sorted(options)[0]!r} goes with a method's name; this method is an "
            "object that carries its own"
        )
    return OnEquations(iteration, iteration.label)
