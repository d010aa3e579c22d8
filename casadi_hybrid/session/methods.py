"""Named methods: each name is one composition of a rule and an iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.basics.inputs import has_method
from casadi_hybrid.iterations import (
    Extragradient,
    GradientDescentAscent,
    Hybrid,
    Iteration,
    LinearizedAugmentedLagrangian,
    OptimisticGradient,
    PrimalDualHybridGradient,
    Rule,
)
from casadi_hybrid.iterations.rules import (
    ClosedFormSplit,
    ConstantRule,
    DesignRule,
    GivenSplit,
    GridSplit,
    MatrixRule,
    PureAugmented,
    PureOptimistic,
    Split,
    TargetCurvature,
    WhitenedRule,
)
from casadi_hybrid.result.call import Method
from casadi_hybrid.session.equations import LookAhead, OnEquations
from casadi_hybrid.session.solve import Automatic

_STEP = {"kappa_x", "kappa_p", "kappa_omega", "margin", "s1"}
_RULE = {"cancellation", "metric", "strength", "M_max", "kernel_floor"}
_MATRIX = {"cancellation", "delta", "optimistic_share"}
_ITERATION = {"hessian_at", "dual_start", "memory", "disturb", "label"}
_CONSTANT = {"C_aug", "C_opt", "eta_x", "eta_d"}
_AS_PRINTED = {"hessian_at": "printed", "dual_start": "multipliers", "s1": "printed"}
OF_SOLVERS = {
    "tol", "tol_feasibility", "tol_stationarity", "tol_complementarity", "scaled_tol",
    "max_iter", "max_time", "divergence", "stopping",
}  # fmt: skip
"""What :class:`casadi_hybrid.Solver` takes beside the options of a method."""


def _designed(
    name: str,
    split: Callable[..., Split],
    wrap: Callable[[DesignRule], Rule] = lambda rule: rule,
    base: DesignRule | None = None,
) -> tuple[set[str], Callable[..., Iteration]]:
    extra = {"theta"} if split is GivenSplit else set()

    def make(**options: Any) -> Iteration:
        chosen = {key: options.pop(key) for key in extra if key in options}
        if extra - set(chosen):
            raise InputError(f"method {name!r} needs theta, a number in [0, 1]")
        defaults = base or DesignRule()
        steps = replace(
            defaults.steps, **{key: options.pop(key) for key in _STEP if key in options}
        )
        if "delta" in options:
            if "strength" in options:
                raise InputError("delta and strength both choose α; give one of them")
            options["strength"] = TargetCurvature(options.pop("delta"))
        parts = {key: options.pop(key) for key in _RULE if key in options}
        rule = replace(defaults, split=split(**chosen), steps=steps, **parts)
        return Hybrid(wrap(rule), **{"label": name, **options})

    return _STEP | _RULE | _ITERATION | {"delta"} | extra, make


def _as_printed() -> tuple[set[str], Callable[..., Iteration]]:
    """Algorithm 1 with nothing of it to choose but its constants and R, and the margin."""
    known, make = _designed("algorithm-1", ClosedFormSplit)
    closed = {*_AS_PRINTED, "memory", "cancellation", "strength", "kernel_floor"}
    return known - closed, lambda **options: make(**options, **_AS_PRINTED)


def _matrix(name: str, drive: str) -> tuple[set[str], Callable[..., Iteration]]:
    def make(**options: Any) -> Iteration:
        parts = {key: options.pop(key) for key in _MATRIX if key in options}
        return Hybrid(MatrixRule(drive=drive, **parts), **{"label": name, **options})

    return _MATRIX | _ITERATION, make


def _constant(**options: Any) -> Iteration:
    rule = ConstantRule(**{key: options.pop(key) for key in _CONSTANT if key in options})
    return Hybrid(rule, **{"label": "constant", **options})


def _baseline(cls: type) -> tuple[set[str], Callable[..., Any]]:
    return {f.name for f in fields(cls)}, cls


METHODS: dict[str, tuple[set[str], Callable[..., Iteration | Automatic]]] = {
    "auto": _baseline(Automatic),
    "look-ahead": _baseline(LookAhead),
    "algorithm-1": _as_printed(),
    "closed-form": _designed("closed-form", ClosedFormSplit),
    "pure-augmented": _designed("pure-augmented", PureAugmented),
    "pure-optimistic": _designed("pure-optimistic", PureOptimistic),
    "grid": _designed("grid", GridSplit),
    "given-theta": _designed("given-theta", GivenSplit),
    "whitened": _designed("whitened", ClosedFormSplit, WhitenedRule, WhitenedRule().inner),
    "matrix-memory": _matrix("matrix-memory", "memory"),
    "matrix-lookahead": _matrix("matrix-lookahead", "lookahead"),
    "constant": (_CONSTANT | _ITERATION, _constant),
    "gda": _baseline(GradientDescentAscent),
    "ogda": _baseline(OptimisticGradient),
    "extragradient": _baseline(Extragradient),
    "pdhg": _baseline(PrimalDualHybridGradient),
    "linearized-al": _baseline(LinearizedAugmentedLagrangian),
}


def make_method(method: str | Iteration, options: dict[str, Any]) -> Method:
    """Return the method a name stands for, with its options.

    Raises:
        InputError: for an unknown name or option, with the closest known one.
    """
    if not isinstance(method, str):
        if options:
            raise InputError(
                f"option {sorted(options)[0]!r} goes with a method's name; this method is an "
                "object that carries its own"
            )
        has_method(method, "method", "step")
        return OnEquations(method)
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}{suggest(method, METHODS)}")
    known, make = METHODS[method]
    for option in options:
        if option not in known:
            near = suggest(option, known | OF_SOLVERS)
            raise InputError(f"unknown option {option!r} for {method!r}{near}")
    made = make(**options)
    return made if isinstance(made, Automatic) else OnEquations(made, method)
