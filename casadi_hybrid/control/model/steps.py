"""Steps from one grid point to the next: Runge–Kutta, CasADi's integrators, discrete models.

A step is a function (x, z, u, v, p, t, dt) → (x at the end, ∫ integrand dt, z at the end). The
control runs linearly from u to v. Entries of p after the model's are for the integrand alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.model import Model
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import count, one_of


@dataclass(frozen=True)
class Free:
    """Duration that the solver chooses.

    Attributes:
        guess: initial guess.
        lower, upper: limits, 0 < lower ≤ guess ≤ upper.
        scale: typical size; the guess by default.
    """

    guess: float
    lower: float = 1e-3
    upper: float = np.inf
    scale: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.lower <= self.guess <= self.upper or not np.isfinite(self.guess):
            raise InputError(
                "a free duration takes 0 < lower <= guess <= upper, got lower = "
                f"{self.lower:g}, guess = {self.guess:g}, upper = {self.upper:g}"
            )


@dataclass(frozen=True)
class RungeKutta:
    """Classical Runge–Kutta method of order four.

    Attributes:
        steps: number of equal steps an interval.
    """

    steps: int = 1
    graphs = ca.SX

    def __post_init__(self) -> None:
        count(self.steps, "steps", at_least=1)

    def function(self, model: Model, integrand: ca.Function) -> ca.Function:
        """Return the step of the model with an integrand (x, z, u, p, t), a column."""
        if model.size("algebraic"):
            raise InputError(
                f"{model.name} has algebraic states; Runge-Kutta steps cannot find them. Take "
                "Collocation(), or MultipleShooting(Integrator('idas'))"
            )
        x, z, u, v, p, t, dt = symbols = symbols_of(model, integrand)
        # Equal steps in s, the fraction of the interval.
        h = 1.0 / self.steps

        # In the fraction s of the interval: dx/ds = dt·f, and the integrand is a further state.
        def slope(at: Any, s: float) -> Any:
            here = (at[:n], z, u + s * (v - u), p, t + s * dt)
            return dt * ca.vertcat(_own(model, model.moves.rate, here), integrand(*here))

        n = model.size("state")
        y = ca.vertcat(x, ca.SX.zeros(integrand.numel_out(0)))
        for i in range(self.steps):
            s = i * h
            # The classical tableau: 1/6, 1/3, 1/3, 1/6.
            a = slope(y, s)
            b = slope(y + h / 2 * a, s + h / 2)
            c = slope(y + h / 2 * b, s + h / 2)
            d = slope(y + h * c, s + h)
            y = y + h / 6 * (a + 2 * b + 2 * c + d)
        return ca.Function("step", symbols, [y[:n], y[n:], z])


@dataclass(frozen=True)
class Integrator:
    """CasADi's variable-order integrators, ``"cvodes"`` for ODEs and ``"idas"`` for DAEs.

    Attributes:
        plugin: ``"cvodes"`` or ``"idas"``.
        options: of ``ca.integrator``.
    """

    plugin: str = "cvodes"
    options: Mapping[str, Any] = field(default_factory=lambda: {"abstol": 1e-10, "reltol": 1e-10})
    graphs = ca.MX

    def __post_init__(self) -> None:
        one_of(self.plugin, "plugin", ("cvodes", "idas"))

    def function(self, model: Model, integrand: ca.Function) -> ca.Function:
        """Return the step of the model with an integrand (x, z, u, p, t), a column."""
        if model.size("algebraic") and self.plugin == "cvodes":
            raise InputError(f"{model.name} has algebraic states; take Integrator('idas')")
        dae, of_x, of_z = dae_of(model, integrand)
        # An integrator's times are fixed: from 0 to 1 in s = (time − t)/dt, t and dt parameters.
        solve = ca.integrator("integrate", self.plugin, dae, 0.0, 1.0, dict(self.options))
        x, z, *rest = symbols = symbols_of(model, integrand, ca.MX)
        end = solve(x0=x / of_x, z0=z / of_z, p=ca.vertcat(*rest))
        return ca.Function("step", symbols, [end["xf"] * of_x, end["qf"], end["zf"] * of_z])


def dae_of(model: Model, integrand: ca.Function) -> tuple[dict[str, Any], ca.DM, ca.DM]:
    """Return an interval from 0 to 1 for CasADi's integrators, and the scales of x and z."""
    x, z, u, v, p, t, dt = symbols_of(model, integrand)
    of_x, of_z = (ca.DM(model.limits(kind, "scale")) for kind in ("state", "algebraic"))
    s = ca.SX.sym("s")
    # Scaled unknowns: the absolute tolerance of the integrator holds for x/scale.
    here = (x * of_x, z * of_z, u + s * (v - u), p, t + s * dt)
    dae = {"x": x, "t": s, "p": ca.vertcat(u, v, p, t, dt), "quad": dt * integrand(*here)}
    dae["ode"] = dt * _own(model, model.moves.rate, here) / of_x
    if model.size("algebraic"):
        dae |= {"z": z, "alg": _own(model, model.moves.equations, here)}
    return dae, of_x, of_z


class DiscreteMap:
    """Next state of a discrete model."""

    graphs = ca.SX

    def function(self, model: Model, integrand: ca.Function) -> ca.Function:
        """Return the step of the model; a discrete one has no integral."""
        if model.size("algebraic"):
            raise InputError(f"{model.name} is discrete and has algebraic states; solve for them")
        if integrand.numel_out(0):
            raise InputError(f"{model.name} is discrete; a cost of it is a sum, not an integral")
        x, z, u, _, p, t, _ = symbols = symbols_of(model, integrand)
        after = _own(model, model.moves.rate, (x, z, u, p, t))
        return ca.Function("step", symbols, [after, ca.SX(0, 1), z])


def step_of(model: Model, step: Any, otherwise: RungeKutta | Integrator | None = None) -> Any:
    """Return the step of a model: its own if discrete, else ``step``, IDAS for a DAE, a default."""
    if step is None:
        step = Integrator("idas") if model.size("algebraic") else otherwise
    check_step(step)
    return DiscreteMap() if model.discrete else step


def check_step(step: Any) -> None:
    """Refuse an object that is no step of a model."""
    if isinstance(step, type) or not callable(getattr(step, "function", None)):
        raise InputError(f"step must be RungeKutta(…) or Integrator(…), got {step!r}")


def plain_step(step: Any, model: Model) -> ca.Function:
    """Return the step of a model without an integrand."""
    return step.function(model, nothing(model))


def nothing(model: Model) -> ca.Function:
    """Return the integrand of no cost at all."""
    return ca.Function("nothing", model.arguments, [ca.SX(0, 1)])


def symbols_of(model: Model, integrand: ca.Function, kind: Any = ca.SX) -> list[Any]:
    """Return the arguments of a step."""
    sizes = [model.size(part) for part in ("state", "algebraic", "control", "control")]
    sizes += [integrand.numel_in(3), 1, 1]
    return [kind.sym(name, size) for name, size in zip("xzuvpth", sizes, strict=True)]


def _own(model: Model, function: ca.Function, here: tuple[Any, ...]) -> Any:
    x, z, u, p, t = here
    return function(x, z, u, p[: model.size("parameter")], t)
