"""``Opti`` beyond a script: functions, other names, names of entries, CasADi's low-level calls."""

import copy
from itertools import pairwise

import casadi as ca
import numpy as np
import pytest
from opti_cases import QUIET, corner, hybrid

from casadi_hybrid import InputError, Opti


def test_a_function_of_the_problem():
    opti, x, p, _ = corner()
    hybrid(opti)
    function = opti.to_function("F", [p, x], [x, opti.lam_g, opti.f], ["p", "x0"], ["x", "l", "f"])
    for value, best, multiplier in ((3, 1, 4), (0.5, 0.5, 0)):
        found = function(p=value, x0=[0.1, 0.2])
        np.testing.assert_allclose(found["x"].full().ravel(), [best, best], atol=1e-6)
        np.testing.assert_allclose(found["l"].full().ravel(), [multiplier, 0], atol=1e-6)
        assert float(found["f"]) == pytest.approx(2 * (best - value) ** 2)
    q = ca.MX.sym("q")
    slope = ca.Function("slope", [q], [ca.jacobian(function(q, 0)[0], q)])
    np.testing.assert_allclose(slope(0.5).full(), [[1], [1]], atol=1e-6)
    named = opti.to_function("F", {"p": p, "both": x}, ["p"], ["both"])
    np.testing.assert_allclose(named(3).full().ravel(), [1, 1], atol=1e-6)
    opti.set_value(p, 0.25)
    kept = opti.to_function("F", [x], [x])  # p has its value of now
    np.testing.assert_allclose(kept(0).full().ravel(), [0.25, 0.25], atol=1e-6)
    with pytest.raises(InputError, match=r"Argument 1 is not purely symbolic"):
        opti.to_function("F", [x, p + 1], [x])
    with pytest.raises(RuntimeError, match="belonging to a different instance"):
        opti.to_function("F", [Opti().parameter()], [x])
    with pytest.raises(InputError, match="no expression for the name 'y'"):
        opti.to_function("F", {"p": p, "x": x}, ["p"], ["y"])
    with pytest.raises(InputError, match="to_function takes"):
        opti.to_function("F", [p])


def test_an_opti_made_elsewhere_is_solved_under_another_name():
    existing, x, p, line = corner(ca.Opti)
    opti = hybrid(Opti(existing))
    assert opti.solve().dual(line) == pytest.approx(4, rel=1e-6)
    np.testing.assert_allclose(existing.value(x), [1, 1], atol=1e-6)
    existing.set_value(p, 0.5)
    np.testing.assert_allclose(opti.solve().value(x), [0.5, 0.5], atol=1e-6)
    existing.subject_to(x[1] >= 0.7)
    existing.solver("ipopt", *QUIET)
    existing.solve()  # which bakes the problem that is solved again here
    np.testing.assert_allclose(opti.solve().value(x), [0.5, 0.7], atol=1e-6)
    existing.subject_to(x[0] >= 0.6)
    hybrid(opti).solve()
    with pytest.raises(RuntimeError, match="hybrid"):
        existing.solve()  # never by the solver that CasADi made for the former problem


def test_another_name_of_a_solved_opti_keeps_solver_and_solution():
    opti, x, p, _ = corner()
    hybrid(opti).solve()
    for other in (Opti(opti), copy.copy(opti), copy.deepcopy(opti)):
        assert other.return_status() == "Solve_Succeeded"
        np.testing.assert_allclose(other.value(x), [1, 1], atol=1e-6)
        other.set_value(p, 0.5)  # CasADi copies the name only
        np.testing.assert_allclose(opti.solve().value(x), [0.5, 0.5], atol=1e-6)
        opti.set_value(p, 3)
        opti.solve()


def test_a_conic_problem_without_cones():
    opti = Opti("conic")
    x = opti.variable(2)
    opti.minimize(ca.sumsqr(x))
    opti.subject_to(x >= ca.vertcat(1, 2))
    np.testing.assert_allclose(hybrid(opti).solve().value(x), [1, 2], atol=1e-6)
    with pytest.raises(RuntimeError, match="conic"):
        Opti("cone")


def test_the_steps_of_a_solve_can_be_called_one_by_one():
    opti, x, *_ = corner()
    opti.callback(lambda i: None)
    steps = hybrid(opti).advanced
    steps.bake()
    steps.solve_prepare()
    steps.res(steps.solve_actual(steps.arg()))
    np.testing.assert_allclose(steps.value(x), [1, 1], atol=1e-6)
    assert steps.return_status() == "Solve_Succeeded"
    assert float(steps.res()["f"]) == pytest.approx(8)
    assert steps.baked_copy().problem_dirty() is False
    assert [steps.g_index_reduce_g(1), steps.g_index_unreduce_g(1)] == [1, 1]
    assert steps.g_index_reduce_x(1) == -1
    assert opti.return_status() == "unknown"  # advanced is a copy
    with pytest.raises(RuntimeError, match="have not solved"):
        opti.stats()


def test_symmetric_named_and_sparse_variables():
    opti = hybrid(Opti())
    P, z = opti.variable(2, 2, "symmetric"), opti.variable(ca.MX.sym("depth"))
    opti.minimize(ca.sumsqr(P - ca.DM([[1, 2], [4, 4]])) + (z - 1) ** 2)
    sol = opti.solve()
    np.testing.assert_allclose(sol.value(P), [[1, 3], [3, 4]], atol=1e-6)
    assert sol.variable_names[-1].startswith("depth (test_opti_advanced.py:")
    opti.variable(ca.Sparsity.lower(2))
    opti.minimize(z**2)
    with pytest.raises(InputError, match=r"opti\d+_x_\d \(test_opti_advanced.py:\d+\) is sparse"):
        opti.solve()


@pytest.mark.parametrize("n", [30, 120])
def test_names_are_read_in_one_walk(n, monkeypatch):
    """Looking each entry up by its number is quadratic: twice the entries, four times the work."""
    asked = []
    read = ca.OptiAdvanced.get_meta
    monkeypatch.setattr(ca.OptiAdvanced, "get_meta", lambda s, x: asked.append(1) or read(s, x))
    for slow in ("x_lookup", "g_lookup"):
        monkeypatch.delattr(ca.OptiAdvanced, slow)
    opti = hybrid(Opti())
    x = [opti.variable() for _ in range(n)]
    opti.minimize(ca.sumsqr(ca.vertcat(*x) - 1))
    for before, after in pairwise(x):
        opti.subject_to(after <= before)
    sol = opti.solve()
    assert len(asked) == n
    assert len(set(sol.constraint_names)) == n - 1
    assert [name.split()[0] for name in sol.variable_names] == [symbol.name() for symbol in x]
