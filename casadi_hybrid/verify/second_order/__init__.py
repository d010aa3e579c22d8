"""Curvature on the critical cone, and feasible paths if it does not decide."""
