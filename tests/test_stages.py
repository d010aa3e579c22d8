"""FATROP takes the programs of the control room in their order by stages, and finds the answers."""

import casadi as ca
import numpy as np
import pytest
import solving

from casadi_hybrid.control import Free, Model, OptimalControl


def swing(*, scale=1.0, duration=2.4, unroll=True, soft=None):
    """A swing of a pendulum with a motor to 1 rad, with a limited motor and a limited rate."""
    plant = Model("swing")
    angle, rate = plant.state("angle", scale=scale), plant.state("rate", scale=0.7 * scale)
    u = plant.control("torque", lower=-1.0, upper=0.8)
    plant.rates(angle=rate, rate=u - ca.sin(angle))
    ocp = OptimalControl(plant, duration=duration, intervals=8, unroll=unroll)
    ocp.initial(angle=0.1, rate=-0.1)
    ocp.final(angle=1, rate=0)
    ocp.path("swing", angle**2 + rate, upper=1.5, soft=soft)
    ocp.minimize("effort", integral=u**2)
    return ocp


@pytest.mark.parametrize("case", [{}, {"scale": 3.1}, {"unroll": False}, {"soft": 10.0}])
def test_point_and_multipliers_are_those_of_ipopt(case):
    program = swing(**case).numbers()
    staged = solving.make_solver(program, solving.FATROP)
    found = staged(**program.arguments)
    reference = solving.make_solver(program, solving.IPOPT)(**program.arguments)
    assert staged.stats()["success"]
    assert solving.stopped(staged.stats()) == "SOLVER_RET_SUCCESS"
    for key in ("x", "f", "g", "lam_x", "lam_g"):
        np.testing.assert_allclose(found[key].full(), reference[key].full(), atol=1e-4)
    assert np.abs(found["lam_x"].full()).max() > 1e-2  # the limit of the motor is active


def test_structure_counts_unknowns_and_rows_of_each_stage():
    options = solving.structure(swing(soft=10.0).program)
    assert options["N"] == 8
    assert options["nx"] == [2] * 9
    assert options["nu"] == [2] * 8 + [1]  # motor and violation; at the end the violation alone
    assert options["ng"] == [3] + [1] * 7 + [3]  # initial state and swing, …, final state


def test_an_unknown_of_no_stage_is_refused():
    with pytest.raises(ValueError, match="belongs to no stage"):
        solving.structure(swing(duration=Free(2.4)).program)
