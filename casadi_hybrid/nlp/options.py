"""The options of :func:`casadi_hybrid.nlpsol`, checked once and immutable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.errors import InputError, suggest
from casadi_hybrid.inputs import count, positive
from casadi_hybrid.nlp.record import IterationRecord
from casadi_hybrid.nlp.solve import SolveOptions

Callback = Callable[[IterationRecord], bool | None]


@dataclass(frozen=True)
class NlpOptions:
    """What may stand in the options of :func:`~casadi_hybrid.nlpsol`; its docstring explains them.

    Raises:
        InputError: for a value out of range.
    """

    tol: float = 1e-8
    residual_tol: float = 1e-6
    max_iter: int = 3000
    max_time: float = np.inf
    divergence: float = 1e20
    error_on_fail: bool = False
    iteration_callback: Callback | None = None
    log: bool | int = False
    print_time: bool = False
    expand: bool = False
    constraint_names: Sequence[str] | None = None
    variable_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        positive(self.tol, "tol")
        positive(self.residual_tol, "residual_tol")
        count(self.max_iter, "max_iter")
        if self.max_time != np.inf:
            positive(self.max_time, "max_time")
        positive(self.divergence, "divergence")
        for name in ("error_on_fail", "print_time", "expand"):
            _flag(getattr(self, name), name)
        if not isinstance(self.log, bool):
            count(self.log, "log")
        callback = self.iteration_callback
        if isinstance(callback, ca.Function) or not (callback is None or callable(callback)):
            raise InputError(
                "iteration_callback must be a Python function of one IterationRecord, "
                f"got {type(callback).__name__}"
            )

    @classmethod
    def from_dict(cls, options: Mapping[str, Any] | None) -> NlpOptions:
        """Build from CasADi's dictionary of options.

        Raises:
            InputError: for an unknown option, with the nearest known one, or a bad value.
        """
        if options is None:
            return cls()
        if not isinstance(options, Mapping):
            raise InputError(f"options must be a dictionary, got {type(options).__name__}")
        known = [entry.name for entry in fields(cls)]
        for name in options:
            if name in known:
                continue
            plugin = str(name).split(".", maxsplit=1)[0]
            if plugin != name or isinstance(options[name], Mapping):
                raise InputError(
                    f"option {name!r} belongs to {plugin}, another solver; use ca.nlpsol for it, "
                    f"or the options known here: {', '.join(sorted(known))}"
                )
            raise InputError(f"unknown option {name!r}{suggest(str(name), known)}")
        return cls(**options)

    @property
    def limits(self) -> SolveOptions:
        """Tolerances and limits of the solve."""
        return SolveOptions(self.tol, self.residual_tol, self.max_iter, self.max_time)


def _flag(value: Any, name: str) -> None:
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, got {value!r}")
