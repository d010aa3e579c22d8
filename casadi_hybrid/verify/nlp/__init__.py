"""The verifier for programs with inequalities and bounds; see :mod:`casadi_hybrid.verify`."""
