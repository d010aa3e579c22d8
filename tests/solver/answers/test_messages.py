"""What a user types by mistake, and what is then said."""

import json
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Problem, Solver, nlpsol
from casadi_hybrid.cli import main
from casadi_hybrid.control import Model, MultipleShooting, OptimalControl

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


WRONG = {
    "step must be RungeKutta(…) or Integrator(…), got 3": lambda _: MultipleShooting(3),
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


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_call_name_or_number_is_told_at_its_place(said: str, cart: Model) -> None:
    with pytest.raises(InputError) as error:
        WRONG[said](problem(cart))
    assert said in str(error.value)


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
    assert main(["export", place, "--out", str(tmp_path / "c"), "--no-compare", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
