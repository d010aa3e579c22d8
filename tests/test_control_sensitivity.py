"""Slopes of a solution by name, against solutions for other numbers."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import solution_sensitivity
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control import (
    Collocation,
    Free,
    Model,
    MultipleShooting,
    OptimalControl,
    SingleShooting,
)

METHODS = [MultipleShooting(inner=1), SingleShooting(), Collocation(2)]


def pendulum(method: Any, *, linear: bool = False, free: bool = False) -> OptimalControl:
    model = Model("pendulum")
    angle, rate = model.state("angle", scale=2.0, unit="rad"), model.state("rate", unit="rad/s")
    torque = model.control("torque", lower=-3, upper=3, scale=2.0, unit="N m", linear=linear)
    load = model.parameter("load", 1.0, unit="kg")
    bias = model.parameter("bias", [0.1, -0.1])
    wind = model.reference("wind", 0.2)
    push = torque + wind + bias[0] * rate + bias[1] * ca.cos(angle)
    model.rates(angle=rate, rate=push / load - 2 * ca.sin(angle))
    model.output("height", -load * ca.cos(angle), unit="m")
    duration = Free(1.5, 0.5, 3) if free else 1.5
    ocp = OptimalControl(model, duration=duration, intervals=6, method=method)
    ocp.initial(angle=1.0, rate=0)
    ocp.final(angle=0)
    ocp.minimize("effort", integral=torque**2 + rate**2 + (0.5 if free else 0))
    return ocp


def differences(ocp: OptimalControl, h: float, **change: Any) -> Any:
    """By solutions for numbers that are larger and smaller; change: name → (value, direction)."""
    found = []
    for sign in (1, -1):
        numbers = {
            name: value + sign * h * np.asarray(way) for name, (value, way) in change.items()
        }
        x0 = {"angle": numbers.pop("angle")} if "angle" in numbers else None
        found.append(ocp.solve(x0, **numbers))
    up, down = found
    names = ("angle", "rate", "torque", "height")
    slopes = {name: (up[name] - down[name]) / (2 * h) for name in names}
    slopes["objective"] = (up.objective - down.objective) / (2 * h)
    slopes["duration"] = (up.duration - down.duration) / (2 * h)
    return slopes


def assert_slopes(found: Any, expected: Any, entry: Any = ...) -> None:
    for name in ("angle", "rate", "torque", "height"):
        assert found[name][entry] == pytest.approx(expected[name], abs=2e-4), name
    at = entry[-1] if entry is not ... else ...
    for name in ("objective", "duration"):
        assert np.asarray(found[name])[at] == pytest.approx(expected[name], abs=2e-4), name


@pytest.mark.parametrize("linear", [False, True], ids=["held", "linear"])
@pytest.mark.parametrize("free", [False, True], ids=["fixed time", "free time"])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_slopes_are_those_of_solutions_nearby(method: Any, free: bool, linear: bool) -> None:
    ocp = pendulum(method, linear=linear, free=free)
    found = ocp.solve()
    assert found.success
    by_load = found.sensitivity("load")
    assert set(by_load) == {"angle", "rate", "torque", "height"}
    assert by_load["torque"].shape == found["torque"].shape
    assert_slopes(by_load, differences(ocp, 1e-4, load=(1.0, 1.0)))
    assert abs(by_load["torque"]).max() > 0.1
    by_start = found.sensitivity("initial angle")
    assert_slopes(by_start, differences(ocp, 1e-4, angle=(1.0, 1.0)))
    assert by_start["angle"][0] == pytest.approx(1.0)


def test_of_several_entries_they_have_an_axis_more() -> None:
    ocp = pendulum(Collocation(2))
    found = ocp.solve()
    bias = found.sensitivity("bias")
    assert bias["angle"].shape == (7, 2)
    for i in range(2):
        expected = differences(ocp, 1e-4, bias=(np.array([0.1, -0.1]), np.eye(2)[i]))
        assert_slopes(bias, expected, (..., i))
    wind = found.sensitivity("wind")
    assert wind["torque"].shape == (6, 7)
    expected = differences(ocp, 1e-4, wind=(np.full((1, 7), 0.2), np.eye(1, 7, 3)))
    assert_slopes(wind, expected, (..., 3))


def test_units_and_names() -> None:
    found = pendulum(Collocation(2)).solve()
    load = found.sensitivity("load")
    assert load.units["torque"] == "N m/kg"
    assert found.sensitivity("bias").units["rate"] == "rad/s"
    assert f"{abs(load['torque']).max():.3g} N m/kg" in str(load)
    assert load["objective"] == load.objective
    with pytest.raises(InputError, match="there is no parameter 'laod'; did you mean 'load'"):
        found.sensitivity("laod")


def test_a_solution_is_taken_where_a_result_is() -> None:
    ocp = pendulum(MultipleShooting())
    found = ocp.solve(load=1.1)
    whole = solution_sensitivity(ocp, found, wrt=["p"])
    same = solution_sensitivity(ocp.program.nlp, found, wrt=["p"])
    place = int(found.program.parameters["load"].where[0])
    column = whole["jac_x_p"][:, place]
    assert column == pytest.approx(same["jac_x_p"][:, place])
    block = found.program.variables["angle"]
    assert block.read(column)[0] == pytest.approx(found.sensitivity("load")["angle"])
    with pytest.raises(InputError, match="result must be what a Solver returned"):
        solution_sensitivity(ocp.program.nlp, {"x": found.x})
