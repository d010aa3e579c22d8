"""A script for ``ca.Opti`` where one line changes, and what CasADi documents of the rest."""

import casadi as ca
import numpy as np
import pytest
from opti_cases import QUIET, corner, hybrid

from casadi_hybrid import InputError, Opti, Problem, SolveError
from casadi_hybrid.casadi_api.foreign import OptionWarning
from casadi_hybrid.casadi_api.optistack.solution import OptiSolution, OptiSolveError


def counting(monkeypatch):
    """The problems built from now on."""
    built = []
    make = Problem.from_nlp.__func__

    def counted(cls, *arguments, **named):
        built.append(named["name"])
        return make(cls, *arguments, **named)

    monkeypatch.setattr(Problem, "from_nlp", classmethod(counted))
    return built


@pytest.mark.parametrize("solver", [("ipopt", *QUIET), ("hybrid", *QUIET)], ids=["ipopt", "hybrid"])
def test_the_same_script_runs_with_either_name(solver, capfd):
    opti, x, p, line = corner()
    opti.solver(*solver)
    sol = opti.solve()
    assert isinstance(opti, ca.Opti)
    assert isinstance(sol, ca.OptiSol)
    np.testing.assert_allclose(sol.value(x), [1, 1], atol=1e-6)
    np.testing.assert_allclose(opti.value(x), sol.value(x))
    assert sol.value(opti.dual(line)) == pytest.approx(4, rel=1e-6)
    assert sol.value(ca.sum1(x) * p, [p == 5, x == 1]) == 10
    assert sol.opti.nx == opti.nx == 2
    assert sol.stats()["success"]
    assert opti.stats()["success"]
    assert sol.opti.return_status() == opti.return_status() == opti.stats()["return_status"]
    assert f"solver was called: {opti.return_status()}" in str(opti)
    assert f"solver was called: {opti.return_status()}" in str(sol)
    assert opti.debug.casadi_solver.name_in()[:2] == ["x0", "p"]
    assert "Ipopt" not in capfd.readouterr().out.replace("Ipopt, a library", "")


def test_nothing_is_built_again_for_other_numbers(monkeypatch):
    built = counting(monkeypatch)
    opti, x, p, line = corner()
    hybrid(opti)
    first = opti.solve()
    solver = opti.debug.casadi_solver
    opti.set_value(p, 0.5)
    opti.set_initial(first.value_variables())
    opti.set_initial(opti.lam_g, first.value(opti.lam_g))
    second = opti.solve()
    np.testing.assert_allclose(second.value(x), [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(first.value(x), [1, 1], atol=1e-6)  # a copy of its own
    opti.callback(lambda i: None)
    opti.copy().solve()
    opti.solve()
    assert opti.debug.casadi_solver is solver
    assert len(built) == 1
    opti.solver("hybrid", {"tol": 1e-10})  # the same problem under other options
    opti.solve()
    assert len(built) == 1
    opti.subject_to(x[1] >= 0.7)
    np.testing.assert_allclose(opti.solve().value(x), [0.5, 0.7], atol=1e-6)
    assert len(built) == 2
    opti.set_value(first.value_parameters())
    np.testing.assert_allclose(opti.solve().value(x), [1, 1], atol=1e-6)
    assert len(built) == 2
    opti.subject_to()
    np.testing.assert_allclose(opti.solve().value(x), [3, 3], atol=1e-6)
    with pytest.raises(InputError, match="not a constraint of this problem"):
        opti.solve().dual(line)
    assert len(built) == 3


def test_a_second_bound_on_the_same_expression_has_its_own_line():
    opti = hybrid(Opti())
    x = opti.variable()
    opti.minimize((x - 3) ** 2)
    opti.subject_to(x <= 1)
    first = opti.solve()
    opti.subject_to()
    opti.subject_to(x <= 2)
    second = opti.solve()
    assert second.value(x) == pytest.approx(2, abs=1e-6)
    assert first.constraint_names != second.constraint_names


def test_the_callback_sees_every_iterate_once():
    opti, x, _, line = corner()
    hybrid(opti)
    seen = []
    opti.callback(lambda i: seen.append((i, opti.debug.value(x), opti.debug.value(line.dep(0)))))
    sol = opti.solve()
    assert [i for i, *_ in seen] == sol.stats()["iterations"]["iter"]
    for (_, point, _), f in zip(seen, sol.stats()["iterations"]["obj"], strict=True):
        assert np.sum((point - 3) ** 2) == pytest.approx(f)
    np.testing.assert_allclose(seen[-1][1], sol.value(x), atol=1e-8)
    count = len(seen)
    opti.copy().solve()  # as in CasADi a copy has no callback
    assert len(seen) == count
    opti.callback()
    opti.solve()
    assert len(seen) == count
    opti.callback(seen.append)
    opti.solver("ipopt", *QUIET)  # it stays for the other solver, and comes back from there
    opti.solve()
    assert seen[count] == 0
    count = len(seen)
    hybrid(opti).solve()
    assert seen[count] == 0


def test_the_callback_has_the_units_of_the_problem():
    opti, x, *_ = corner()
    opti.set_linear_scale(x, [10, 0.1], [1, 2])
    hybrid(opti)
    seen = []
    opti.callback(lambda i: seen.append(opti.debug.value(x)))
    sol = opti.solve()
    np.testing.assert_allclose(seen[-1], sol.value(x), atol=1e-6)
    np.testing.assert_allclose(sol.value(x), [1, 1], atol=1e-6)


def test_values_of_what_is_not_in_the_problem():
    opti, x, _, _ = corner()
    unused, weight, nothing = opti.variable(), opti.parameter(), opti.variable(0, 3)
    sol = hybrid(opti).solve()
    with pytest.raises(RuntimeError, match="do not appear in the constraints and objective"):
        sol.value(unused)
    with pytest.raises(RuntimeError, match="unset value"):
        sol.value(weight)
    with pytest.raises(RuntimeError, match="belonging to a different instance"):
        sol.value(Opti().variable())
    with pytest.raises(RuntimeError, match="declared outside of Opti"):
        sol.value(ca.MX.sym("w"))
    assert sol.value(unused + 1, [unused == 1]) == 2
    assert np.size(sol.value(nothing)) == 0
    opti.set_initial(sol.value_variables())  # with nothing among them
    np.testing.assert_allclose(opti.debug.value(x, opti.initial()), [1, 1], atol=1e-6)
    with pytest.raises(RuntimeError, match="have not solved"):
        opti.value(x)  # set_initial makes the solution one of before


def test_a_failure_leaves_the_latest_values(capsys):
    opti, x, *_ = corner()
    opti.subject_to(x[1] >= 4)
    hybrid(opti)
    said = r"Solver failed\. You may use opti\.debug\.value .* is 'Infeasible_Problem_Detected'"
    with pytest.raises(RuntimeError, match=said) as caught:
        opti.solve()
    assert isinstance(caught.value, OptiSolveError)
    assert isinstance(caught.value, SolveError)  # what nlpsol raises where it is to raise
    solution = caught.value.solution
    assert isinstance(solution, OptiSolution)
    np.testing.assert_array_equal(opti.debug.value(x), solution.result.x)
    assert not opti.stats()["success"]
    assert "(test_opti.py:" in str(caught.value)
    with pytest.raises(OptiSolveError):
        opti.solve_limited()  # no limit has ended it
    capsys.readouterr()
    opti.debug.show_infeasibilities(1e-3)
    shown = capsys.readouterr().out
    value = opti.debug.value(opti.g)
    violated = (value > [2.001, np.inf, np.inf]) | (value < [-np.inf, -0.001, 3.999])
    assert violated.any()
    assert [f"i = {i}/3" in shown for i in range(3)] == list(violated)
    assert "opti.subject_to(x[1] >= 4)" in shown


def test_a_limit_is_accepted_where_it_is_asked_for():
    opti, x, *_ = corner()
    hybrid(opti, {}, {"max_iter": 1})
    with pytest.raises(OptiSolveError, match="Maximum_Iterations_Exceeded"):
        opti.solve()
    sol = opti.solve_limited()
    assert not sol.success
    np.testing.assert_array_equal(sol.value(x), opti.value(x))
    hybrid(opti, {"error_on_fail": True}, {"max_iter": 1})
    with pytest.raises(OptiSolveError, match="Maximum_Iterations_Exceeded"):
        opti.solve_limited()


def test_options_in_either_dictionary():
    opti, *_ = corner()
    with pytest.warns(OptionWarning, match="linear_solver"):
        hybrid(opti, {"ipopt.tol": 1e-7}, {"linear_solver": "mumps", "max_iter": 0})
    assert opti.solve_limited().stats()["iter_count"] == 0
    with pytest.raises(InputError, match="did you mean 'max_iter'"):
        hybrid(opti, {"max_iters": 3})
    with pytest.raises(InputError, match="must be dictionaries, got float"):
        hybrid(opti, 1e-8)
    hybrid(opti, {"variable_names": ["left", "right"]})
    assert opti.solve().variable_names == ("left", "right")


def test_without_a_solver_casadi_says_what_is_missing():
    opti, *_ = corner()
    with pytest.raises(RuntimeError, match="You must call 'solver'"):
        opti.solve()
