"""What is read from a solution: between the grid points, errors, active limits, files, figures."""

import copy
import pickle
import sys
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp
from support.cases.nlp import PEER

from casadi_hybrid.control import (
    Collocation,
    Integrator,
    Model,
    MultipleShooting,
    OptimalControl,
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

METHODS = {
    "multiple shooting": MultipleShooting(),
    "multiple shooting, three steps": MultipleShooting(RungeKutta(3)),
    "single shooting": SingleShooting(RungeKutta(2)),
    "cvodes": MultipleShooting(Integrator()),
    "Radau": Collocation(),
    "Radau of degree 1": Collocation(1),
    "Legendre": Collocation(2, "legendre"),
}
MESH = [0.0, 0.1, 0.3, 0.35, 0.5, 0.7, 1.0]


def swing(
    method: Any, *, linear: bool = False, length: float = 1, low: float = -2, g: float = 9.81,
    price: float = 1,
) -> OptimalControl:  # fmt: skip
    model = Model("swing")
    angle = model.state("angle", scale=2.0, unit="rad", lower=low)
    rate = model.state("rate", unit="rad/s")
    torque = model.control("torque", lower=-0.9, upper=0.9, unit="N m", linear=linear)
    rope = model.parameter("rope", length)
    wind = model.reference("wind", lambda t: 0.3 * np.sin(3 * t))
    model.rates(angle=rate, rate=-g / rope * ca.sin(angle) + torque + wind * model.time)
    model.output("height", -rope * ca.cos(angle), unit="m")
    ocp = OptimalControl(model, duration=1.2, intervals=6, method=method, mesh=MESH)
    ocp.initial(angle=1, rate=0)
    ocp.minimize("effort", integral=price * (torque**2 + angle**2))
    ocp.path("both", angle + rate, lower=-2.7)
    return ocp


@pytest.fixture(scope="module")
def solutions() -> dict[str, Solution]:
    """Solved once; every test reads."""
    return {name: swing(method).solve(time=0.5) for name, method in METHODS.items()}


@pytest.fixture(scope="module")
def swung(solutions: dict[str, Solution]) -> Solution:
    return solutions["Radau"]


@pytest.mark.parametrize("name", METHODS)
def test_in_between_meets_the_grid_points(solutions: dict[str, Solution], name: str) -> None:
    s = solutions[name]
    assert s.success
    there = s.at(s.times)
    for quantity in ("angle", "rate", "wind", "rope", "height"):
        assert there[quantity] == pytest.approx(s[quantity], abs=1e-7), quantity
    assert there["torque"][:-1].tolist() == s["torque"].tolist()
    assert there["torque"][-1] == s["torque"][-1]
    # From the left as well: a little before a grid point a state is what it is there.
    left = s.at(s.times[1:] - 1e-9)
    assert left["angle"] == pytest.approx(s["angle"][1:], abs=1e-6)
    assert left["rate"] == pytest.approx(s["rate"][1:], abs=1e-6)
    assert left["torque"].tolist() == s["torque"].tolist()


@pytest.mark.parametrize("name", METHODS)
def test_the_slope_in_between_is_that_of_the_values(solutions, name):
    """Residual + rate is dx/dt, here by differences."""
    s = solutions[name]
    residual = s.residual(4)  # no kink of a scheme's own steps is at these times
    t, h = residual.times, 1e-5
    here, up, down = s.at(t), s.at(t + h), s.at(t - h)
    slope = (up["rate"] - down["rate"]) / (2 * h)
    rate = -9.81 * np.sin(here["angle"]) + here["torque"] + here["wind"] * t
    assert residual["rate"] == pytest.approx(slope - rate, abs=2e-5)
    slope = (up["angle"] - down["angle"]) / (2 * h)
    assert residual["angle"] == pytest.approx((slope - here["rate"]) / 2.0, abs=2e-5)


def test_the_residual_vanishes_at_the_points_of_a_collocation(swung: Solution) -> None:
    taus = np.array(ca.collocation_points(3, "radau"))
    k, s = np.repeat(np.arange(6), 3), np.tile(taus, 6)
    s[-1] -= 1e-12  # at the very end the reference has a value of its own
    at = swung.dense.columns(k, s)
    assert swung.dense.interpolant.slopes(k, s) == pytest.approx(swung.dense.rates(at), abs=1e-6)
    assert abs(swung.residual()["rate"]).max() > 1e-3


def independent(s: Solution, k: int, at: np.ndarray) -> np.ndarray:
    """The motion in one interval by another integrator, from the model written again."""
    torque, wind = s["torque"], s["wind"][k]

    def rates(t: float, y: np.ndarray) -> list[float]:
        u = torque[k] if torque.size == 6 else np.interp(t, s.times, torque)
        return [y[1], -9.81 * np.sin(y[0]) + u + wind * t]

    start = [s["angle"][k], s["rate"][k]]
    span = (s.times[k], s.times[k + 1])
    return np.asarray(solve_ivp(rates, span, start, "Radau", at, rtol=1e-9, atol=1e-11).y)


@pytest.mark.parametrize("name", ["multiple shooting", "Radau", "Radau of degree 1", "Legendre"])
def test_the_error_is_the_distance_from_the_motion(solutions, name):
    s = solutions[name]
    error = s.error(4)
    for k in range(6):
        t = s.times[k] + (np.append(np.arange(4) + 0.5, 4) / 4) * (s.times[k + 1] - s.times[k])
        gap = abs(independent(s, k, t) - np.vstack([s.at(t)[q] for q in ("angle", "rate")]))
        assert error["angle"][k] == pytest.approx(gap[0].max(), rel=1e-3, abs=1e-7)
        assert error["rate"][k] == pytest.approx(gap[1].max(), rel=1e-3, abs=1e-7)
    assert error.largest == pytest.approx(max(error["angle"].max() / 2, error["rate"].max()))
    assert error.by_interval.shape == (6,)


def test_errors_of_all_integrators_agree(swung: Solution) -> None:
    assert swung.error(integrator="cvodes").by_interval == pytest.approx(
        swung.error().by_interval, rel=1e-4, abs=1e-8)  # fmt: skip
    exact = swing(MultipleShooting(RungeKutta(25))).solve()
    assert exact.error().largest < 1e-7
    assert exact.error(whole=True).largest < 1e-6
    assert swung.error(whole=True).ends[:, 0] == pytest.approx(swung.error().ends[:, 0])


def test_a_motion_that_does_not_exist_has_an_infinite_error() -> None:
    """x' = x² from 0.9 ends before t = 1.2; one coarse step does not notice."""
    model = Model("blow up")
    x = model.state("x")
    model.rates(x=x**2)
    ocp = OptimalControl(model, duration=2.0, intervals=1)
    ocp.initial(x=0.9)
    error = ocp.solve().error()
    assert np.isinf(error.largest)


def test_a_solution_says_that_its_steps_are_coarse() -> None:
    model = Model("tank")
    jacket = model.state("jacket", unit="K", scale=30.0, guess=300.0)
    heat = model.control("heat", lower=280, upper=360, guess=300.0)
    model.rates(jacket=(heat - jacket) / 0.2)
    for steps in (1, 20):
        ocp = OptimalControl(model, duration=12.0, intervals=12,
                             method=MultipleShooting(RungeKutta(steps)))  # fmt: skip
        ocp.initial(jacket=300)
        ocp.minimize("error", integral=((jacket - 320) / 10) ** 2)
        said = "half the step of Runge and Kutta ends elsewhere, largest error"
        assert (said in repr(ocp.solve())) is (steps == 1)


def test_between_the_points_a_control_that_runs_linearly_does_so_in_every_step_of_the_scheme():
    s = swing(MultipleShooting(RungeKutta(12)), linear=True).solve()
    assert abs(np.diff(s["torque"])).max() > 0.1
    for k in range(6):
        t = np.linspace(s.times[k], s.times[k + 1], 9)[:-1]
        angle, rate = independent(s, k, t)
        assert s.at(t)["angle"] == pytest.approx(angle, abs=1e-5)
        assert s.at(t)["rate"] == pytest.approx(rate, abs=1e-5)


def test_linear_controls_and_single_times() -> None:
    s = swing(Collocation(), linear=True).solve()
    t = 0.25 * s.times[1] + 0.75 * s.times[2]
    expected = 0.25 * s["torque"][1] + 0.75 * s["torque"][2]
    assert s.at(t)["torque"] == pytest.approx(expected)
    assert isinstance(s.at(t)["torque"], float)
    assert s.at([t])["torque"].shape == (1,)
    assert s["torque"].shape == (7,)


def test_samples_are_a_mapping(swung: Solution) -> None:
    samples = swung.sample(4)
    assert samples.times.shape == (25,)
    assert samples.times[[0, -1]] == pytest.approx([0.5, 1.7])
    assert set(samples) == {"angle", "rate", "torque", "rope", "wind", "height"}
    assert len(samples) == 6
    assert samples["height"] == pytest.approx(-np.cos(samples["angle"]))


def test_a_discrete_model_has_the_value_of_the_step_before() -> None:
    model = Model("counter")
    x, u = model.state("x", 2), model.control("u")
    model.next(x=ca.vertcat(x[1], u))
    ocp = OptimalControl(model, duration=3.0, intervals=3)
    ocp.initial(x=[1, 2])
    ocp.minimize("sum", sum=ca.sumsqr(x) + u**2)
    s = ocp.solve()
    assert s.at([0.0, 0.9, 1.0, 3.0])["x"] == pytest.approx(s["x"][:, [0, 0, 1, 3]])
    for call in (s.residual, s.error):
        with pytest.raises(InputError, match="counter is discrete"):
            call()
    assert isinstance(s.plot(), Figure)


@pytest.mark.parametrize("method", [Collocation(), Collocation(1), Collocation(2, "legendre")],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("asked", [False, True])
def test_algebraic_states_in_between(method: Any, asked: bool) -> None:
    """z = x² + u, whether or not it is an unknown at the grid points."""
    model = Model("plant")
    x, z, u = model.state("x"), model.algebraic("z"), model.control("u")
    model.rates(x=-z)
    model.equations(balance=z - x**2 - u)
    ocp = OptimalControl(model, duration=1.0, intervals=12, method=method)
    model.output("twice", 2 * z)
    ocp.initial(x=1)
    ocp.minimize("effort", integral=u**2 + x**2)
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


@pytest.mark.parametrize("inner", [[], [1 / 3, 2 / 3]])
def test_limits_of_algebraic_states_are_ringed_where_they_hold(inner: list[float]) -> None:
    """z = 2 u is at its limit until x is at its own; u is held."""
    model, method = Model("filling"), Collocation(inner=len(inner))
    x, z = model.state("x", upper=1), model.algebraic("z", upper=3)
    model.rates(x=z)
    model.equations(balance=z - 2 * model.control("u", lower=0))
    ocp = OptimalControl(model, duration=1.0, intervals=6, method=method)
    ocp.initial(x=0)
    ocp.minimize("empty", integral=(2 - x) ** 2)
    inside = [*method.coefficients[0], *inner]
    wanted = [{(k, s) for k in range(2) for s in inside},
              {(k, s) for k in range(2, 6) for s in (0.0, *inside, 1.0)}]  # fmt: skip
    for found in (ocp.solve(), Scenarios(ocp, {"a": {}, "b": {}}).solve()):
        for pairs, ax in zip(wanted, found.plot(["z", "x"]).axes, strict=True):
            rings = [line.get_xdata() for line in ax.get_lines() if line.get_marker() == "o"]
            at = np.unique(np.concatenate(rings).round(6))
            assert at == pytest.approx(np.unique([round((k + s) / 6, 6) for k, s in pairs]))


def test_the_price_of_soft_limits_is_a_cost_with_a_name() -> None:
    """All costs together are f of the program, of scenarios too, and change as its slope says."""
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


def test_what_is_refused(swung: Solution) -> None:
    for call, words in (
        (lambda: swung.at([0.0]), "times must be from 0.5 to 1.7"),
        (lambda: swung.sample(0), "n must be a whole number, at least 1, got 0"),
        (lambda: swung.error(integrator="rk"), "integrator must be one of 'DOP853'"),
        (lambda: swung.active(side="left"), "side must be"),
        (lambda: swung.plot(["speed"]), "there is no quantity 'speed'"),
        (lambda: swung.plot("angle"), "names must be a list of names, got the text 'angle'"),
        (lambda: swung.sample()["heigt"], "no trajectory 'heigt'; did you mean 'height'"),
        (lambda: swung["speed"], "there is no trajectory 'speed'"),
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_active_limits_and_violations(swung: Solution) -> None:
    active = swung.active()
    assert set(active) == {"angle", "angle inside", "torque", "both", "both inside"}
    assert active["torque"].dtype == bool
    upper, lower = swung.active(side="upper")["torque"], swung.active(side="lower")["torque"]
    assert (upper | lower).tolist() == active["torque"].tolist()
    assert upper[swung["torque"] > 0.8999].all()
    beyond = swung.violation(20)
    fine = swung.sample(200)
    k = np.minimum(np.arange(1200) // 200, 5)
    excess = np.maximum(-2.7 - (fine["angle"] + fine["rate"])[:-1], 0)
    for i in range(6):
        assert beyond["both"][i] == pytest.approx(excess[k == i].max(), rel=0.05, abs=1e-6)
    assert beyond["both"].max() > 1e-4


def test_limits_are_active_and_ringed_where_verify_says_so() -> None:
    """Of an interior-point solution that stays 2e-4 off its limits; each entry has its colour."""
    ocp = swing(MultipleShooting())
    pair = ca.vertcat(ocp.model.symbol("angle"), ocp.model.symbol("rate"))
    ocp.path("pair", pair, lower=-9, upper=[8, 9])
    ocp.path("height", ocp.model.symbol("height"), upper=0.7, unit="m")  # an output's name
    program = ocp.numbers(time=0.5)
    loose = ca.nlpsol("loose", "ipopt", dict(program.nlp), {**PEER, "ipopt.tol": 1e-4})
    found = ocp.solution(program, loose(**program.arguments), loose.stats())
    active = {name: np.flatnonzero(on).tolist() for name, on in found.active().items() if on.any()}
    assert active == {"torque": [2, 3], "both": [4]}
    held = verify(ocp, found, tol=1e-4, ipopt=False).active
    assert held.names_of(held.strong) == ("torque[2] (in N m)", "torque[3] (in N m)", "both[4]")
    fig = found.plot(["torque", "both", "pair", "height"], label="time (s)")
    assert [ax.get_ylabel() for ax in fig.axes] == ["torque (N m)", "both", "pair", "height (m)"]
    assert fig.axes[-1].get_xlabel() == "time (s)"
    assert [text.get_text() for text in fig.legends[0].get_texts()] == [
        "between grid points", "grid points", "limit", "limit active"]  # fmt: skip
    drawn = [[li for li in ax.get_lines() if len(li.get_xdata())] for ax in fig.axes]
    rings = [sum(len(li.get_xdata()) for li in of if li.get_marker() == "o") for of in drawn]
    assert rings == [2, 1, 0, 0]
    limits = [{li.get_ydata()[0]: li.get_color() for li in of if len(li.get_xdata()) == 2
               and li.get_linestyle() == "--"} for of in drawn]  # fmt: skip
    assert [sorted(of) for of in limits] == [[-0.9, 0.9], [-2.7], [-9, 8, 9], [0.7]]
    colours = [limits[0][0.9], *(li.get_color() for li in drawn[2][:4:2])]  # of both, of each
    assert [limits[2][at] for at in (-9, 8, 9)] == colours


def test_a_table_for_pandas(swung: Solution, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in: what is asked of pandas is a DataFrame of columns with an index."""
    stand_in = types.ModuleType("pandas")
    stand_in.DataFrame = lambda columns, index: {**columns, "": index}  # type: ignore[attr-defined]
    stand_in.Index = lambda values, name: (name, values)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    table = swung.to_pandas()
    assert list(table) == ["angle", "rate", "torque", "rope", "wind", "height", ""]
    assert table[""][0] == "time"
    assert table["angle"] == pytest.approx(swung["angle"])
    assert swung.to_pandas(3)["angle"].shape == (19,)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install"):
        swung.to_pandas()


def test_saved_and_read_again(swung: Solution, tmp_path: Path) -> None:
    path = swung.save(tmp_path / "results" / "swing")
    assert path.name == "swing.npz"
    again = Solution.load(path, swing(Collocation()))
    assert again.success == swung.success
    assert again.costs == swung.costs
    for name in swung.values:
        assert np.array_equal(again[name], swung[name]), name
    assert again.multipliers["both"].tolist() == swung.multipliers["both"].tolist()
    assert again.times.tolist() == swung.times.tolist()
    warm = again.ocp.solve(time=0.5, guess=again)  # type: ignore[attr-defined]
    assert warm.iterations <= swung.iterations

    light = Saved.read(path)
    assert light["height"].tolist() == swung["height"].tolist()
    assert light.units["torque"] == "N m"
    assert light.stats["return_status"] == swung.stats["return_status"]
    with pytest.raises(InputError, match="not laid out as"):
        Solution.load(path, swing(MultipleShooting()))
    for changed, words in (
        ({"low": -1.9}, r"the lower limit of angle\[0\] \(in 2 rad\) is -0.95, it was -1$"),
        ({"g": 9.0}, r"does not solve this problem: dynamics of rate\[5,1\] is off by 0.2"),
    ):
        with pytest.raises(InputError, match=words):
            Solution.load(path, swing(Collocation(), **changed))
    cheap = swing(Collocation(), price=1e-7).solve().save(tmp_path / "cheap")
    with pytest.raises(InputError, match="the objective is"):
        Solution.load(cheap, swing(Collocation(), price=3e-7))
    early = swing(Collocation())
    early.options["max_iter"] = 1
    program = early.numbers().with_limits("torque", *np.c_[-0.5, 0.5].T)
    stopped = early.solution(program, *solved(early.solver, program, {}))
    again = Solution.load(stopped.save(tmp_path / "early"), swing(Collocation()))
    assert (again.success, again.violation().largest) == (False, stopped.violation().largest)
    other = tmp_path / "other.npz"
    other.write_text("no archive")
    with pytest.raises(InputError, match="holds no saved solution"):
        Saved.read(other)
    with pytest.raises(FileNotFoundError):
        Saved.read(tmp_path / "missing.npz")


CAPS = {
    "inside": (MultipleShooting(inner=2), {}), "ends": (MultipleShooting(), {"at": "ends"}),
    "soft": (MultipleShooting(inner=1), {"soft": 1e3}), "single": (SingleShooting(), {}),
    "Radau": (Collocation(2, inner=1), {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", CAPS)
def test_multipliers_by_name_are_the_whole_price(kind: str) -> None:
    """Their sum is the slope of the objective by the limit, of a row and of a state."""
    method, more = CAPS[kind]

    def solve(cap: float, fast: float) -> Solution:
        model = Model("cart")
        x, v, u = model.state("x"), model.state("v", upper=fast), model.control("u")
        model.rates(x=v, v=u)
        ocp = OptimalControl(model, duration=2.0, intervals=8, method=method)
        ocp.initial(x=0, v=0)
        ocp.path("cap", v + 0.3 * u, upper=cap, **more)
        ocp.minimize("way", integral=u**2, end=40 * (x - 2) ** 2)
        return ocp.solve()

    found, d = solve(1.2, 1.1), 1e-3
    for name, less, much in (
        ("cap", (1.2 - d, 1.1), (1.2 + d, 1.1)), ("v", (1.2, 1.1 - d), (1.2, 1.1 + d))
    ):  # fmt: skip
        slope = (solve(*much).objective - solve(*less).objective) / (2 * d)
        assert slope < -0.1
        assert -found.multipliers[name].sum() == pytest.approx(slope, rel=0.02)


def test_a_parameter_is_a_number_and_a_free_one_has_slopes() -> None:
    """min (k − bias)² over the free k, so that dk/dbias = 1."""
    model = Model("decay")
    x, k, bias = model.state("x"), model.parameter("k", 1.0), model.parameter("bias", [1.5, 2.0])
    model.rates(x=-k * x)
    ocp = OptimalControl(model, duration=1.0, intervals=5)
    ocp.initial(x=1)
    ocp.free("k")
    ocp.minimize("misfit", end=ca.sumsqr(k - bias))
    found = ocp.solve()
    assert found["k"] == pytest.approx(1.75)
    assert found["bias"].tolist() == [1.5, 2.0]
    assert found.sensitivity("bias")["k"] == pytest.approx([0.5, 0.5])
    with pytest.raises(InputError, match="the solver chooses 'k'"):
        found.sensitivity("k")


def test_a_copy_leaves_the_first_alone(swung: Solution) -> None:
    ocp = swing(Collocation())
    other, model = copy.copy(ocp), copy.copy(ocp.model)
    other.minimize("time", end=other.duration)
    model.parameter("more")
    assert [cost.name for cost in ocp.costs] == ["effort"]
    assert "more" not in ocp.given
    assert copy.deepcopy(swung)["angle"].tolist() == swung["angle"].tolist()
    model = Model("line")
    model.rates(x=model.state("x") + model.control("u"))
    plain = OptimalControl(model, duration=1.0, intervals=2)
    plain.initial(x=1)
    plain.minimize("effort", integral=model.symbol("u") ** 2, end=model.symbol("x") ** 2)
    with ca.global_pickle_context():
        written = pickle.dumps(plain)
    with ca.global_unpickle_context():
        assert pickle.loads(written).solve().objective == plain.solve().objective


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_an_input_error(swung: Solution, tmp_path: Path, seed: int) -> None:
    draw, path = np.random.default_rng(seed), swung.save(tmp_path / "swing")
    whole = bytearray(path.read_bytes())
    at = int(draw.integers(len(whole)))
    whole[at : at + 30] = draw.bytes(30) if seed % 2 else b""
    path.write_bytes(whole)
    with suppress(InputError):  # else it is where nothing is read
        assert Solution.load(path, swing(Collocation())).x.tolist() == swung.x.tolist()
