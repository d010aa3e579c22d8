"""The method's options of one problem, as the core reads them."""

from __future__ import annotations

import ctypes as ct
from ctypes import c_double, c_int

import numpy as np

from casadi_hybrid.engine.structure import may_be_composite
from casadi_hybrid.point.limits import NU_START, Limits, floor_of
from casadi_hybrid.problem.problem import Problem

# Steps of the first run from x0: after so many without an answer another start does better. Where
# the Hessian has to be learned on the way more are taken, and by composite steps few.
_PATIENCE, _FIRST_PATIENCE, _LEARNING, _COMPOSITE = 200, 400, 1000, 40
_PUSH = 1e-2  # relative distance of the start from its bounds, IPOPT's bound_push
_DENSE_LIMIT = 150
"""Up to this many variables and rows the rank of the Jacobian at the start is looked at."""
WARM_NU = 1e-6
"""The barrier parameter that goes with given multipliers."""


class RunData(ct.Structure):
    """``hybrid_run_options``."""

    _fields_ = [
        *((name, c_double) for name in (
            "nu", "nu_min", "push", "divergence", "relaxation", "max_time",
        )),
        *((name, c_int) for name in (
            "t0", "patience", "near", "dense", "feasibility", "unscaled", "root", "cautious",
            "composite",
        )),
    ]  # fmt: skip


class OptionsData(ct.Structure):
    """``hybrid_options``."""

    _fields_ = [
        ("first", RunData), ("near", RunData), ("composite", RunData),
        ("linear", c_int), ("alone", c_int),
    ]  # fmt: skip


def options_of(problem: Problem, limits: Limits, alone: bool = False) -> OptionsData:
    """How the runs of a solve begin: from x0 alone, from multipliers, by composite steps.

    Args:
        problem, limits: what is solved, and to which tolerances.
        alone: whether composite steps are all there is, with rows as they are.
    """
    learns = problem.functions.curvature is None

    def run(nu: float, patience: int, *, near: bool = False, composite: bool = False) -> RunData:
        return RunData(
            nu=nu, nu_min=floor_of(limits.scaled_tol), push=_PUSH, divergence=limits.divergence,
            max_time=np.inf, patience=patience, near=near,
            dense=problem.n + problem.m <= _DENSE_LIMIT, feasibility=problem.feasibility,
            composite=composite,
        )  # fmt: skip

    composite = run(
        NU_START, limits.max_iter if alone else _COMPOSITE,
        composite=alone or may_be_composite(problem),
    )  # fmt: skip
    composite.unscaled = alone
    return OptionsData(
        run(NU_START, _LEARNING if learns else _FIRST_PATIENCE),
        run(WARM_NU, _PATIENCE, near=True),
        composite,
        problem.linear,
        alone,
    )
