"""What is called at every iteration: a Python function, or a ``ca.Callback`` as CasADi takes it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError, interrupted_inside
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.casadi_api.convention import OUTPUTS
from casadi_hybrid.result.record import IterationRecord


def check_callback(callback: Any) -> None:
    """Refuse what cannot be called, and a Function without CasADi's six inputs."""
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
    """Calls the user's callback every so many iterations; what is true asks to stop.

    What the callback raises asks to stop as well, and is kept for who called the solver: the best
    point is judged first.

    Args:
        callback: a function of the record, or a CasADi Function (x, f, g, lam_x, lam_g, lam_p) →
            number. Inputs that the Function declares empty are left empty.
        every: iterations from one call to the next.
        ignore_errors: what the callback raises becomes a warning.
        gradient_p: (x, λ_g, p) → ∂(f + λ_gᵀg)/∂p, for these parameter values.
    """

    callback: Any
    every: int
    ignore_errors: bool
    gradient_p: ca.Function
    p: Vector
    raised: BaseException | None = field(default=None, init=False)
    calls: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)

    def __call__(self, record: IterationRecord) -> bool:
        """Call it where a call is due."""
        if record.iter % self.every:
            return False
        began = time.perf_counter()
        try:
            if isinstance(self.callback, ca.Function):
                return self._ask_function(record)
            return bool(self.callback(record))
        except KeyboardInterrupt as error:
            self.raised = interrupted_inside("the iteration_callback", error)
            return True
        except BaseException as error:  # noqa: BLE001, it is raised when the solve has ended
            if not (self.ignore_errors and isinstance(error, Exception)):
                self.raised = error
                return True
            warnings.warn(f"iteration_callback failed: {error}", UserWarning, stacklevel=2)
            return False
        finally:
            self.calls += 1
            self.seconds += time.perf_counter() - began

    def _ask_function(self, record: IterationRecord) -> bool:
        lam_p = -self.gradient_p(record.x, record.lam_g, self.p)
        values = (record.x, record.obj, record.g, record.lam_x, record.lam_g, lam_p)
        arguments = [
            value if self.callback.numel_in(i) == value.numel() else ca.DM()
            for i, value in enumerate(map(ca.densify, map(ca.DM, values)))
        ]
        # Python code is called as such: through C++ only the text of what it raises comes back.
        written = type(self.callback).eval if isinstance(self.callback, ca.Callback) else None
        call = self.callback.call if written in (None, ca.Callback.eval) else self.callback.eval
        return bool(float(call(arguments)[0]))
