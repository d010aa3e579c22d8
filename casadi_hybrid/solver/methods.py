"""The methods by name, each loaded from its own package when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from casadi_hybrid.problem.point.limits import METHOD_NAMES
from casadi_hybrid.solver.call import Method
from casadi_hybrid.solver.default import Automatic
from casadi_hybrid.utils.errors import InputError, suggest

OF_SOLVERS = {
    "tol", "tol_feasibility", "tol_stationarity", "tol_complementarity", "scaled_tol",
    "max_iter", "max_time", "divergence", "stopping",
}  # fmt: skip
"""Arguments of :class:`casadi_hybrid.Solver` beside the options of a method."""
OF_DEFAULT = {"mu_init", "bound_push", "constr_mult_init_max", "max_soc", "threads"}
"""Arguments of it that are for the default method alone."""
_PRINTING = "log", "print_level", "print_time", "verbose"
_FOR_EQUATIONS = [
    "algorithm-1",
    "closed-form",
    "pure-augmented",
    "pure-optimistic",
    "grid",
    "given-theta",
    "whitened",
    "matrix-memory",
    "matrix-lookahead",
    "constant",
    "gda",
    "ogda",
    "extragradient",
    "pdhg",
    "linearized-al",
]
METHODS: dict[str, str] = {
    **dict.fromkeys(METHOD_NAMES, "casadi_hybrid.solver.methods:default"),
    **dict.fromkeys(_FOR_EQUATIONS, "casadi_hybrid.paper.iterations.methods:named"),
}
"""The function that makes the method of each name, as module:function of a name and options."""
_OWN = "casadi_hybrid.paper.iterations.methods:own"


def make_method(method: Any, options: dict[str, Any]) -> Method:
    """Return the method that a name or an iteration object stands for, with its options.

    Raises:
        InputError: for an unknown name or option, with the closest known one.
    """
    if isinstance(method, str) and method not in METHODS:
        raise InputError(f"unknown method {method!r}{suggest(method, METHODS)}")
    module, _, function = (METHODS[method] if isinstance(method, str) else _OWN).partition(":")
    made: Method = getattr(import_module(module), function)(method, options)
    return made


def default(name: str, options: dict[str, Any]) -> Method:
    """Return the default method, whose options are arguments of the solver."""
    refuse_unknown(name, options, OF_DEFAULT | {"label"})
    return Automatic(options.get("label", METHOD_NAMES[0]))


def refuse_unknown(method: str, options: Iterable[str], known: set[str]) -> None:
    """Refuse an option that a method does not have, with the closest known one."""
    for option in options:
        if option not in known:
            near = suggest(option, known | OF_SOLVERS)
            if option in _PRINTING:
                near = "; nothing is printed but by solve(log=True)"
            raise InputError(f"unknown option {option!r} for {method!r}{near}")
