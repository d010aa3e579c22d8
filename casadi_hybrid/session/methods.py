"""Named methods: each name is one composition of a rule and an iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from casadi_hybrid import iterations as its
from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.basics.inputs import has_method
from casadi_hybrid.iterations import Hybrid, Iteration, rules
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.result.call import Method
from casadi_hybrid.session.equations import LookAhead, OnEquations
from casadi_hybrid.session.solve import Automatic

OF_SOLVERS = {
    "tol", "tol_feasibility", "tol_stationarity", "tol_complementarity", "scaled_tol",
    "max_iter", "max_time", "divergence", "stopping",
}  # fmt: skip
"""What :class:`casadi_hybrid.Solver` takes beside the options of a method."""
_AS_PRINTED = {"hessian_at": "printed", "dual_start": "multipliers", "s1": "printed"}
SETTINGS = {"mu_init", "bound_push", "constr_mult_init_max", "max_soc"}
"""What :class:`~casadi_hybrid.point.limits.Limits` has for the default method alone."""
Made = tuple[set[str], Callable[..., Iteration | Automatic]]
"""The options that there are, and what makes a method of them."""


def _names(cls: type, *without: str) -> set[str]:
    return {field.name for field in fields(cls)} - set(without)


_STEP, _ITERATION = _names(rules.StepRule), _names(Hybrid, "rule")
_RULE = _names(rules.DesignRule, "split", "steps")


def _taken(names: set[str], options: dict[str, Any]) -> dict[str, Any]:
    return {key: options.pop(key) for key in names & options.keys()}


def _designed(
    name: str,
    split: Callable[..., rules.Split],
    wrap: Callable[[rules.DesignRule], its.Rule] = lambda rule: rule,
    base: rules.DesignRule | None = None,
) -> Made:
    extra = {"theta"} if split is rules.GivenSplit else set()

    def make(**options: Any) -> Iteration:
        chosen = _taken(extra, options)
        if extra - set(chosen):
            raise InputError(f"method {name!r} needs theta, a number in [0, 1]")
        defaults = base or rules.DesignRule()
        steps = replace(defaults.steps, **_taken(_STEP, options))
        if "delta" in options:
            if "strength" in options:
                raise InputError("delta and strength both choose α; give one of them")
            options["strength"] = rules.TargetCurvature(options.pop("delta"))
        rule = replace(defaults, split=split(**chosen), steps=steps, **_taken(_RULE, options))
        return Hybrid(wrap(rule), **{"label": name, **options})

    return _STEP | _RULE | _ITERATION | {"delta"} | extra, make


def _automatic(label: str = "auto", **settings: Any) -> Automatic:
    return Automatic(label, Limits(**settings))


def _as_printed() -> Made:
    """Algorithm 1 with nothing of it to choose but its constants and R, and the margin."""
    known, make = _designed("algorithm-1", rules.ClosedFormSplit)
    closed = {*_AS_PRINTED, "memory", "cancellation", "strength", "kernel_floor"}
    return known - closed, lambda **options: make(**options, **_AS_PRINTED)


def _ruled(name: str, rule: type, **fixed: Any) -> Made:
    """The iteration with a rule that has options of its own."""
    own = _names(rule, *fixed)

    def make(**options: Any) -> Iteration:
        return Hybrid(rule(**fixed, **_taken(own, options)), **{"label": name, **options})

    return own | _ITERATION, make


def _plain(cls: type) -> Made:
    return _names(cls), cls


METHODS: dict[str, Made] = {
    "auto": ({"label", *SETTINGS}, _automatic),
    "look-ahead": (_names(LookAhead, "limits"), LookAhead),
    "algorithm-1": _as_printed(),
    "closed-form": _designed("closed-form", rules.ClosedFormSplit),
    "pure-augmented": _designed("pure-augmented", rules.PureAugmented),
    "pure-optimistic": _designed("pure-optimistic", rules.PureOptimistic),
    "grid": _designed("grid", rules.GridSplit),
    "given-theta": _designed("given-theta", rules.GivenSplit),
    "whitened": _designed(
        "whitened", rules.ClosedFormSplit, rules.WhitenedRule, rules.WhitenedRule().inner
    ),
    "matrix-memory": _ruled("matrix-memory", rules.MatrixRule, drive="memory"),
    "matrix-lookahead": _ruled("matrix-lookahead", rules.MatrixRule, drive="lookahead"),
    "constant": _ruled("constant", rules.ConstantRule),
    "gda": _plain(its.GradientDescentAscent),
    "ogda": _plain(its.OptimisticGradient),
    "extragradient": _plain(its.Extragradient),
    "pdhg": _plain(its.PrimalDualHybridGradient),
    "linearized-al": _plain(its.LinearizedAugmentedLagrangian),
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
