"""Arguments that the engine reads where they lie: the same numbers as through CasADi."""

import casadi as ca
import numpy as np
import pytest
from engine_cases import needs_engine

from casadi_hybrid import nlpsol
from casadi_hybrid.basics import matrices
from casadi_hybrid.engine import external

x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 3)
NLP = {"x": x, "p": p, "f": ca.sumsqr(x - p) + ca.exp(x[0]), "g": ca.sum1(x)}
P = [0.5, 0.0, -1.0]


def solved(value: object) -> tuple[dict[str, np.ndarray], bool]:
    """A warm solve with this p: its numbers, and whether DM are fetched."""
    needs_engine()
    solver = nlpsol("s", "hybrid", NLP)
    bounds = {"lbg": ca.DM(0), "ubg": ca.DM(1), "lbx": ca.DM([-1, -1, -1]), "ubx": 2.0}
    first = solver(p=P, x0=[0.1, 0.1, 0.1], **bounds)
    warm = {"x0": first["x"], "lam_x0": first["lam_x"], "lam_g0": first["lam_g"]}
    found = solver(p=value, **warm, **bounds)
    assert solver.stats()["success"]
    (one,) = solver._runner._calls()._externals.values()
    return {k: v.full() for k, v in found.items()}, one.fetches


def test_this_casadi_has_them_where_they_are_looked_for() -> None:
    assert matrices.is_known()


@pytest.mark.parametrize(
    ("value", "fetched"),
    [
        (ca.DM(P), True),
        (ca.vertcat(ca.DM(P[:2]), ca.DM(P[2:])), True),
        (ca.DM([9.0, *P, 9.0])[1:4], True),
        (ca.DM(np.array([P]).T), True),
        (ca.DM(P).T, False),
        (ca.sparsify(ca.DM(P)), False),
        (P, True),
        (np.array(P), True),
    ],
)
def test_whatever_the_shape_the_numbers_are_the_same(value: object, fetched: bool) -> None:
    found, fetches = solved(value)
    expected, _ = solved(ca.DM(P))
    assert fetches == fetched
    for name, numbers in expected.items():
        np.testing.assert_array_equal(found[name], numbers, err_msg=name)


def test_of_another_length_the_ordinary_way_says_so() -> None:
    with pytest.raises(ValueError, match="p"):
        solved(ca.DM([1.0, 2.0]))


def test_where_they_lie_otherwise_casadi_hands_them_over(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = solved(ca.DM(P))
    monkeypatch.setattr(external, "is_known", lambda: False)
    found, fetches = solved(ca.DM(P))
    assert not fetches
    for name, numbers in expected.items():
        np.testing.assert_array_equal(found[name], numbers, err_msg=name)


def test_a_layout_that_is_not_that_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [(name, matrices.c_void_p) for name in ("pattern", "begin", "end", "room")]
    other = type("Other", (matrices.ct.Structure,), {"_fields_": fields})
    other.of = classmethod(lambda cls, one: cls.from_address(int(one.this)))
    monkeypatch.setattr(matrices, "MatrixData", other)
    assert not matrices.is_known.__wrapped__()
