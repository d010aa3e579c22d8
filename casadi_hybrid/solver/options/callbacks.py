"""The iteration callback: a Python function, or a ``ca.Callback`` as CasADi takes it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import casadi as ca

from casadi_hybrid.solver.options.convention import OUTPUTS
from casadi_hybrid.solver.record.record import IterationRecord
from casadi_hybrid.utils.errors import InputError, interrupted_inside
from casadi_hybrid.utils.inputs import Vector


def check_callback(callback: Any) -> None:
    """Refuse a value that cannot be called, and a Function without CasADi's six inputs."""
    if isinstance(callback, ca.Function):
        if callback.n_in() != len(OUTPUTS) or callback.n_out() < 1:
            raise InputError(
                f"iteration_callback {callback.name()!r} has {callback.n_in()} inputs and "
                f"{callback.n_out()} outputs; a CasADi Function must take {', '.join(OUTPUTS)} "
                "and return one number, not zero to stop"
            )
    elif not (callback is None or callable(callback)):
        raise InputError(
            "iteration_callback must be a Python function of one IterationRecord or a "
            f"ca.Callback, got {type(callback).__name__}"
        )


@dataclass
class StepCallback:
    """Calls the user's callback every so many iterations; a true answer stops the solve."""

    options: Any  # NlpOptions, whose module imports check_callback
    gradient_p: ca.Function  # (x, λ_g, p) → ∂(f + λ_gᵀg)/∂p
    p: Vector  # parameter values of the solve
    calls: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)

    def __call__(self, record: IterationRecord) -> bool:
        """Call the callback if a call is due."""
        callback = self.options.iteration_callback
        if record.iter % self.options.iteration_callback_step:
            return False
        began = time.perf_counter()
        try:
            if isinstance(callback, ca.Function):
                return self._call_function(callback, record)
            return bool(callback(record))
        except KeyboardInterrupt as error:
            raise interrupted_inside("the iteration_callback", error) from error
        except Exception as error:
            # It ends the solve; the caller gets it after the best point is judged.
            if not self.options.iteration_callback_ignore_errors:
                raise
            warnings.warn(f"iteration_callback failed: {error}", UserWarning, stacklevel=2)
            return False
        finally:
            self.calls += 1
            self.seconds += time.perf_counter() - began

    def _call_function(self, callback: ca.Function, record: IterationRecord) -> bool:
        # CasADi's sign, lam_p = −∂L/∂p.
        lam_p = -self.gradient_p(record.x, record.lam_g, self.p)
        values = (record.x, record.obj, record.g, record.lam_x, record.lam_g, lam_p)
        # An input that the Function declares empty stays empty.
        arguments = [
            value if callback.numel_in(i) == value.numel() else ca.DM()
            for i, value in enumerate(map(ca.densify, map(ca.DM, values)))
        ]
        # A Python eval is called directly: through C++ an exception comes back as text alone.
        method = type(callback).eval if isinstance(callback, ca.Callback) else None
        call = callback.call if method in (None, ca.Callback.eval) else callback.eval
        return bool(float(call(arguments)[0]))
