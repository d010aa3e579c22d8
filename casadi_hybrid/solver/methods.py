"""The methods by name, each loaded from its own package when it is requested."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol

from casadi_hybrid.problem.arguments import Numbers
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.point.limits import METHOD_NAMES, Limits
from casadi_hybrid.problem.point.working_set import WorkingSet
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.record.history import Progress, StoppingTest
from casadi_hybrid.solver.result import Result
from casadi_hybrid.utils.errors import InputError, suggest
from casadi_hybrid.utils.inputs import Vector

_TOLERANCES = {"tol", "tol_feasibility", "tol_stationarity", "tol_complementarity", "scaled_tol"}
# Arguments of :class:`casadi_hybrid.Solver` beside the options of a method.
OF_SOLVERS = {*_TOLERANCES, "max_iter", "max_time", "divergence", "stopping"}
_OF_DEFAULT = {"mu_init", "bound_push", "constr_mult_init_max", "max_soc", "threads", "label"}
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


@dataclass(frozen=True)
class Call:
    """One solve: checked values, limits, and the observers of its iterates."""

    numbers: Numbers
    limits: Limits
    warm: WorkingSet | None = None  # working set of a solution nearby; None: by the multipliers
    x_prev: Vector | None = None  # x_{−1} for methods with memory; None: x_0
    callback: Callable[[Progress], bool | None] | None = None  # stops by returning True
    stopping: tuple[StoppingTest, ...] = ()  # after the tests for convergence and divergence
    history: bool = False  # True to record every iterate
    log: int = 0  # print every so many iterations; 0: nothing


class Method(Protocol):
    """A method of :data:`~casadi_hybrid.METHODS` in Python."""

    @property
    def label(self) -> str:
        """Name for tables."""

    @property
    def limits(self) -> Limits:
        """The defaults."""

    def refusal(self, problem: Problem, bounds: Bounds) -> str:
        """Reason why this problem is rejected; empty if accepted."""

    def run(self, problem: Problem, call: Call) -> Result:
        """Solve."""


@dataclass(frozen=True)
class Automatic:
    """The default method: the core in C, for every problem. The solver itself runs it."""

    label: str = METHOD_NAMES[0]
    limits: ClassVar[Limits] = Limits()


def make_method(method: Any, options: dict[str, Any]) -> Method | Automatic:
    """Return the method of a name or of an iteration object, with its options."""
    if isinstance(method, str) and method not in METHODS:
        raise InputError(f"unknown method {method!r}{suggest(method, METHODS)}")
    # Imported by name: the default method loads nothing of the paper.
    module, _, function = (METHODS[method] if isinstance(method, str) else _OWN).partition(":")
    make: Callable[..., Method | Automatic] = getattr(import_module(module), function)
    return make(method, options)


def default(name: str, options: dict[str, Any]) -> Automatic:
    """Return the default method, whose options are arguments of the solver."""
    refuse_unknown(name, options, _OF_DEFAULT)
    return Automatic(options.get("label", METHOD_NAMES[0]))


def refuse_unknown(method: str, options: Iterable[str], known: set[str]) -> None:
    """Refuse an option that a method does not have, with the closest known one."""
    for option in options:
        if option not in known:
            near = suggest(option, known | OF_SOLVERS)
            if option in _PRINTING:
                near = "; nothing is printed but by solve(log=True)"
            raise InputError(f"unknown option {option!r} for {method!r}{near}")
