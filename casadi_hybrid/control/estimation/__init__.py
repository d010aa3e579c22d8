"""Estimation of states and parameters over a moving horizon."""

from casadi_hybrid.control.estimation.given import Unknown
from casadi_hybrid.control.estimation.mhe import MHE
from casadi_hybrid.control.estimation.record import Record

__all__ = ["MHE", "Record", "Unknown"]
