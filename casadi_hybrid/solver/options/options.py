"""The options of :func:`casadi_hybrid.nlpsol`, checked once and immutable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.core.binding.serving import BACKGROUND
from casadi_hybrid.problem.graph.derivatives import Derivatives
from casadi_hybrid.problem.point.limits import RESIDUAL_TOL, Limits
from casadi_hybrid.problem.point.residuals import Tolerances
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import count, positive

_FLAGS = (
    "error_on_fail",
    "iteration_callback_ignore_errors",
    "print_time",
    "warn_initial_bounds",
    "expand",
    "postpone_expand",
    "jit",
    "warm",
)


@dataclass(frozen=True)
class NlpOptions:
    """Options of :func:`~casadi_hybrid.nlpsol`, whose docstring explains them."""

    tol: float = Limits.scaled_tol
    residual_tol: float = RESIDUAL_TOL
    constr_viol_tol: float | None = None
    dual_inf_tol: float | None = None
    compl_inf_tol: float | None = None
    max_iter: int = Limits.max_iter
    max_time: float = Limits.max_time
    divergence: float = Limits.divergence
    mu_init: float | None = Limits.mu_init
    bound_push: float = Limits.bound_push
    constr_mult_init_max: float = Limits.constr_mult_init_max
    max_soc: int = Limits.max_soc
    threads: int = Limits.threads
    error_on_fail: bool = False
    iteration_callback: Callable[[Any], bool | None] | ca.Function | None = None
    iteration_callback_step: int = 1
    iteration_callback_ignore_errors: bool = False
    log: bool | int = False
    print_time: bool = False
    warn_initial_bounds: bool = False
    expand: bool = False
    postpone_expand: bool = False
    jit: bool = False
    compile: bool | str = False
    warm: bool = True
    hessian_approximation: str | None = None
    hess_lag: ca.Function | None = None
    jac_g: ca.Function | None = None
    grad_f: ca.Function | None = None
    residuals: ca.Function | None = None
    helper_options: Mapping[str, Any] | None = None
    constraint_names: Sequence[str] | None = None
    variable_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in ("tol", "residual_tol"):
            positive(getattr(self, name), name)
        for name in ("constr_viol_tol", "dual_inf_tol", "compl_inf_tol"):
            if getattr(self, name) not in (None, np.inf):
                positive(getattr(self, name), name)
        self.limits  # noqa: B018  refuses bad values
        for name in _FLAGS if self.compile == BACKGROUND else (*_FLAGS, "compile"):
            value = getattr(self, name)  # many scripts write 1 and 0
            if not isinstance(value, bool | int) or value not in (0, 1):
                words = f"True, False or {BACKGROUND!r}" if name == "compile" else "True or False"
                raise InputError(f"{name} must be {words}, got {value!r}")
            # The dataclass is frozen.
            object.__setattr__(self, name, bool(value))
        object.__setattr__(self, "compile", self.compile or self.jit)
        if not isinstance(self.log, bool):
            count(self.log, "log")
        self.derivatives  # noqa: B018  refuses bad values
        if not isinstance(self.helper_options, Mapping | None):
            raise InputError(f"helper_options must be a dictionary, got {self.helper_options!r}")
        if self.iteration_callback is not None:
            from casadi_hybrid.solver.options.callbacks import check_callback  # noqa: PLC0415 - seldom

            check_callback(self.iteration_callback)
        count(self.iteration_callback_step, "iteration_callback_step", at_least=1)

    @classmethod
    def from_dict(cls, options: Mapping[str, Any] | NlpOptions | None) -> NlpOptions:
        """Build from CasADi's dictionary; its own names are in ``foreign.py``."""
        if options is None:
            return _defaults()
        if isinstance(options, NlpOptions):
            return options
        if not isinstance(options, Mapping):
            raise InputError(f"options must be a dictionary, got {type(options).__name__}")
        from casadi_hybrid.solver.options.foreign import translate  # noqa: PLC0415 - not without options

        return cls(**translate(options, list(cls.__match_args__)))

    @property
    def derivatives(self) -> Derivatives:
        """Replacements of generated derivatives."""
        return Derivatives(
            self.hessian_approximation, self.hess_lag, self.jac_g, self.grad_f, self.residuals
        )

    @cached_property
    def limits(self) -> Limits:
        """Tolerances and limits of the solve."""
        common = self.residual_tol
        kinds = self.constr_viol_tol, self.dual_inf_tol, self.compl_inf_tol
        # IPOPT's own limits are loose by default; a looser one than ours has no effect.
        tolerances = Tolerances(*(common if tol is None else min(common, tol) for tol in kinds))
        return Limits(
            tolerances,
            self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            divergence=self.divergence,
            mu_init=self.mu_init,
            bound_push=self.bound_push,
            constr_mult_init_max=self.constr_mult_init_max,
            max_soc=self.max_soc,
            threads=self.threads,
        )


@cache
def _defaults() -> NlpOptions:
    return NlpOptions()
