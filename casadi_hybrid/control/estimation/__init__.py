"""Estimation of states and parameters over a moving horizon, or by a filter."""

from casadi_hybrid.control.estimation.estimator import EKF, Record, Unknown
from casadi_hybrid.control.estimation.mhe import MHE

__all__ = ["EKF", "MHE", "Record", "Unknown"]
