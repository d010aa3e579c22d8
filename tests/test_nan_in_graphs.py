"""A solver in a graph whose inputs are no numbers: NaN for that solve alone, as in CasADi."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, nlpsol

OUTPUTS = ("x", "f", "g", "lam_x", "lam_g", "lam_p")


def solver(**options: Any) -> Any:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p) + x[0] ** 4, "g": ca.sum1(x)}
    return nlpsol("s", "hybrid", nlp, options)


def graph(of: Any) -> ca.Function:
    """(p, ubg) → all outputs."""
    t = ca.MX.sym("t", 2)
    found = of(p=t[0], ubg=t[1])
    return ca.Function("graph", [t], [ca.veccat(*(found[name] for name in OUTPUTS))])


@pytest.mark.parametrize("how", ["serial", "thread"])
def test_the_other_columns_are_solved(how: str) -> None:
    s = solver()
    p = np.array([[1.0, np.nan, 2.0]])
    with pytest.warns(UserWarning, match=r"s in a graph: p\[0\] is nan, so its outputs are NaN"):
        found = s.map(3, how)(x0=0, p=p, lbg=-ca.inf, ubg=1)
    for k in (0, 2):
        alone = s(x0=0, p=p[0, k], ubg=1)
        for name in OUTPUTS:
            np.testing.assert_array_equal(found[name][:, k], alone[name])
    assert all(np.isnan(found[name][:, 1].full()).all() for name in OUTPUTS)


def test_so_are_their_derivatives() -> None:
    P = ca.MX.sym("P", 1, 3)
    x = solver().map(3, "thread")(x0=0, p=P, lbg=-ca.inf, ubg=1)["x"]
    merit = ca.sumsqr(x)
    shown = [ca.jacobian(x, P), ca.gradient(merit, P), ca.hessian(merit, P)[0]]
    slopes = ca.Function("slopes", [P], shown)
    J, gradient, hessian = (part.full() for part in slopes([0.1, 0.2, 0.3]))
    with pytest.warns(UserWarning, match="p\\[0\\] is nan"):
        partly = [part.full() for part in slopes([0.1, np.nan, 0.3])]
    np.testing.assert_array_equal(partly[0][[0, 1, 4, 5]], J[[0, 1, 4, 5]])
    np.testing.assert_array_equal(partly[1].ravel()[[0, 2]], gradient.ravel()[[0, 2]])
    np.testing.assert_array_equal(partly[2][[0, 2]][:, [0, 2]], hessian[[0, 2]][:, [0, 2]])
    assert np.isnan(partly[0][[2, 3], 1]).all()
    assert np.isnan(partly[1].ravel()[1])
    assert np.isnan(partly[2][1, 1])


@pytest.mark.parametrize("bad", [(np.nan, 1), (np.inf, 1), (1, np.nan)])
def test_statistics_say_that_it_failed(bad: tuple[float, float]) -> None:
    s = solver()
    F = graph(s)
    with pytest.warns(UserWarning, match="its outputs are NaN"):
        assert np.isnan(F(bad).full()).all()
    assert not s.stats()["success"]
    assert s.stats()["return_status"] == "Invalid_Number_Detected"
    assert "finite numbers are needed" in s.stats()["detail"]
    assert "[0] is " in s.explain()
    assert np.isfinite(F([1, 1]).full()).all()
    assert s.stats()["success"]


def test_what_is_raised_is_raised_still(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"p\[0\] is nan"):
        solver()(p=np.nan)
    with pytest.raises(InputError, match=r"column 1: p\[0\] is nan"):
        solver()(p=[[1, np.nan, 2]])
    with pytest.raises(RuntimeError, match=r"p\[0\] is nan"):
        graph(solver(error_on_fail=True))([np.nan, 1])
    capfd.readouterr()  # CasADi prints the traceback of each failure
    with pytest.raises(RuntimeError):
        graph(solver())([1, -np.inf])
    assert "Ill-posed problem" in capfd.readouterr().err


def test_a_stored_solver_does_the_same() -> None:
    read = ca.Function.deserialize(solver().serialize())
    with pytest.warns(UserWarning, match=r"p\[0\] is nan, so its outputs are NaN"):
        assert np.isnan(read(p=np.nan, ubg=1)["x"].full()).all()
    assert np.isfinite(read(p=1, ubg=1)["x"].full()).all()
