"""The order by stages that FATROP needs gives the same answers as the program itself."""

from __future__ import annotations

import importlib
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
IPOPT = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}
FATROP = {"print_time": False, "fatrop": {"print_level": 0}}


@pytest.fixture
def modules(monkeypatch):
    """The scenarios' own modules, imported as its scripts do."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("stages"), importlib.import_module("transcription")


def motion(x, u):
    """A pendulum with a motor."""
    return ca.vertcat(x[1], u[0] - ca.sin(x[0]))


def problem(transcription, *, unit=1.0, row_unit=1.0, **extra):
    """A swing of the pendulum to 1 rad with a limited motor and a limited rate."""
    ocp = transcription.Transcription("swing")
    X = ocp.variable("state", 2, 9, unit=unit)
    U = ocp.variable("torque", 1, 8, lower=-1.0, upper=0.8)
    start = ocp.parameter("start", [0.0, 0.0])
    ocp.constrain("initial", X[:, 0] - start)
    ocp.shoot("dynamics", transcription.runge_kutta(motion, 0.3), X, U, unit=row_unit)
    ocp.constrain("swing", X[0, :] ** 2 + X[1, :], upper=1.5, lower=-np.inf)
    ocp.constrain("final", X[:, 8] - np.array([1.0, 0.0]))
    ocp.minimize(ca.sumsqr(U))
    if "duration" in extra:
        ocp.minimize(ca.sumsqr(ocp.variable("duration") - 1))
    if "rate" in extra:
        ocp.constrain("rate", U[0, 1:] - U[0, :-1], lower=-1.0, upper=1.0)
    if "smooth" in extra:
        ocp.minimize(ca.sumsqr(U[0, 1:] - U[0, :-1]))
    return ocp.build()


CASES = {
    "shooting": {},
    "units": {"unit": [3.0, 0.7], "row_unit": [2.0, -5.0]},
}


@pytest.mark.parametrize("case", CASES)
def test_point_and_multipliers_are_those_of_ipopt(modules, case):
    stages, transcription = modules
    program = problem(transcription, **CASES[case]).with_parameters(start=[0.1, -0.1])
    staged = stages.StagedSolver(program, FATROP)
    found = staged(**program.arguments)
    reference = ca.nlpsol("ipopt", "ipopt", dict(program.nlp), IPOPT)(**program.arguments)
    assert staged.stats()["success"]
    assert staged.stats()["N"] == 8
    for key in ("x", "f", "g", "lam_x", "lam_g"):
        np.testing.assert_allclose(found[key].full(), reference[key].full(), 1e-6, 1e-6)
    assert np.abs(found["lam_x"].full()).max() > 1e-2  # the limit of the motor is active


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("duration", "'duration' belongs to no stage"),
        ("rate", r"row rate\[0,0\] couples stages 0 to 1"),
        ("smooth", "meet in the objective"),
    ],
)
def test_what_is_not_of_stages_is_refused_by_name(modules, extra, said):
    stages, transcription = modules
    with pytest.raises(ValueError, match=said):
        stages.StagedSolver(problem(transcription, **{extra: True}), FATROP)
