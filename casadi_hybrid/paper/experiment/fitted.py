"""The paper's constants, printed and fitted, read from the code itself."""

from __future__ import annotations

from dataclasses import fields

from casadi_hybrid.paper import iterations
from casadi_hybrid.paper.experiment.experiment import AS_PRINTED, BUDGET
from casadi_hybrid.paper.experiment.generator import FITTED
from casadi_hybrid.paper.rules import DesignRule, GridSplit, StepRule
from casadi_hybrid.utils.output.text import aligned

# The seeds on which constants were fitted. They are not known to be the paper's.
SEEDS = tuple(range(5))
_DRAWN = {
    "eps_nl": "ε_nl, strength of the nonlinear part of h",
    "spread": "x* / standard normal",
    "multiplier_spread": "μ* / standard normal",
    "curvature": "eigenvalues of H₀",
    "least": "c_i, the least",
    "width": "c_i, width of the range above it",
    "power": "c_i, power of the uniform number",
    "radius": "‖x₀ − x*‖",
    "multiplier_radius": "‖μ₀ − μ*‖",
}


def printed_constants() -> dict[str, str]:
    """Return the constants that the paper prints, as read from the code."""
    steps, rule = StepRule(), DesignRule()
    return {
        "δ": f"{rule.strength.delta:g}",
        "κ_x, κ_p, κ_ω": _text((steps.kappa_x, steps.kappa_p, steps.kappa_omega)),
        "M_max": f"{rule.M_max:g}",
        "Σ": "diag(1, κ^−½, κ^−1)",
        "R": "I",
    }


def fitted_constants() -> dict[str, str]:
    """Return the constants that the paper leaves open, with the values fitted to its tables."""
    grid, pdhg = GridSplit(), iterations.PrimalDualHybridGradient()
    lin_al = iterations.LinearizedAugmentedLagrangian()
    etas = iterations.OptimisticGradient().eta, iterations.Extragradient().eta
    return {
        "iteration budget": f"{BUDGET}",
        "seeds": f"1000κ + {SEEDS[0]} … 1000κ + {SEEDS[-1]}",
        **{_DRAWN[f.name]: _text(getattr(FITTED, f.name)) for f in fields(FITTED)},
        "grid: α / α_t, in this order": _text(grid.strengths),
        "grid: θ": f"{len(grid.thetas)} from {grid.thetas[0]:g} to {grid.thetas[-1]:g}",
        "grid: of equal margins": "the first",
        "H_t at": "μ_t" if AS_PRINTED["hessian_at"] == "printed" else "π_t",
        "memory at the start": "C_opt,−1 h_−1 = C_opt,0 h_0, λ₀ = μ₀",
        "S1 where C_aug = 0": "left out",
        "OGDA, extragradient: η": _text(etas),
        "PDHG: τ, σ": _text((pdhg.tau, pdhg.sigma)),
        "linearized AL: η, penalty": _text((lin_al.eta, lin_al.penalty)),
    }


def listing() -> str:
    """Return both lists as aligned text."""
    parts = {
        "Fitted to the paper's tables, which leave them open:": fitted_constants(),
        "Printed in the paper and used as printed:": printed_constants(),
    }
    lines: list[str] = []
    for title, constants in parts.items():
        lines += [title, *(f"  {line}" for line in aligned([*constants.items()]))]
    return "\n".join(lines)


def _text(value: float | tuple[float, ...]) -> str:
    return ", ".join(f"{v:g}" for v in value) if isinstance(value, tuple) else f"{value:g}"
