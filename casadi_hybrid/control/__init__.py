"""Optimal control, predictive control and estimation, stated by name and in physical units.

A :class:`Model` has states, controls, algebraic states, parameters and outputs; an
:class:`OptimalControl` adds a horizon, costs and constraints and is laid out as a nonlinear program
by a method (:class:`MultipleShooting`, :class:`SingleShooting`, :class:`Collocation`); a
:class:`Solution` is read by name. :class:`Phases` puts horizons one after the other,
:class:`Scenarios` side by side.
"""

import casadi_hybrid.solver.solve as _solves  # noqa: F401 - no step of a loop may take the time of an import
from casadi_hybrid.control.estimation import EKF, MHE
from casadi_hybrid.control.joint.phases import Phases
from casadi_hybrid.control.joint.scenarios import Scenarios, branches
from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.steps import Free, Integrator, RungeKutta
from casadi_hybrid.control.mpc.mpc import MPC
from casadi_hybrid.control.mpc.step import Record, Step
from casadi_hybrid.control.simulation import Plant, Run, Summary, Table, monte_carlo, simulate
from casadi_hybrid.control.solution.dense import Samples
from casadi_hybrid.control.solution.mesh_refinement import Refined, refine
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.solution.solution import Solution
from casadi_hybrid.control.solution.steady import Steady, steady
from casadi_hybrid.control.solution.storing import Saved
from casadi_hybrid.control.transcription.methods import (
    Collocation,
    MultipleShooting,
    SingleShooting,
)
from casadi_hybrid.control.transcription.program import Block, Program
from casadi_hybrid.control.transcription.terms import Soft

__all__ = [
    "EKF", "MHE", "MPC", "Block", "Collocation", "Free", "Integrator", "Model", "MultipleShooting",
    "OptimalControl", "Phases", "Plant", "Program", "Record", "Refined", "Run", "RungeKutta",
    "Samples", "Saved", "Scenarios", "SingleShooting", "Soft", "Solution", "Steady", "Step",
    "Summary", "Table", "branches", "monte_carlo", "refine", "simulate", "steady",
]  # fmt: skip
