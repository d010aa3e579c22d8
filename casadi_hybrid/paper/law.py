r"""The update law of the augmented, the optimistic and the hybrid methods.

With h_t = h(x_t), g_t = ∇f(x_t), B_t = J_h(x_t) and a correction M_t = C_aug,t + C_opt,t,

.. math::

    \mu_{t+1} &= \mu_t + v_t + C_{opt,t} h_t - C_{opt,t-1} h_{t-1} \\
    x_{t+1}   &= x_t - P_t [ g_t + B_t^T (\mu_{t+1} + C_{aug,t} h_t) ]

with the drive v_t = η_d h_t and P_t = η_x I, which is Algorithm 1 of the paper; with constant
matrices the memory term is the paper's Ω(h_t − h_{t−1}). Matrices D and P may stand for η_d and
η_x, and v may be the look-ahead drive D(h − Bw), w = P(g + Bᵀ(π + M h)), which uses the residual
predicted after a step with the old multiplier.

**Why the split does not matter.** Put π_t = μ_t − C_opt,t−1 h_{t−1}, the *memory-free multiplier*.
The law reads π_{t+1} = π_t + v_t, x_{t+1} = x_t − P_t[g_t + B_tᵀ(π_{t+1} + M_t h_t)]: no C_aug, no
C_opt. So for any M_t, P_t, v_t that depend only on (x_t, π_t), constant or not, the trajectory is
that of M_t alone. The paper's effective dual is
ν_t = μ_t + C_aug,t−1 h_{t−1} = π_t + M_{t−1} h_{t−1}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.inputs import Matrix, Vector


@dataclass(frozen=True, slots=True)
class State:
    """State of an iteration: x_t, μ_t, and its memory.

    Attributes:
        memory: C_opt,t−1 h_{t−1}, the optimistic memory (zero for methods without one).
        effective: ν_t, the effective dual of the last primal step.
        t: number of steps taken.
        carry: further memory of a method (h_{t−1}, F(z_{t−1})), by its own convention.
    """

    x: Vector
    mu: Vector
    memory: Vector
    effective: Vector
    t: int = 0
    carry: Any = ()

    @property
    def multipliers(self) -> Vector:
        """π_t = μ_t − C_opt,t−1 h_{t−1}: the same for every split of the correction."""
        return self.mu - self.memory


@dataclass(frozen=True, slots=True)
class Correction:
    """Choice of one iteration: the two channels and the two steps.

    Attributes:
        C_aug, C_opt: m×m, the augmented and the optimistic channel.
        eta_x, eta_d: η_x, η_d > 0, or metrics P (n×n) and D (m×m).
        lookahead: drive v = D(h − Bw) with w = P(g + Bᵀ(π + M h)) in place of v = D h.
    """

    C_aug: Matrix
    C_opt: Matrix
    eta_x: float | Matrix
    eta_d: float | Matrix
    lookahead: bool = False

    @property
    def M(self) -> Matrix:
        """The total correction C_aug + C_opt."""
        return self.C_aug + self.C_opt


def apply(step: float | Matrix, vector: Vector) -> Vector:
    """Return step · vector for a scalar or a matrix step."""
    return step @ vector if isinstance(step, np.ndarray) else step * vector


def advance(state: State, at: Evaluation, correction: Correction, memory: Vector) -> State:
    """Take one step of the law.

    The dual channel reads ``at.measured``, the augmented channel ``at.h``; they differ only under
    residual-memory noise. The optimistic channel subtracts ``memory``, C_opt,t−1 h_{t−1} in the
    telescoped law.
    """
    # at.measured is ĥ_t and at.h is h(x_t): they differ under residual-memory noise alone.
    optimistic = correction.C_opt @ at.measured
    residual = at.measured
    if correction.lookahead:
        # μ − memory = π_t, the old memory-free multiplier.
        force = at.gradient + at.B.T @ (state.mu - memory + correction.M @ at.h)
        residual = residual - at.B @ apply(correction.eta_x, force)
    # μ first, then x with the new μ: the alternating form, on which the equivalence rests.
    mu = state.mu + apply(correction.eta_d, residual) + optimistic - memory
    effective = mu + correction.C_aug @ at.h
    x = state.x - apply(correction.eta_x, at.gradient + at.B.T @ effective)
    return State(x, mu, optimistic, effective, state.t + 1, (at.measured,))
