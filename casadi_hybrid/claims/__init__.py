"""The paper's theorems as claims that can be run, and the counter-examples that bound them.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation". Each function runs the package's own
law in the solver's own loop and returns a :class:`Claim` with the deviations it measured.
``python -m casadi_hybrid.claims`` prints all of them.
"""

from casadi_hybrid.claims.compare import Trajectory, Trial, deviation, follow
from casadi_hybrid.claims.modes import (
    Stiffness,
    margin_bounds,
    margin_double_root,
    margin_equality,
    margin_expansion,
    margin_formula,
    margin_rate,
    mode_gap,
    stiffness,
    stiffness_example,
)
from casadi_hybrid.claims.noise import (
    MemoryNoise,
    SharedNoise,
    additivity_under_shared_noise,
    equivalence_under_memory_noise,
    unshared_noise,
    visible_memory_noise,
)
from casadi_hybrid.claims.record import Claim, table
from casadi_hybrid.claims.spectra import (
    jacobian_in_other_variables,
    jacobian_of_the_law,
    law_jacobian,
    local_gap,
    local_jacobian,
    spectral_gap,
    target_curvature,
    unreachable_curvature,
)
from casadi_hybrid.claims.suite import check_all, check_shape
from casadi_hybrid.claims.trajectories import (
    additivity,
    closed_form,
    constant_memory,
    design_additivity,
    look_ahead,
    printed_hessian,
    telescoped,
    theorem_equivalence,
    unmatched_start,
    untelescoped,
)

__all__ = [
    "Claim",
    "MemoryNoise",
    "SharedNoise",
    "Stiffness",
    "Trajectory",
    "Trial",
    "additivity",
    "additivity_under_shared_noise",
    "check_all",
    "check_shape",
    "closed_form",
    "constant_memory",
    "design_additivity",
    "deviation",
    "equivalence_under_memory_noise",
    "follow",
    "jacobian_in_other_variables",
    "jacobian_of_the_law",
    "law_jacobian",
    "local_gap",
    "local_jacobian",
    "look_ahead",
    "margin_bounds",
    "margin_double_root",
    "margin_equality",
    "margin_expansion",
    "margin_formula",
    "margin_rate",
    "mode_gap",
    "printed_hessian",
    "spectral_gap",
    "stiffness",
    "stiffness_example",
    "table",
    "target_curvature",
    "telescoped",
    "theorem_equivalence",
    "unmatched_start",
    "unreachable_curvature",
    "unshared_noise",
    "untelescoped",
    "visible_memory_noise",
]
