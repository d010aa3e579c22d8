"""Messages for mistakes of a user, by the name that each has to contain."""

import json
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Problem, Solver
from casadi_hybrid.cli import main
from casadi_hybrid.control import Model, MultipleShooting, OptimalControl

X = ca.SX.sym("x", 2)
RING = Problem(x=X, f=ca.sumsqr(X), h={"ring": ca.sumsqr(X) - 1})


@pytest.fixture
def ocp() -> OptimalControl:
    model = Model("cart")
    place = model.state("place", 2, lower=-1, upper=1)
    force = model.control("force", 2)
    model.rates(place=force)
    model.output("tip", place[0] + 1)
    ocp = OptimalControl(model, duration=1.0, intervals=4)
    ocp.initial(place=[0.5, 0])
    ocp.minimize("effort", integral=ca.sumsqr(force))
    return ocp


# The argument, option or name that the message has to contain.
WRONG = {
    "step": lambda _: MultipleShooting(3),
    "max_iter": lambda _: Solver(RING, max_itr=3),
    "'tip'": lambda ocp: ocp.solve()["tipp"],
    "'place'": lambda ocp: ocp.solve().active()["plac"],
    "'effort'": lambda ocp: ocp.solve().costs["efort"],
    "'tipp'": lambda ocp: ocp.solve().multipliers["tipp"],
    "(3,)": lambda ocp: ocp.guess(place=[1, 2, 3]),
    "'ubx'": lambda ocp: ocp.solve(ubx=3),
    "x0, time, guess": lambda ocp: ocp.solve(lbg=3),
    "3 entries": lambda ocp: ocp.initial(place=[1, 2, 3]),
    "integral=": lambda ocp: ocp.minimize(ocp.duration),
    "'load'": lambda ocp: ocp.solve(load=3),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_call_is_named(name: str, ocp: OptimalControl) -> None:
    with pytest.raises(InputError) as error:
        WRONG[name](ocp)
    assert name in str(error.value)


def test_export_without_arguments_is_refused(ocp: OptimalControl, tmp_path: Any):
    for cold in (True, False):
        with pytest.raises(InputError, match=r"ocp\.numbers"):
            ocp.solver.export(tmp_path, "cart", cold=cold)
    assert not list(tmp_path.iterdir())


def test_neighbour_of_a_file_is_imported(tmp_path, capsys):
    nlp = "import casadi as ca\nx = ca.SX.sym('x', 2)\nnlp = {'x': x, 'f': ca.sumsqr(x - 1)}\n"
    problem = "def problem():\n    from beside_verify import nlp\n    return nlp, {'x0': 0}\n"
    (tmp_path / "beside_verify.py").write_text(nlp)
    (tmp_path / "own.py").write_text(f"{problem}print('read')\n")
    place = str(tmp_path / "own.py")
    assert main(["verify", place, "--json", "--no-ipopt"]) == 0
    out, err = capsys.readouterr()
    assert np.allclose(json.loads(out)["report"]["x"], 1)  # what the file prints is not in it
    assert err == "read\n"
    assert main(["export", place, "--out", str(tmp_path / "c"), "--no-compare", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
