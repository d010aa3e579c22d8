"""What the paper prints of its experiment's constants, and what was fitted to its tables.

The fitted ones are read from the code that uses them, so this list cannot say anything else.
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

from casadi_hybrid.iterations import (
    Extragradient,
    LinearizedAugmentedLagrangian,
    OptimisticGradient,
    PrimalDualHybridGradient,
)
from casadi_hybrid.paper.experiment import AS_PRINTED, BUDGET
from casadi_hybrid.paper.generator import FITTED
from casadi_hybrid.rules import DesignRule, GridSplit, StepRule

SEEDS = tuple(range(5))
"""The seeds whose tables were held against the print. They are no more the paper's than others."""


class Constant(NamedTuple):
    """A constant of the experiment: what it is, and its value as text."""

    name: str
    value: str


def printed_constants() -> tuple[Constant, ...]:
    """Those that the paper prints, as this code has them."""
    steps, rule = StepRule(), DesignRule()
    return (
        Constant("δ", f"{rule.strength.delta:g}"),
        Constant("κ_x, κ_p, κ_ω", f"{steps.kappa_x:g}, {steps.kappa_p:g}, {steps.kappa_omega:g}"),
        Constant("M_max", f"{rule.M_max:g}"),
        Constant("Σ", "diag(1, κ^−½, κ^−1)"),
        Constant("R", "I"),
    )


def fitted_constants() -> tuple[Constant, ...]:
    """Those that the paper leaves open, with the values fitted to its tables."""
    words = {
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
    grid, pdhg, linearized = (
        GridSplit(),
        PrimalDualHybridGradient(),
        LinearizedAugmentedLagrangian(),
    )
    drawn = [Constant(words[f.name], _text(getattr(FITTED, f.name))) for f in fields(FITTED)]
    return (
        Constant("iteration budget", f"{BUDGET}"),
        Constant("seeds", f"1000κ + {SEEDS[0]} … 1000κ + {SEEDS[-1]}"),
        *drawn,
        Constant("grid: α / α_t, in this order", _text(grid.strengths)),
        Constant("grid: θ", f"{len(grid.thetas)} from {grid.thetas[0]:g} to {grid.thetas[-1]:g}"),
        Constant("grid: of equal margins", "the first"),
        Constant("H_t at", "μ_t" if AS_PRINTED["hessian_at"] == "printed" else "π_t"),
        Constant("memory at the start", "C_opt,−1 h_−1 = C_opt,0 h_0, λ₀ = μ₀"),
        Constant("S1 where C_aug = 0", "left out"),
        Constant(
            "OGDA, extragradient: η", f"{_text((OptimisticGradient().eta, Extragradient().eta))}"
        ),
        Constant("PDHG: τ, σ", _text((pdhg.tau, pdhg.sigma))),
        Constant("linearized AL: η, penalty", _text((linearized.eta, linearized.penalty))),
    )


def listing() -> str:
    """Both lists as aligned text."""
    found = fitted_constants()
    width = max(len(constant.name) for constant in found)
    lines = ["Fitted to the paper's tables, which leave them open:"]
    lines += [f"  {constant.name:<{width}}  {constant.value}" for constant in found]
    lines += ["Printed in the paper and used as printed:"]
    lines += [f"  {constant.name:<{width}}  {constant.value}" for constant in printed_constants()]
    return "\n".join(lines)


def _text(value: object) -> str:
    return ", ".join(f"{v:g}" for v in value) if isinstance(value, tuple) else f"{value:g}"
