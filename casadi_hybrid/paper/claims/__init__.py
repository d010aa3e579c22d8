"""The paper's theorems as executable claims, and counter-examples to their hypotheses.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation". Each function runs the package's law
in the solver's loop and returns a :class:`Claim` with the measured deviations.
``casadi-hybrid claims`` prints all of them.
"""

from casadi_hybrid.paper.claims.claim import Claim, Setup, table
from casadi_hybrid.paper.claims.suite import check_all, check_shape

__all__ = ["Claim", "Setup", "check_all", "check_shape", "table"]
