"""The paper's law as a feedback controller: the constraints are measured, not computed."""

from casadi_hybrid.control.feedback.baselines import (
    FilteredIntegralFeedback,
    GradientFeedback,
    IntegralFeedback,
)
from casadi_hybrid.control.feedback.closed_loop import ClosedLoop, FeedbackLaw, Prediction, predict
from casadi_hybrid.control.feedback.controller import FeedbackController
from casadi_hybrid.control.feedback.design import FeedbackDesign, design
from casadi_hybrid.control.feedback.hybrid import HybridFeedback, HybridState
from casadi_hybrid.control.feedback.measure import Measured, measure

__all__ = [
    "ClosedLoop",
    "FeedbackController",
    "FeedbackDesign",
    "FeedbackLaw",
    "FilteredIntegralFeedback",
    "GradientFeedback",
    "HybridFeedback",
    "HybridState",
    "IntegralFeedback",
    "Measured",
    "Prediction",
    "design",
    "measure",
    "predict",
]
