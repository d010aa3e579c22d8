"""A script for ``ca.Opti`` where one line changes, and what CasADi documents of the rest."""

import copy
from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Opti, Problem, SolveError
from casadi_hybrid.solver.opti.solution import OptiSolution, OptiSolveError
from casadi_hybrid.solver.options.foreign import OptionWarning

QUIET = ({"print_time": False}, {"print_level": 0, "sb": "yes"})


def corner(kind=Opti):
    """min (x₀ − p)² + (x₁ − p)² s.t. x₀ + x₁ ≤ 2, x₀ ≥ 0."""
    opti = kind()
    x, p = opti.variable(2), opti.parameter()
    opti.minimize(ca.sumsqr(x - p))
    line = ca.sum1(x) <= 2
    opti.subject_to(line)
    opti.subject_to(x[0] >= 0)
    opti.set_value(p, 3)
    return opti, x, p, line


def hybrid(opti, *options):
    opti.solver("hybrid", *options)
    return opti


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


def test_a_solver_is_needed_and_takes_options_in_either_dictionary():
    opti, *_ = corner()
    with pytest.raises(RuntimeError, match="You must call 'solver'"):
        opti.solve()
    with pytest.warns(OptionWarning, match="linear_solver"):
        hybrid(opti, {"ipopt.tol": 1e-7}, {"linear_solver": "mumps", "max_iter": 0})
    assert opti.solve_limited().stats()["iter_count"] == 0
    with pytest.raises(InputError, match="did you mean 'max_iter'"):
        hybrid(opti, {"max_iters": 3})
    with pytest.raises(InputError, match="must be dictionaries, got float"):
        hybrid(opti, 1e-8)
    hybrid(opti, {"variable_names": ["left", "right"]})
    assert opti.solve().variable_names == ("left", "right")


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
    assert sol.variable_names[-1].startswith("depth (test_opti.py:")
    opti.variable(ca.Sparsity.lower(2))
    opti.minimize(z**2)
    with pytest.raises(InputError, match=r"opti\d+_x_\d \(test_opti.py:\d+\) is sparse"):
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
