"""Two plants whose constraints are measured, not computed, held by the hybrid law with noise.

**A feeder**, linear: six inverters with the reactive powers u (Mvar) hold the voltages of three
buses, h(u) = v₀ + B u − 100 % in percent, at the least ½ Σ cᵢuᵢ². The loads, and so v₀, are unknown
to the controller. The voltmeters of two of the buses are noisy.

**Four tanks**, mildly nonlinear: two pumps (V) and two valves (shares of 10 %) hold the levels of
the two lower tanks, h_i(u) = (q_i(u)/a_i)²/(2g) − level (cm), where the outlets' areas a_i and the
pumps' gains differ from those the controller's B was computed with, and an unknown stream leaks
into tank 1, whose gauge is noisy.

The controller measures ĥ_t = h(u_t) + ε_t once the plant has settled, and steps the law. `design`
gives it M, the split and both steps for the least variance of the inputs at the rate ρ. Three
splits of the same M: all in the augmented channel, all in the memory, and the designed one with
C_opt P_n = 0. Beside them integral feedback, the same with a filter, and projected gradient
feedback, each with its best gains at the same rate. Every variance is predicted by the closed
loop's Lyapunov equation and measured.

What comes out: the three splits share one noise-free trajectory, as the paper's theorem says, and
their variances differ by a factor of two. Without a cancellation the split with all in the memory
*is* integral feedback, and full augmentation has the variance of integral feedback with the best
filter: the law needs no filter, as its model is one. The price of not listening is paid when a
disturbance moves: the memory sees it at once, augmentation by the model only after D has.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from common import Method, Run, solve, solve_with_peer
from feedback_drawing import courses, disturbance, rates, variances
from reporting import Check, finish, parser, table
from solving import IPOPT

from casadi_hybrid import Problem
from casadi_hybrid.control.feedback import (
    FeedbackController,
    FilteredIntegralFeedback,
    GradientFeedback,
    HybridFeedback,
    IntegralFeedback,
    design,
    measure,
    predict,
)

NAME = "feedback_controller"
SUMMARY = "the law as a controller of two plants with noisy sensors: three splits, three rivals"

RATE = 0.9
"""ρ: an error shrinks to a tenth in 22 steps."""
SPLITS = ("augmentation", "memory", "designed")


@dataclass(frozen=True)
class Plant:
    """A plant as it is, and what the controller knows of it.

    Attributes:
        name, inputs, unit: for tables and figures; the unit of h.
        problem: of the inputs with the least cost, by the plant's true map.
        B: the sensitivity the controller was given, m×n.
        cost, preferred: H and u_r of the objective ½(u − u_r)ᵀH(u − u_r).
        noise: variances of the sensors, m.
        start: inputs at the start.
    """

    name: str
    inputs: str
    unit: str
    problem: Problem
    B: np.ndarray
    cost: np.ndarray
    preferred: np.ndarray
    noise: np.ndarray
    start: np.ndarray

    def h(self, u: np.ndarray) -> np.ndarray:
        """The true constraints, n×k to m×k."""
        return self._many(u).full()

    @property
    def _many(self) -> ca.Function:
        return self.problem.functions.residual.map(1) if False else self.problem.functions.residual
