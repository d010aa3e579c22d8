"""A control that acts later: predicted by the model from the controls that are on their way."""

import numpy as np
import pytest
from support.cases.ocps import WITH_STATES, stated
from support.judges.refusals import assert_refused

from casadi_hybrid import InputError
from casadi_hybrid.control import MPC, Model, Plant, simulate

STEPS = 12


def counter():
    model = Model("counter")
    y, growth = model.state("y"), model.parameter("growth", 1.05)
    v = model.control("v", lower=-1, upper=1, guess=0.1)
    goal = model.reference("goal", 0.0)
    model.next(y=growth * y + v + 0.1 * y**2)
    cost = {"sum": (y - goal) ** 2 + 0.1 * v**2, "end": 4 * (y - goal) ** 2}
    return stated(model, duration=4.0, intervals=8, **cost)


def goal(t):
    return 0.5 if t >= 2.4 else 0.0


@pytest.mark.parametrize("delay", [2, 1.0])
def test_delay_is_the_recursion_by_hand(delay):
    ocp = counter()
    mpc = MPC(ocp, delay=delay)
    for k in (*range(STEPS), 0, 1, 2):
        if k == 0:  # also anew
            mpc.reset()
            y, waiting = 0.8, [0.1, 0.1]  # the guess, before anything was sent
        time, ahead = 0.5 * k, y
        for v in waiting:
            ahead = 1.2 * ahead + v + 0.1 * ahead**2
        by_hand = ocp.solve([ahead], time=time + 1.0, goal=goal, growth=1.2)
        step = mpc.step([y], time=time, goal=goal, growth=1.2)
        assert step.status == "solved"
        assert step["v"] == pytest.approx(by_hand["v"][0], abs=1e-6)
        assert step.plan.times[0] == time + 1.0
        y = 1.2 * y + waiting.pop(0) + 0.1 * y**2
        waiting.append(step["v"])


def test_late_loop_is_the_punctual_one_later():
    ocp = counter()
    plant = Plant(ocp.model, 0.5)
    late = simulate(plant, MPC(ocp, delay=3), steps=STEPS + 3, x0=[0.8], delay=3, u0=[-0.3])
    start = late["y"][3]  # until the first control acts simulate applies u0
    assert late.steps[0].plan["y"][0] == pytest.approx(start, abs=1e-6)
    punctual = simulate(plant, MPC(ocp, delay=0), steps=STEPS, x0=[start])
    np.testing.assert_allclose(late["y"][3:], punctual["y"], atol=1e-5)
    blind = simulate(plant, MPC(ocp), steps=STEPS + 3, x0=[0.8], delay=3)
    assert np.abs(blind["y"][-5:]).max() > 10 * np.abs(late["y"][-5:]).max()


@pytest.mark.parametrize("method", WITH_STATES, ids=str)
def test_delay_of_a_fraction_of_a_period(method):
    """x'' = v with v constant in pieces, and a wind that rises, by hand."""
    model, wind = Model("cart"), lambda t: 2 * t
    x, w = model.state("x"), model.state("w")
    v = model.control("v", lower=-1, upper=1)
    model.rates(x=w + model.reference("wind", wind), w=v)
    cost = x**2 + 0.1 * w**2 + 0.1 * v**2
    mpc = MPC(stated(model, integral=cost, duration=2.0, intervals=20, method=method), delay=0.15)

    def moved(at, v, dt):
        return np.array([at[0] + dt * at[1] + dt**2 / 2 * v, at[1] + dt * v])

    at, sent = np.array([1.0, 0.0]), [0.0, 0.0]
    for k in range(5):
        # Of two controls the older acts for half a period, the newer for one.
        ahead = moved(moved(at, sent[-2], 0.05), sent[-1], 0.1)
        ahead[0] += 0.15 * wind(0.1 * k + 0.075)
        step = mpc.step(at)
        np.testing.assert_allclose(step.plan.states[:, 0], ahead, atol=1e-8)
        at = moved(moved(at, sent[-2], 0.05), sent[-1], 0.05)
        at[0] += 0.1 * wind(0.1 * k + 0.05)
        sent.append(step["v"])


def test_failing_predictions_are_statuses(monkeypatch):
    mpc = MPC(counter(), delay=1)  # its default is decided when it is needed
    assert mpc.step([0.5], goal=np.nan).status == "default"
    mpc.step([0.5])
    for numbers, words in (
        ({"growth": 1e300, "x": [1e300]}, "not be predicted: counter comes to a state that is not"),
        ({"goal": lambda t: 1 / 0}, "value of 'goal' raised ZeroDivisionError: division by zero"),
        ({"goal": lambda t: np.nan}, "value of 'goal' has a NaN"),
    ):
        step = mpc.step(**{"x": [0.5], **numbers})
        assert (step.status, words in step.reason) == ("last plan", True)
    with pytest.raises(InputError, match="value of 'goal' has 2 entries"):
        mpc.step([0.5], goal=lambda t: [1, 2])
    monkeypatch.setattr(Plant, "step", lambda *_, **__: 1 / 0)
    assert "division by zero" in mpc.step([0.5]).reason


def test_bad_delay_is_refused():
    assert_refused(
        ({"delay": -1}, "delay must be a whole number"),
        ({"delay": -0.5}, "delay must be a positive number"),
        ({"delay": 8}, "delay is 4 s, the horizon of counter 4 s"),
        ({"delay": 0.7}, "counter is discrete"),
        by=lambda delay: MPC(counter(), delay=delay),
    )
