"""Curvature on the critical cone, and feasible paths where it does not decide."""
