"""Equilibria of models and motions without feedback, against independent computations."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve
from support.judges.refusals import assert_refused

from casadi_hybrid import InputError
from casadi_hybrid.control import Model, Plant, simulate, steady


def tank():
    model = Model("tank")
    level = model.state("level", lower=0, upper=4, scale=2.0, guess=1.0, unit="m")
    out = model.algebraic("out", guess=1.0)
    valve = model.control("valve", lower=0, upper=2)
    wide = model.parameter("wide", 1.0)
    model.rates(level=valve - out)
    model.equations(outflow=out - wide * ca.sqrt(level + 0.1))
    return model


def reactor():
    model = Model("reactor")
    c, T = model.state("c", lower=0, guess=0.5), model.state("T", scale=100.0, guess=350.0)
    cool = model.control("cool", scale=100.0, guess=300.0)
    k = 7.2e10 * ca.exp(-8750.0 / T)
    model.rates(c=1 - c - k * c, T=350 - T + 209.2 * k * c + 2.09 * (cool - T))
    return model


def test_equilibrium_holds_what_is_fixed():
    model = tank()
    rest = steady(model, level=1.5, parameters={"wide": 0.8})
    assert rest["level"] == 1.5
    assert rest["out"] == pytest.approx(0.8 * np.sqrt(1.6))
    assert rest["valve"] == pytest.approx(rest["out"])
    assert (rest.states, set(rest.controls)) == ({"level": 1.5}, {"valve"})
    plant = Plant(model, 1.0, parameters={"wide": 0.8})
    run = simulate(plant, lambda time, x: list(rest.controls.values()), steps=3, x0=rest.states)
    np.testing.assert_allclose(run["level"], 1.5, atol=1e-7)


def test_equilibria_agree_with_a_root_finder():
    rest = steady(reactor(), T=350.0)
    k = 7.2e10 * np.exp(-8750.0 / 350.0)
    cool = 350.0 - 209.2 * k / (1 + k) / 2.09
    assert rest["c"] == pytest.approx(1 / (1 + k), abs=1e-8)
    assert rest["cool"] == pytest.approx(cool, abs=1e-5)

    def rates(z):
        k = 7.2e10 * np.exp(-8750.0 / z[1])
        return [1 - z[0] - k * z[0], 350 - z[1] + 209.2 * k * z[0] + 2.09 * (300.0 - z[1])]

    for begin in ((0.9, 320.0), (0.1, 400.0)):  # two of its three
        found = fsolve(rates, begin, xtol=1e-12)
        near = steady(reactor(), cool=300.0, guess={"c": begin[0], "T": begin[1]})
        np.testing.assert_allclose([near["c"], near["T"]], found, rtol=1e-6)


def test_equilibrium_nearest_to_the_guess():
    model = Model("plane")
    p = model.state("p", 3)
    model.next(p=p + ca.vertcat(p[0] + p[1] - 1.0, 0, 0))
    rest = steady(model, guess={"p": [1.0, 1.0, 7.0]})
    np.testing.assert_allclose(rest["p"], [0.5, 0.5, 7.0], atol=1e-7)
    fixed = steady(model, p=[0.25, np.nan, 3.0])  # by entries
    np.testing.assert_allclose(fixed["p"], [0.25, 0.75, 3.0], atol=1e-7)


def test_bad_arguments_are_refused_by_name():
    assert_refused(
        ({"levl": 1.0}, "no quantity 'levl'; did you mean 'level'"),
        ({"guess": {"out": [1, 2]}}, "guess of 'out' has 2 entries"),
        ({"parameters": {"wid": 1}}, "no parameter 'wid'"),
        ({"level": 4.0, "parameters": {"wide": 5.0}}, "no steady state of tank was found"),
        by=lambda **bad: steady(tank(), **bad),
    )


@pytest.mark.parametrize("size", [1.0, 1e-11])
def test_motion_follows_an_integrator_and_parameters(size):
    model = Model("oscillator")
    x, v = model.state("x", scale=size), model.state("v", scale=size)
    u, k = model.control("u"), model.parameter("k", 1.0)
    model.rates(x=v, v=size * u - k * x - 0.1 * v * (x / size) ** 2)
    stiff, controls = {"k": lambda time: 2.0 if time < 0.5 else 3.0}, np.array([1.0, -1.0, 0.5])
    found = Plant(model, 0.3, parameters=stiff).motion({"x": size, "v": 0.0}, controls)
    assert found.shape == (2, 4)
    state = np.array([1.0, 0.0])
    for j, u in enumerate(controls):
        k = 2.0 if 0.3 * j < 0.5 else 3.0

        def rates(_, z, u=u, k=k):
            return [z[1], u - k * z[0] - 0.1 * z[1] * z[0] ** 2]

        state = solve_ivp(rates, (0, 0.3), state, rtol=1e-10, atol=1e-12).y[:, -1]
        np.testing.assert_allclose(found[:, j + 1] / size, state, atol=1e-7)
    with pytest.raises(InputError, match="u has 2 entries"):
        Plant(model, 0.3).motion([1, 0], np.ones((2, 4)))


def test_reference_may_have_several_entries():
    model = Model("arm")
    x, u = model.state("x", 2), model.control("u", 2)
    gain, goal = model.parameter("gain", 2.0), model.reference("goal", size=2)
    model.rates(x=gain * u - x - goal)
    assert np.allclose(steady(model, x=[1, 1])["u"], 0.5)


def test_limits_follow_parameters():
    model = Model("cart")
    v, top = model.state("v", unit="m/s", scale=10.0), model.parameter("top", 1.0)
    model.rates(v=model.control("u", upper=top, unit="N") - 2 + 0 * v)
    assert steady(model, v=0, parameters={"top": 3.0})["u"] == pytest.approx(2.0)
    with pytest.raises(InputError, match="rate of v = 0 m/s/s\n  u ≤ 1 N"):
        steady(model, v=0)
