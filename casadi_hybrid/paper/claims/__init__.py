"""The paper's theorems as claims that can be run, and the counter-examples that bound them.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation". Each function runs the package's own
law in the solver's own loop and returns a :class:`Claim` with the deviations it measured.
``casadi-hybrid claims`` prints all of them.
"""

from casadi_hybrid.paper.claims.claim import Claim, Setup, table
from casadi_hybrid.paper.claims.suite import check_all, check_shape

__all__ = ["Claim", "Setup", "check_all", "check_shape", "table"]
