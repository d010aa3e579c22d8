"""Solutions: values between the grid points, errors, active limits, files, figures."""

import copy
import pickle
import sys
from contextlib import suppress
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.cases.nlp import PEER
from support.cases.ocps import METHODS, double_integrator, rest_to_rest, stated
from support.judges.refusals import assert_refused

from casadi_hybrid.control import (
    Collocation,
    Model,
    MultipleShooting,
    RungeKutta,
    Saved,
    Scenarios,
    SingleShooting,
    Soft,
    Solution,
)
from casadi_hybrid.control.solution.ocp import solved
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.verify import verify

MESH = [0.0, 0.1, 0.3, 0.35, 0.5, 0.7, 1.0]


def swing(method, *, linear=False, low=-2, g=9.81, weight=1):
    model = Model("swing")
    angle = model.state("angle", scale=2.0, unit="rad", lower=low)
    rate = model.state("rate", unit="rad/s")
    torque = model.control("torque", lower=-0.9, upper=0.9, unit="N m", linear=linear)
    rope = model.parameter("rope", 1.0)
    wind = model.reference("wind", lambda t: 0.3 * np.sin(3 * t))
    model.rates(angle=rate, rate=-g / rope * ca.sin(angle) + torque + wind * model.time)
    model.output("height", -rope * ca.cos(angle), unit="m")
    options = {"duration": 1.2, "intervals": 6, "method": method, "mesh": MESH}
    cost = weight * (torque**2 + angle**2)
    ocp = stated(model, {"angle": 1, "rate": 0}, integral=cost, **options)
    ocp.path("both", angle + rate, lower=-2.7)
    return ocp


@pytest.fixture(scope="module")
def solutions():
    return {name: swing(method).solve(time=0.5) for name, method in METHODS.items()}


@pytest.fixture(scope="module")
def swung(solutions):
    return solutions["Radau"]


@pytest.mark.parametrize("name", METHODS)
def test_values_in_between_meet_the_grid_points(solutions, name):
    s = solutions[name]
    assert s.success
    there, left = s.at(s.times), s.at(s.times[1:] - 1e-9)
    for quantity in ("angle", "rate", "wind", "rope", "height"):
        assert there[quantity] == pytest.approx(s[quantity], abs=1e-7), quantity
    for state in ("angle", "rate"):
        assert left[state] == pytest.approx(s[state][1:], abs=1e-6)
    assert there["torque"].tolist() == [*s["torque"], s["torque"][-1]]
    assert left["torque"].tolist() == s["torque"].tolist()
    samples = s.sample(4)
    assert samples.times == pytest.approx(np.unique(samples.times))
    assert (samples.times.size, *samples.times[[0, -1]]) == pytest.approx((25, 0.5, 1.7))
    assert set(samples) == {"angle", "rate", "torque", "rope", "wind", "height"}
    assert samples["height"] == pytest.approx(-np.cos(samples["angle"]))


@pytest.mark.parametrize("name", METHODS)
def test_residual_is_slope_minus_rate(solutions, name):
    s = solutions[name]
    residual = s.residual(4)  # no kink of a scheme's own steps is at these times
    t, h = residual.times, 1e-5
    here, up, down = s.at(t), s.at(t + h), s.at(t - h)
    slope = (up["rate"] - down["rate"]) / (2 * h)
    rate = -9.81 * np.sin(here["angle"]) + here["torque"] + here["wind"] * t
    assert residual["rate"] == pytest.approx(slope - rate, abs=2e-5)
    slope = (up["angle"] - down["angle"]) / (2 * h)
    assert residual["angle"] == pytest.approx((slope - here["rate"]) / 2.0, abs=2e-5)


def independent(s, k, at):
    torque, wind = s["torque"], s["wind"][k]

    def rates(t, y):
        u = torque[k] if torque.size == 6 else np.interp(t, s.times, torque)
        return [y[1], -9.81 * np.sin(y[0]) + u + wind * t]

    start, span = [s["angle"][k], s["rate"][k]], s.times[[k, k + 1]]
    return solve_ivp(rates, span, start, "Radau", at, rtol=1e-9, atol=1e-11).y


@pytest.mark.parametrize("name", ["multiple shooting", "Radau", "Radau of degree 1", "Legendre"])
def test_error_is_the_distance_from_the_motion(solutions, name):
    s = solutions[name]
    error = s.error(4)
    for k in range(6):
        t = s.times[k] + (np.append(np.arange(4) + 0.5, 4) / 4) * (s.times[k + 1] - s.times[k])
        gap = abs(independent(s, k, t) - np.vstack([s.at(t)[q] for q in ("angle", "rate")]))
        assert error["angle"][k] == pytest.approx(gap[0].max(), rel=1e-3, abs=1e-7)
        assert error["rate"][k] == pytest.approx(gap[1].max(), rel=1e-3, abs=1e-7)
    assert error.largest == pytest.approx(max(error["angle"].max() / 2, error["rate"].max()))
    assert error.by_interval.shape == (6,)


def test_errors_of_all_integrators_agree(swung):
    by_cvodes = swung.error(integrator="cvodes").by_interval
    assert by_cvodes == pytest.approx(swung.error().by_interval, rel=1e-4, abs=1e-8)
    exact = swing(MultipleShooting(RungeKutta(25))).solve()
    assert exact.error().largest < 1e-7
    assert exact.error(whole=True).largest < 1e-6
    assert swung.error(whole=True).ends[:, 0] == pytest.approx(swung.error().ends[:, 0])
    # x' = x² from 0.9 ends before t = 1.2; one coarse step does not notice.
    model = Model("blow up")
    x = model.state("x")
    model.rates(x=x**2)
    blown_up = stated(model, {"x": 0.9}, end=0, duration=2.0, intervals=1).solve()
    assert np.isinf(blown_up.error().largest)


def test_solution_warns_of_coarse_steps():
    model = Model("tank")
    jacket = model.state("jacket", unit="K", scale=30.0, guess=300.0)
    heat = model.control("heat", lower=280, upper=360, guess=300.0)
    model.rates(jacket=(heat - jacket) / 0.2)
    for steps in (1, 20):
        options = {"duration": 12.0, "intervals": 12, "method": MultipleShooting(RungeKutta(steps))}
        ocp = stated(model, {"jacket": 300}, integral=((jacket - 320) / 10) ** 2, **options)
        assert ("half the step" in repr(ocp.solve())) is (steps == 1)


def test_linear_control_runs_through_all_steps():
    s = swing(MultipleShooting(RungeKutta(12)), linear=True).solve()
    assert abs(np.diff(s["torque"])).max() > 0.1
    for k in range(6):
        t = np.linspace(s.times[k], s.times[k + 1], 9)[:-1]
        at = s.at(t)
        assert np.vstack((at["angle"], at["rate"])) == pytest.approx(independent(s, k, t), abs=1e-5)
    t = 0.25 * s.times[1] + 0.75 * s.times[2]
    assert s.at(t)["torque"] == pytest.approx(np.interp(t, s.times, s["torque"]))
    assert isinstance(s.at(t)["torque"], float)
    assert s.at([t])["torque"].shape == (1,)


def test_discrete_values_hold_until_the_next_step():
    model = Model("counter")
    x, u = model.state("x", 2), model.control("u")
    model.next(x=ca.vertcat(x[1], u))
    cost = ca.sumsqr(x) + u**2
    s = stated(model, {"x": [1, 2]}, sum=cost, duration=3.0, intervals=3).solve()
    assert s.at([0.0, 0.9, 1.0, 3.0])["x"] == pytest.approx(s["x"][:, [0, 0, 1, 3]])
    for call in (s.residual, s.error):
        with pytest.raises(InputError, match="counter is discrete"):
            call()
    assert [ax.get_ylabel() for ax in s.plot().axes] == ["x", "u"]


@pytest.mark.parametrize("method", [Collocation(), Collocation(1), Collocation(2, "legendre")])
@pytest.mark.parametrize("asked", [False, True])
def test_algebraic_states_satisfy_their_equation_in_between(method, asked):
    model = Model("plant")
    x, z, u = model.state("x"), model.algebraic("z"), model.control("u")
    model.rates(x=-z)
    model.equations(balance=z - x**2 - u)
    ocp = stated(model, {"x": 1}, integral=u**2 + x**2, intervals=12, method=method)
    model.output("twice", 2 * z)
    if asked:
        ocp.path("limit", z, upper=3)
    s = ocp.solve()
    fine = s.sample(5)
    far = {1: 0.2, 2: 0.01, 3: 1e-3}[method.degree]
    assert fine["z"] == pytest.approx(fine["x"] ** 2 + fine["u"], abs=far)
    if method.degree > 1:
        assert s.error(2).largest < 1e-3
    assert s.error(2).largest > 1e-12
    assert s["z"][:-1] == pytest.approx(s["x"][:-1] ** 2 + s["u"], abs=far)
    assert s["z"][:-1] == pytest.approx(s.at(s.times[:-1])["z"], abs=1e-12)
    assert s["twice"] == pytest.approx(2 * s["z"], abs=1e-12)
    more, less = (ocp.solve([1 + e], guess=s)["twice"] for e in (1e-5, -1e-5))
    slope = s.sensitivity("initial x")
    for found in (2 * slope["z"], slope["twice"]):
        assert found == pytest.approx((more - less) / 2e-5, abs=1e-4)


def test_soft_limits_are_a_named_cost():
    ocp = swing(MultipleShooting())
    ocp.path("low", ocp.model.symbol("angle"), upper=0.5, soft=Soft(0.02, 0.03))
    found = ocp.solve(time=0.5)
    excess = np.maximum(found["angle"] - 0.5, 0)
    assert found.costs["soft limits"] == pytest.approx(np.sum(0.02 * excess + 0.03 * excess**2))
    assert ", soft limits " in str(found)
    assert found.objective == pytest.approx(ocp.solver.result.f, rel=1e-12)
    more, less = (ocp.solve(time=0.5, guess=found, rope=1 + e).objective for e in (1e-5, -1e-5))
    assert found.sensitivity("rope").objective == pytest.approx((more - less) / 2e-5, rel=1e-5)
    both = Scenarios(ocp, {"a": {}, "b": {"rope": 1.2}}).solve(time=0.5)
    assert both.objective == pytest.approx((both["a"].objective + both["b"].objective) / 2)


def test_bad_arguments_of_a_solution_are_refused(swung):
    assert_refused(
        (lambda: swung.at([0.0]), "times must be from 0.5 to 1.7"),
        (lambda: swung.sample(0), "n must be a whole number, at least 1, got 0"),
        (lambda: swung.error(integrator="rk"), "integrator must be one of 'DOP853'"),
        (lambda: swung.active(side="left"), "side must be"),
        (lambda: swung.plot(["speed"]), "there is no quantity 'speed'"),
        (lambda: swung.plot("angle"), "names must be a list of names, got the text 'angle'"),
        (lambda: swung.sample()["heigt"], "no trajectory 'heigt'; did you mean 'height'"),
    )


def test_active_limits_and_violations(swung):
    active, sides = swung.active(), [swung.active(side=side) for side in ("upper", "lower")]
    assert set(active) == {"angle", "angle inside", "torque", "both", "both inside"}
    upper, lower = (side["torque"] for side in sides)
    assert (upper | lower).tolist() == active["torque"].tolist()
    assert upper[swung["torque"] > 0.8999].all()
    beyond, fine = swung.violation(20)["both"], swung.sample(200)
    excess = np.maximum(-2.7 - (fine["angle"] + fine["rate"])[:-1], 0)
    assert beyond == pytest.approx(excess.reshape(6, 200).max(axis=1), rel=0.05, abs=1e-6)
    assert beyond.max() > 1e-4


def test_active_limits_agree_with_verify_and_plot():
    ocp = swing(MultipleShooting())
    ocp.path("height", ocp.model.symbol("height"), upper=0.7, unit="m")  # an output's name
    program = ocp.numbers(time=0.5)
    loose = ca.nlpsol("loose", "ipopt", dict(program.nlp), {**PEER, "ipopt.tol": 1e-4})
    found = ocp.solution(program, loose(**program.arguments), loose.stats())
    active = {name: np.flatnonzero(on).tolist() for name, on in found.active().items() if on.any()}
    assert active == {"torque": [2, 3], "both": [4]}
    held = verify(ocp, found, tol=1e-4, ipopt=False).active
    assert held.names_of(held.strong) == ("torque[2] (in N m)", "torque[3] (in N m)", "both[4]")
    axes = found.plot(["torque", "both", "height"], label="time (s)").axes
    assert [ax.get_ylabel() for ax in axes] == ["torque (N m)", "both", "height (m)"]
    assert axes[-1].get_xlabel() == "time (s)"
    rings, limits = [], []
    for ax in axes:
        lines = [line for line in ax.get_lines() if len(line.get_xdata())]
        rings.append(sum(len(line.get_xdata()) for line in lines if line.get_marker() == "o"))
        level = [li for li in lines if len(li.get_xdata()) == 2 and li.get_linestyle() == "--"]
        limits.append(sorted(line.get_ydata()[0] for line in level))
    assert (rings, limits) == ([2, 1, 0], [[-0.9, 0.9], [-2.7], [0.7]])


def test_solution_is_saved_and_loaded(swung, tmp_path):
    path = swung.save(tmp_path / "results" / "swing")
    assert path.name == "swing.npz"
    again, light = Solution.load(path, swing(Collocation())), Saved.read(path)
    assert (again.success, again.costs) == (swung.success, swung.costs)
    for name in swung.values:
        assert np.array_equal(again[name], swung[name]), name
    assert again.multipliers["both"].tolist() == swung.multipliers["both"].tolist()
    assert again.times.tolist() == swung.times.tolist()
    assert again.ocp.solve(time=0.5, guess=again).iterations <= swung.iterations
    assert light["height"].tolist() == swung["height"].tolist()
    assert light.units["torque"] == "N m"
    assert light.stats["return_status"] == swung.stats["return_status"]


def test_table_for_pandas(swung, monkeypatch):
    stand_in = SimpleNamespace(DataFrame=lambda columns, index: columns, Index=lambda *_, **__: 0)
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    table, fine = swung.to_pandas(), swung.to_pandas(3)
    assert table["angle"] == pytest.approx(swung["angle"])
    assert set(table) == set(fine) == {"angle", "rate", "torque", "rope", "wind", "height"}
    assert fine["angle"].shape == (19,)


def test_solution_of_another_problem_is_refused(swung, tmp_path):
    path = swung.save(tmp_path / "swing")
    cheap = swing(Collocation(), weight=1e-7).solve().save(tmp_path / "cheap")

    def loading(file, **other):
        return lambda: Solution.load(file, swing(**{"method": Collocation(), **other}))

    assert_refused(
        (loading(path, method=MultipleShooting()), "not laid out as"),
        (loading(path, low=-1.9), r"the lower limit of angle\[0\]"),
        (loading(path, g=9.0), r"dynamics of rate\[5,1\] is off by 0.2"),
        (loading(cheap, weight=3e-7), "the objective is"),
    )
    path.write_text("no archive")
    with pytest.raises(InputError, match="holds no saved solution"):
        Saved.read(path)


def test_stopped_solution_is_loaded(tmp_path):
    ocp = swing(Collocation())
    ocp.options["max_iter"] = 1
    program = ocp.numbers().with_limits("torque", *np.c_[-0.5, 0.5].T)
    stopped = ocp.solution(program, *solved(ocp.solver, program, {}))
    again = Solution.load(stopped.save(tmp_path / "early"), swing(Collocation()))
    assert (again.success, again.violation().largest) == (False, stopped.violation().largest)


CAPS = [
    (MultipleShooting(inner=2), {}),
    (MultipleShooting(), {"at": "ends"}),
    (MultipleShooting(inner=1), {"soft": 1e3}),
    (SingleShooting(), {}),
    (Collocation(2, inner=1), {}),
]


@pytest.mark.parametrize(("method", "more"), CAPS)
def test_multipliers_by_name_are_slopes_of_the_objective(method, more):
    options = {"duration": 2.0, "intervals": 8, "method": method}

    def solve(cap, fast):
        ocp, x, v, u = double_integrator(v={"upper": fast}, **options)
        ocp.initial(x=0, v=0)
        ocp.path("cap", v + 0.3 * u, upper=cap, **more)
        ocp.minimize("way", integral=u**2, end=40 * (x - 2) ** 2)
        return ocp.solve()

    found, d, limits = solve(1.2, 1.1), 1e-3, np.array([1.2, 1.1])
    for name, step in (("cap", [d, 0]), ("v", [0, d])):
        slope = (solve(*limits + step).objective - solve(*limits - step).objective) / (2 * d)
        assert slope < -0.1
        assert -found.multipliers[name].sum() == pytest.approx(slope, rel=0.02)


@pytest.mark.parametrize("method", [Collocation(4), SingleShooting(RungeKutta(2))], ids=str)
def test_free_parameter_is_identified_with_slopes(method):
    """x' = −k x through x(1) = e^−k for the mean k of two, so that dk/dbias = 1/2 each."""
    model = Model("decay")
    x, k, bias = model.state("x"), model.parameter("k", 1.0), model.parameter("bias", [1.5, 1.9])
    model.rates(x=-k * x)
    misfit = (ca.log(x) + (bias[0] + bias[1]) / 2) ** 2
    ocp = stated(model, {"x": 1}, end=misfit, intervals=5, method=method)
    ocp.free("k", lower=0, upper=5)  # begins as declared
    assert ocp.program.unpack(ocp.program.x0)["k"] == 1.0
    found = ocp.solve()
    assert found["k"] == pytest.approx(1.7, abs=1e-4)
    assert found["bias"].tolist() == [1.5, 1.9]
    assert found.sensitivity("bias")["k"] == pytest.approx([0.5, 0.5], abs=1e-4)
    with pytest.raises(InputError, match="the solver chooses 'k'"):
        found.sensitivity("k")


def test_copy_leaves_the_first_alone(swung):
    ocp = swing(Collocation())
    other, model = copy.copy(ocp), copy.copy(ocp.model)
    other.minimize("time", end=other.duration)
    model.parameter("more")
    assert [cost.name for cost in ocp.costs] == ["cost"]
    assert "more" not in ocp.given
    assert copy.deepcopy(swung)["angle"].tolist() == swung["angle"].tolist()
    plain = rest_to_rest(MultipleShooting())
    with ca.global_pickle_context():
        written = pickle.dumps(plain)
    with ca.global_unpickle_context():
        assert pickle.loads(written).solve().objective == plain.solve().objective


@pytest.mark.parametrize("seed", range(20))
def test_damaged_file_is_an_input_error(swung, tmp_path, seed):
    draw, path = np.random.default_rng(seed), swung.save(tmp_path / "swing")
    whole = bytearray(path.read_bytes())
    at = int(draw.integers(len(whole)))
    whole[at : at + 30] = draw.bytes(30) if seed % 2 else b""
    path.write_bytes(whole)
    with suppress(InputError):  # else it is where nothing is read
        assert Solution.load(path, swing(Collocation())).x.tolist() == swung.x.tolist()
