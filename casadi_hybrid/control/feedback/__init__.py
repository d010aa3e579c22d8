"""Feedback by the paper's law: the constraints are measured, not computed.

Two heaters hold one temperature, h(u) = 0.5 u₁ + u₂ + d (K), at the least ½(u₁² + 2u₂²). The
controller knows neither the disturbance d nor the true temperature:

>>> import numpy as np
>>> from casadi_hybrid.control.feedback import *
>>> B, H, noise = [[0.5, 1.0]], np.diag([1.0, 2.0]), [0.04]
>>> law = HybridFeedback(design(B, H, noise, rate=0.8))
>>> controller = FeedbackController(law, u0=[0.0, 0.0])
>>> for _ in range(100):
...     temperature = 0.5 * controller.u[0] + controller.u[1] - 3.0
...     u = controller.step([temperature])
>>> u.round(6) + 0.0
array([2., 2.])

Standard deviation of the temperature for sensor noise with a standard deviation of 0.2 K:

>>> print(f"{np.sqrt(predict(law, noise).errors[0, 0]):.4f} K")
0.0474 K
"""

from casadi_hybrid.control.feedback.closed_loop import (
    ClosedLoop,
    FeedbackController,
    FeedbackLaw,
    Measured,
    Prediction,
    measure,
    predict,
)
from casadi_hybrid.control.feedback.design import FeedbackDesign, design
from casadi_hybrid.control.feedback.hybrid import HybridFeedback, HybridState

__all__ = [
    "ClosedLoop",
    "FeedbackController",
    "FeedbackDesign",
    "FeedbackLaw",
    "HybridFeedback",
    "HybridState",
    "Measured",
    "Prediction",
    "design",
    "measure",
    "predict",
]
