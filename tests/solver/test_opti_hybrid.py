"""Opti problems: the hybrid solver against IPOPT through opti.solve()."""

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid.solver.opti.opti import Opti
from casadi_hybrid.utils.errors import InputError

QUIET = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-11}


def solved(opti, **options):
    """Solve a copy of a ca.Opti made elsewhere."""
    ours = Opti(opti.copy())
    ours.solver("hybrid", options)
    return ours.solve()


def compare(opti, expressions, constraints, tolerance=1e-6, **options):
    """Solve both ways; values and duals have to agree."""
    ours = solved(opti, **options)
    assert ours.success
    theirs = opti.copy()
    theirs.solver("ipopt", QUIET)
    sol = theirs.solve()
    for expression in (*expressions, opti.f, opti.x):
        np.testing.assert_allclose(ours.value(expression), sol.value(expression), atol=tolerance)
        assert np.shape(ours.value(expression)) == np.shape(sol.value(expression))
    for constraint in constraints:
        expected = sol.value(theirs.dual(constraint))
        np.testing.assert_allclose(ours.dual(constraint), expected, atol=tolerance, rtol=tolerance)
    if opti.ng:
        np.testing.assert_allclose(
            ours.value(opti.lam_g), sol.value(opti.lam_g), atol=tolerance, rtol=tolerance
        )
    return ours


def mixed():
    """A matrix variable, a parameter and every kind of constraint."""
    opti = ca.Opti()
    x, p, q = opti.variable(2, 2), opti.parameter(), opti.variable()
    opti.minimize(ca.sumsqr(x - p) + (q - 1) ** 2)
    constraints = [
        ca.sum1(ca.vec(x)) == 2,
        opti.bounded(-1, x[0, 0], 0.3),
        q <= 0.5,
        x[:, 1] >= ca.vertcat(0.2, 0.9),
        q >= 0.1,
        q * x[1, 1] >= x[0, 1] * p,
    ]
    for constraint in constraints:
        opti.subject_to(constraint)
    opti.set_value(p, 1)
    opti.set_initial(x, 2)
    return opti, x, p, q, constraints


def shooting(steps=15):
    """A pendulum swung by a bounded torque: multiple shooting with matrix variables."""
    opti = ca.Opti()
    X, U = opti.variable(2, steps + 1), opti.variable(1, steps)
    start = opti.parameter(2)
    constraints = [X[:, 0] == start, opti.bounded(-0.4, ca.vec(U), 0.4), X[:, -1] == 0]
    for k in range(steps):
        slope = ca.vertcat(X[1, k], -ca.sin(X[0, k]) + U[k])
        constraints.append(X[:, k + 1] == X[:, k] + 0.2 * slope)
    opti.subject_to(constraints)
    opti.minimize(ca.sumsqr(U) + 0.1 * ca.sumsqr(X))
    opti.set_value(start, [0.7, 0.0])
    return opti, [X, U], constraints


def test_every_kind_of_constraint():
    opti, x, p, q, constraints = mixed()
    ours = compare(opti, [x, q, p, x @ x, ca.sum1(ca.vec(x)) - q], constraints)
    assert ours.value(x).shape == (2, 2)
    assert ours.dual(constraints[2]) == pytest.approx(1, abs=1e-6)


def test_optimal_control():
    opti, expressions, constraints = shooting()
    ours = compare(opti, expressions, constraints)
    assert np.abs(ours.dual(constraints[1])).max() > 1e-2  # a torque limit is active


def test_no_objective():
    opti = ca.Opti()
    x = opti.variable()
    opti.subject_to(x**3 == 8)
    opti.set_initial(x, 1)
    assert solved(opti).value(x) == pytest.approx(2, abs=1e-6)


def test_linear_scales_change_no_value():
    opti, x, p, q, constraints = mixed()
    opti.set_linear_scale(q, 100, 3)
    opti.minimize(ca.sumsqr(x - p) + (q - 1) ** 2, 50)
    last = opti.bounded(0.1, x[1, 0], 3)
    opti.subject_to(last, 7)
    tight = {"tol": 1e-10, "residual_tol": 1e-9}  # of the scaled problem
    scaled = compare(opti, [x, q], [*constraints, last], **tight)
    best = Opti(opti.copy())
    best.solver("hybrid", tight)
    function = best.to_function("F", [q, p], [opti.x, opti.lam_g])
    for found, label in zip(function(0.3, 1), (opti.x, opti.lam_g), strict=True):
        np.testing.assert_allclose(found.full().ravel(), scaled.value(label), atol=1e-6)
    assert "numbers of the scaled problem" in scaled.explain()
    assert "numbers of the scaled problem" not in solved(mixed()[0]).explain()


def test_given_multipliers_are_used():
    opti, _, constraints = shooting()
    cold = solved(opti)
    opti.set_initial(opti.x, cold.value(opti.x))
    opti.set_initial(opti.lam_g, cold.value(opti.lam_g))
    warm = solved(opti)
    assert warm.result.iterations < cold.result.iterations
    np.testing.assert_allclose(warm.dual(constraints[0]), cold.dual(constraints[0]), atol=1e-6)


def test_names_and_descriptions():
    opti, *_ = mixed()
    ours = solved(opti)
    assert len(ours.constraint_names) == opti.ng
    assert len(set(ours.variable_names)) == opti.nx
    assert "[1, 0] (test_nlp_opti.py:" in ours.variable_names[1]
    assert ours.constraint_names[3].startswith("g[3] (test_nlp_opti.py:")
    assert "test_nlp_opti.py" in ours.describe_constraint(0)
    assert "2x2" in ours.describe_variable(0)
    assert ours.stats()["success"]
    assert ours.stats()["stop_reason"] == "CONVERGED"


def test_refusals_name_what_is_wrong():
    opti, x, p, q, _ = mixed()
    with pytest.raises(InputError, match=r"a ca\.Opti, got dict"):
        Opti({"x": x})
    crossed = opti.copy()
    crossed.subject_to(crossed.bounded(2, q * p, 1))
    says = r"lbg\[7\] = 2 exceeds ubg\[7\] = 1\. .*no value of g\[7\] \(test_nlp_opti"
    with pytest.raises(InputError, match=says):
        solved(crossed)
    matrix = opti.copy()
    matrix.subject_to(x >= 0)
    with pytest.raises(InputError, match="semidefinite"):
        solved(matrix)
    opti.set_domain(q, "integer")
    with pytest.raises(InputError, match=r"opti\d+_x_2 \(test_nlp_opti.py:\d+\) is discrete"):
        solved(opti)


def test_a_parameter_without_a_value_is_named():
    opti = ca.Opti()
    x, weight = opti.variable(), opti.parameter(2)
    opti.minimize((x - weight[0]) ** 2)
    said = r"forgotten to assign a value to a parameter[\s\S]*opti\d+_p_1[\s\S]*test_nlp_opti\.py"
    with pytest.raises(RuntimeError, match=said):
        solved(opti)


def test_a_problem_of_parameters_alone_is_solved_as_in_casadi():
    opti = Opti()
    unused, weight = opti.variable(), opti.parameter()
    opti.minimize(weight**2)
    opti.set_value(weight, 2)
    opti.solver("hybrid")
    solution = opti.solve()
    assert (solution.value(opti.f), solution.value(weight)) == (4, 2)
    with pytest.raises(RuntimeError):
        solution.value(unused)
