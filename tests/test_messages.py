"""What a user types by mistake, and what is then said."""

import json
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Problem, Solver, control, nlpsol, verify
from casadi_hybrid.basics.calls import checked_call
from casadi_hybrid.cli import main
from casadi_hybrid.control import (
    MPC,
    Collocation,
    Free,
    Model,
    MultipleShooting,
    OptimalControl,
    Plant,
    Scenarios,
    Soft,
    branches,
    estimation,
    feedback,
    refine,
    simulate,
    steady,
)

X = ca.SX.sym("x", 2)
RING = Problem(x=X, f=ca.sumsqr(X), h={"ring": ca.sumsqr(X) - 1})


@pytest.fixture
def cart() -> Model:
    model = Model("cart")
    place = model.state("place", 2, lower=-1, upper=1)
    force = model.control("force", 2)
    model.rates(place=force)
    model.output("tip", place[0] + 1)
    return model


def problem(model: Model) -> OptimalControl:
    ocp = OptimalControl(model, duration=1.0, intervals=4)
    ocp.initial(place=[0.5, 0])
    ocp.minimize("effort", integral=ca.sumsqr(model.symbol("force")))
    return ocp


# A call of each kind: too many arguments, one missing, a misspelt one.
WRONG = {
    "OptimalControl(model, *, duration, ": lambda ocp: OptimalControl(ocp.model, 1.0, 10),
    "did you mean 'intervals'?": lambda ocp: OptimalControl(ocp.model, duration=1, interval=1),
    "state(name, size=1, *, lower": lambda ocp: ocp.model.state("x", 1, 2),
    "minimize(name, *, integral": lambda ocp: ocp.minimize("effort", ocp.model.symbol("force")),
    "missing a required argument: 'expression'": lambda ocp: ocp.path("clear", lower=1),
    "path(name, expression, *, lower": lambda ocp: ocp.path("clear", ocp.duration, 1),
    "MPC(ocp, *, deadline": lambda ocp: MPC(ocp, 0.02),
    "Plant(model, period, *, ": lambda ocp: Plant(ocp.model, 0.1, {}),
    "refine(ocp, x0=None, *, tolerance": lambda ocp: refine(ocp, [0, 0], 1e-3),
    "steady(model, *, guess": lambda ocp: steady(ocp.model, 0),
    "missing a required argument: 'steps'": lambda ocp: simulate(None, None, x0=[0, 0]),
    "too many positional arguments. The call is Collocation(degree=3, points": lambda _: (
        Collocation(3, "radau", 1, 2)
    ),
    "did you mean 'most'? The call is Soft(": lambda _: Soft(1.0, mst=2),
    "these values do not fit: '<=' not supported": lambda _: Free("2"),
    "missing a required argument: 'scenarios'": Scenarios,
    "branches(values, intervals, depth=1)": lambda _: branches({}),
    "verify(problem, answer, *, p=None": lambda _: verify(RING, [1, 0], [0, 0]),
    "Solver(problem, method='hybrid', *, tol": lambda _: Solver(RING, "auto", 1e-6),
    "nlpsol(name, solver, nlp, options=None)": lambda _: nlpsol("s", "hybrid"),
    "shifted(x, lam_x, lam_g, intervals=1)": lambda ocp: ocp.numbers([0, 0]).shifted([0]),
    "did you mean 'ubx'?": lambda _: Solver(RING).solve(ub=3),
    "did you mean 'lbx'?": lambda _: Problem(x=X, f=X[0], lb=3),
}


@pytest.mark.parametrize("room", [control, feedback, estimation], ids=lambda room: room.__name__)
def test_every_public_class_and_function_of_control_does_so(room: Any) -> None:
    for name in room.__all__:
        value = getattr(room, name)
        made = value.__init__ if isinstance(value, type) else value
        assert hasattr(made, "__wrapped__"), name
    with pytest.raises(InputError, match=r"step must be RungeKutta\(…\) or Integrator\(…\), got 3"):
        MultipleShooting(3)


def test_a_type_error_from_inside_is_passed_on() -> None:
    @checked_call
    def half(value: Any) -> float:
        return value / 2

    assert half(3) == 1.5
    with pytest.raises(TypeError, match="unsupported operand"):
        half("three")


OTHERS = {
    "unknown option 'max_itr' for 'hybrid'; did you mean 'max_iter'?": (
        lambda _: Solver(RING, max_itr=3)
    ),
    "there is no trajectory 'tipp'; did you mean 'tip'?": lambda ocp: ocp.solve()["tipp"],
    "there is no limit 'plac'; did you mean 'place'?": lambda ocp: ocp.solve().active()["plac"],
    "there is no cost 'efort'; did you mean 'effort'?": lambda ocp: ocp.solve().costs["efort"],
    "there is no constraint or variable 'tipp'": lambda ocp: ocp.solve().multipliers["tipp"],
    "guess of 'place' has the shape (3,)": lambda ocp: ocp.guess(place=[1, 2, 3]),
    "'ubx' is of nlpsol": lambda ocp: ocp.solve(ubx=3),
    "Numbers of a solve: x0, time, guess": lambda ocp: ocp.solve(lbg=3),
    "initial 'place' has 3 entries; give one, or 2": lambda ocp: ocp.initial(place=[1, 2, 3]),
    'The call is minimize("effort", integral=expression)': lambda ocp: ocp.minimize(ocp.duration),
    "there is no parameter 'load'; known: none": lambda ocp: ocp.solve(load=3),
}  # fmt: skip


@pytest.mark.parametrize("said", [*WRONG, *OTHERS])
def test_a_wrong_call_name_or_number_is_told_at_its_place(said: str, cart: Model) -> None:
    with pytest.raises(InputError) as error:
        (WRONG | OTHERS)[said](problem(cart))
    assert said in str(error.value)
    assert said in OTHERS or "The call is " in str(error.value)


def test_an_equation_should_be_and_is() -> None:
    h = {"ring": ca.sumsqr(X) + 1, "sum": X[0] + X[1] - 2}
    result = Solver(Problem(x=X, f=X[0], h=h)).solve([0.3, 0.2])
    text = result.explain()
    assert f"ring should be 0, is {result.g[0]:.6g}\n" in text
    assert "its bound" not in text
    fixed = Problem(x=X, f=X[0], g={"sum": (3, X[0] + X[1], 3)}, lbx=0, ubx=1)
    result = Solver(fixed).solve([0.3, 0.2])
    off = 3 - result.g[0]
    assert f"sum should be 3, is {result.g[0]:.6g} (off by {off:.3g})\n" in result.explain()


def test_what_contradicts_comes_first_and_nothing_that_does_not_help() -> None:
    """Also rows that depend on each other, which explain no contradiction."""
    g = {"low": (None, X[0], 1), "again": (None, 2 * X[0], 2), "high": (3, X[0], None)}
    result = Solver(Problem(x=X, f=ca.sumsqr(X), g=g)).solve([0, 0])
    assert result.infeasible
    lines = result.explain().splitlines()
    assert lines[2].startswith("These contradict each other")
    conflict = lines[3 : lines.index("Worst violations:")]
    assert any(line.strip() == "high ≥ 3" for line in conflict)
    assert "gradients depend" not in result.explain()
    assert "Badly scaled" not in result.explain()


@pytest.mark.parametrize("cold", [True, False])
def test_an_export_without_numbers_says_which_to_pass(cart: Model, tmp_path: Any, cold: bool):
    ocp = problem(cart)
    with pytest.raises(InputError, match=r"\*\*ocp.numbers\(x0\).arguments"):
        ocp.solver.export(tmp_path, "cart", cold=cold)
    free = nlpsol("free", "hybrid", {"x": X, "f": X[0]})
    with pytest.raises(InputError, match="given no numbers"):
        free.export(tmp_path)
    assert not list(tmp_path.iterdir())


NEIGHBOUR = "import casadi as ca\nx = ca.SX.sym('x', 2)\nnlp = {'x': x, 'f': ca.sumsqr(x - 1)}\n"
FILE = "def problem():\n    from {} import nlp\n    return nlp, {{'x0': 0}}\nprint('read')\n"


def test_a_files_neighbour_is_imported_also_when_its_function_is_called(tmp_path, capsys):
    (tmp_path / "beside_verify.py").write_text(NEIGHBOUR)
    (tmp_path / "own.py").write_text(FILE.format("beside_verify"))
    place = str(tmp_path / "own.py")
    assert main(["verify", place, "--json", "--no-ipopt"]) == 0
    out, err = capsys.readouterr()
    assert np.allclose(json.loads(out)["report"]["x"], 1)  # what the file prints is not in it
    assert err == "read\n"
    assert main(["export", place, "--out", str(tmp_path / "c"), "--no-measure", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
