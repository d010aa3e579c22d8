"""The design rule: cancellation + strength + split + steps, under the norm budget M_max."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from casadi_hybrid.paper.law import Correction
from casadi_hybrid.paper.rules import parts
from casadi_hybrid.paper.rules.cancellations import Cancellation, FullCancellation
from casadi_hybrid.paper.rules.parts import Candidate, Metric, Split, StepRule, Strength
from casadi_hybrid.paper.rules.spectra import LocalModel, symmetric_eigenvalues, symmetric_norm
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.errors import DesignError
from casadi_hybrid.utils.inputs import has_method, positive

# A later candidate must win by more than rounding: margins that are equal in exact arithmetic must
# not be ordered by the last bit.
TIE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Design(Correction):
    """A correction with the intermediate results of its rule.

    Attributes:
        alpha, theta: strength and split (θ is NaN for the pure endpoints).
        a_x, a_d: the margin's weights.
        active: active limit of η_x: ``"balance"``, ``"S1"`` or ``"S3"``.
        min_eig_A, norm_M: smallest eigenvalue of A_M = H + BᵀMB, and ‖M‖₂.
    """

    alpha: float
    theta: float
    a_x: float
    a_d: float
    active: str
    min_eig_A: float
    norm_M: float


class _Target(NamedTuple):
    """The spectra of one total correction."""

    norm_M: float
    min_eig_A: float
    a_x: float
    a_d: float


@dataclass(frozen=True)
class DesignRule:
    """The paper's Algorithm 1 by parts: M = C_can + αR, split between two channels, steps by S1–S3.

    The defaults are the closed-form weighted hybrid;
    :func:`~casadi_hybrid.paper.rules.algorithm1.algorithm_1` has it in one function.

    Args:
        cancellation, metric, strength: build C_can, R and α.
        split, steps: divide M, and choose η_x and η_d.
        M_max: the largest admissible ‖M‖₂ (paper: 300).
        kernel_floor: treatment of curvature ≤ 0 on ker B. None stops with "not augmentable" and the
            direction; δ > 0 designs for the model with this curvature lifted to δ.
    """

    cancellation: Cancellation = field(default_factory=FullCancellation)
    metric: Metric = field(default_factory=parts.IdentityMetric)
    strength: Strength = field(default_factory=parts.TargetCurvature)
    split: Split = field(default_factory=parts.ClosedFormSplit)
    steps: StepRule = field(default_factory=StepRule)
    M_max: float = 300.0
    kernel_floor: float | None = None

    needs_hessian = True

    def __post_init__(self) -> None:
        positive(self.M_max, "M_max")
        if self.kernel_floor is not None:
            positive(self.kernel_floor, "kernel_floor")
        has_method(self.cancellation, "cancellation", "cancel")
        has_method(self.metric, "metric", "matrix")
        has_method(self.strength, "strength", "alpha")

    def decide(self, at: Evaluation, t: int) -> Design:
        """Return the design at H = ``at.hessian`` and B = ``at.B``.

        Raises:
            DesignError: negative curvature on ker B, an indefinite A_M, or ‖M‖ > M_max for all.
        """
        assert at.hessian is not None
        return self.design(LocalModel(at.hessian, at.B, self.kernel_floor))

    def design(self, model: LocalModel) -> Design:
        """Return the design for a local model (raises like :meth:`decide`)."""
        # deficit: the curvature that C_can leaves missing; α R adds it.
        C_can, deficit = self.cancellation.cancel(model, self.strength.delta)
        # The steps need ‖B‖², which must neither underflow nor overflow.
        if not 1e-150 < model.norm_B < 1e150:
            raise DesignError(
                f"the constraint Jacobian has the norm {model.norm_B:.3g}, whose square is out of "
                "range; scale the constraints"
            )
        R = self.metric.matrix(model)
        alpha = self.strength.alpha(model, R, deficit)
        best: Design | None = None
        margin = 0.0
        targets: dict[float, _Target] = {}  # candidates of one strength share M
        undivided = parts.Undivided(model, C_can, alpha, R, self.steps)
        for candidate in self.split.candidates(undivided):
            target = targets.get(candidate.alpha) or self._target(model, candidate)
            targets[candidate.alpha] = target
            if target.norm_M > self.M_max:
                continue
            steps = self.steps.choose(model, candidate, target.a_x, target.a_d)
            # The first of equal margins is kept: the order of the candidates decides.
            if best is None or steps.margin > margin * (1 + TIE):
                chosen = candidate._asdict() | steps._asdict() | target._asdict()
                margin = chosen.pop("margin")
                best = Design(**chosen)
        if best is None:
            least = min(target.norm_M for target in targets.values())
            raise DesignError(
                f"the correction needs ‖M‖ = {least:.4g}, above the norm budget "
                f"M_max = {self.M_max:.4g}; raise it or use a partial correction"
            )
        return best

    def _target(self, model: LocalModel, candidate: Candidate) -> _Target:
        M = candidate.C_aug + candidate.C_opt
        norm_M = symmetric_norm(M)
        A = model.curvature(M)
        smallest = float(symmetric_eigenvalues(A)[0])
        # Beyond the budget a candidate is dropped, whatever its curvature.
        if norm_M <= self.M_max and smallest <= 0:
            raise DesignError(
                f"H + BᵀMB has the eigenvalue {smallest:.3g}: the correction does not reach "
                "a direction of negative curvature"
            )
        # Weights of a correction beyond the budget are not used.
        if norm_M > self.M_max or self.steps.margin == "unit":
            return _Target(norm_M, smallest, 1.0, 1.0)
        a_d = model.smallest_dual_curvature(A)
        return _Target(norm_M, smallest, 0.5 * smallest, a_d)
