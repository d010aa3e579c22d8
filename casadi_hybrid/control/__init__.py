"""Optimal control, predictive control and estimation, stated by name and in physical units.

A :class:`Model` has states, controls, algebraic states, parameters and outputs; an
:class:`OptimalControl` adds a horizon, costs and constraints and is laid out as a nonlinear program
by a method (:class:`MultipleShooting`, :class:`SingleShooting`, :class:`Collocation`); a
:class:`Solution` is read by name.
"""

from casadi_hybrid.control.methods import Collocation, MultipleShooting, SingleShooting
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.ocp import OptimalControl
from casadi_hybrid.control.program import Block, Program
from casadi_hybrid.control.reading.dense import Samples
from casadi_hybrid.control.reading.storing import Saved
from casadi_hybrid.control.refining import Refined, refine
from casadi_hybrid.control.solution import Solution
from casadi_hybrid.control.steps import Free, Integrator, RungeKutta

__all__ = [
    "Block",
    "Collocation",
    "Free",
    "Integrator",
    "Model",
    "MultipleShooting",
    "OptimalControl",
    "Program",
    "Refined",
    "RungeKutta",
    "Samples",
    "Saved",
    "SingleShooting",
    "Solution",
    "refine",
]
