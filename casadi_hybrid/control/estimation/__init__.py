"""Estimation of states and parameters over a moving horizon, or by a filter."""

from casadi_hybrid.basics.calls import check_classes
from casadi_hybrid.control.estimation.ekf import EKF
from casadi_hybrid.control.estimation.given import Unknown
from casadi_hybrid.control.estimation.mhe import MHE
from casadi_hybrid.control.estimation.record import Record

__all__ = ["EKF", "MHE", "Record", "Unknown"]

check_classes(__all__, globals())
