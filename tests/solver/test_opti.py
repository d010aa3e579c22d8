"""``Opti`` with one line changed: answers beside IPOPT, and the interface that CasADi documents."""

import copy
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Opti, SolveError
from casadi_hybrid.solver.opti.solution import OptiSolution, OptiSolveError
from casadi_hybrid.solver.options.foreign import OptionWarning

LOWER = ca.Sparsity.lower(2)
QUIET = {"print_time": False}, {"print_level": 0, "sb": "yes"}
HERE = Path(__file__).name


def assert_close(value, expected):
    np.testing.assert_allclose(value, expected, atol=1e-6, rtol=1e-6)


def hybrid(opti, *options):
    opti.solver("hybrid", *options)
    return opti


def solved(opti, **options):
    """Solve a copy of a ca.Opti made elsewhere."""
    return hybrid(Opti(opti.copy()), options).solve()


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
    opti.subject_to(constraints)
    opti.set_value(p, 1)
    opti.set_initial(x, 2)
    return opti, x, p, q, constraints


def compare(opti, expressions, constraints, **options):
    """Solve both ways; values and duals have to agree."""
    ours = solved(opti, **options)
    assert ours.success
    theirs = opti.copy()
    theirs.solver("ipopt", QUIET[0], {**QUIET[1], "tol": 1e-11})
    expected = theirs.solve()
    everything = (*expressions, opti.f, opti.x, opti.lam_g)
    pairs = [(ours.value(e), expected.value(e)) for e in everything]
    pairs += [(ours.dual(c), expected.value(theirs.dual(c))) for c in constraints]
    for value, other in pairs:
        assert_close(value, other)
        assert np.shape(value) == np.shape(other)
    return ours


def test_every_kind_of_constraint_as_ipopt():
    opti, x, p, q, constraints = mixed()
    cold = compare(opti, [x, q, p, x @ x, ca.sum1(ca.vec(x)) - q], constraints)
    assert cold.dual(constraints[2]) == pytest.approx(1, abs=1e-6)
    opti.set_initial(opti.x, cold.value(opti.x))
    opti.set_initial(opti.lam_g, cold.value(opti.lam_g))
    warm = solved(opti)
    assert warm.result.iterations < cold.result.iterations
    assert_close(warm.dual(constraints[0]), cold.dual(constraints[0]))


def test_linear_scales_change_no_value():
    opti, x, p, q, constraints = mixed()
    opti.set_linear_scale(q, 100, 3)
    opti.minimize(ca.sumsqr(x - p) + (q - 1) ** 2, 50)
    last = opti.bounded(0.1, x[1, 0], 3)
    opti.subject_to(last, 7)
    tight = {"tol": 1e-10, "residual_tol": 1e-9}  # of the scaled problem
    scaled = compare(opti, [x, q], [*constraints, last], **tight)
    shown, ours = [], hybrid(Opti(opti.copy()), tight)
    ours.callback(lambda i: shown.append(ours.debug.value(q)))
    ours.solve()
    assert_close(shown[-1], scaled.value(q))
    function = ours.to_function("F", [q, p], [opti.x, opti.lam_g])
    for output, label in zip(function(0.3, 1), (opti.x, opti.lam_g), strict=True):
        assert_close(output.full().ravel(), scaled.value(label))
    assert "scaled problem" in scaled.explain()
    assert "scaled problem" not in solved(mixed()[0]).explain()


def test_problems_without_objective_or_constraint():
    opti = hybrid(Opti())
    x, weight = opti.variable(), opti.parameter()
    opti.subject_to(x**3 == 8)
    opti.set_initial(x, 1)
    assert_close(opti.solve().value(x), 2)
    opti.subject_to()
    opti.minimize(weight**2)  # of a parameter alone
    opti.set_value(weight, 2)
    solution = opti.solve()
    assert (solution.value(opti.f), solution.value(weight)) == (4, 2)
    with pytest.raises(RuntimeError):
        solution.value(x)
    with pytest.raises(RuntimeError, match="conic"):
        Opti("cone")


@pytest.mark.parametrize("kind", ["conic", "nlp"])
def test_symmetric_and_named_variables(kind):
    opti = hybrid(Opti(kind))
    P, z = opti.variable(2, 2, "symmetric"), opti.variable(ca.MX.sym("depth"))
    opti.minimize(ca.sumsqr(P - ca.DM([[1, 2], [4, 4]])) + (z - 1) ** 2)
    sol = opti.solve()
    assert_close(sol.value(P), [[1, 3], [3, 4]])
    assert sol.variable_names[-1].startswith(f"depth ({HERE}:")


@pytest.mark.parametrize("plugin", ["ipopt", "hybrid"])
def test_script_runs_with_either_name(plugin, capfd):
    opti, x, p, line = corner()
    opti.solver(plugin, *QUIET)
    sol = opti.solve()
    assert isinstance(opti, ca.Opti)
    assert isinstance(sol, ca.OptiSol)
    assert_close(sol.value(x), [1, 1])
    assert_close(opti.value(x), sol.value(x))
    assert_close(sol.value(opti.dual(line)), 4)
    assert sol.value(ca.sum1(x) * p, [p == 5, x == 1]) == 10
    assert sol.opti.nx == opti.nx == 2
    status = opti.return_status()
    assert status == sol.opti.return_status() == opti.stats()["return_status"]
    assert status in str(opti)
    assert status in str(sol)
    assert opti.debug.casadi_solver.name_in()[:2] == ["x0", "p"]
    assert "Ipopt" not in capfd.readouterr().out.replace("Ipopt, a library", "")


def test_new_numbers_keep_the_solver():
    opti, x, p, line = corner()
    first = hybrid(opti).solve()
    solver = opti.debug.casadi_solver
    opti.set_value(p, 0.5)
    opti.set_initial(first.value_variables())
    opti.set_initial(opti.lam_g, first.value(opti.lam_g))
    assert_close(opti.solve().value(x), [0.5, 0.5])
    assert_close(first.value(x), [1, 1])  # a copy of its own
    opti.callback(lambda i: None)
    opti.copy().solve()
    opti.solve()
    assert opti.debug.casadi_solver is solver
    opti.subject_to(x[1] >= 0.7)
    assert_close(opti.solve().value(x), [0.5, 0.7])
    solver = opti.debug.casadi_solver
    opti.set_value(first.value_parameters())
    assert_close(opti.solve().value(x), [1, 1])
    assert opti.debug.casadi_solver is solver
    opti.subject_to()
    assert_close(opti.solve().value(x), [3, 3])
    with pytest.raises(InputError, match="not a constraint"):
        opti.solve().dual(line)


def test_callback_sees_every_iterate_once():
    opti, x, _, line = corner()
    seen = []
    hybrid(opti)
    opti.callback(lambda i: seen.append((i, opti.debug.value(x), opti.debug.value(line.dep(0)))))
    sol = opti.solve()
    assert [i for i, *_ in seen] == sol.stats()["iterations"]["iter"]
    for (_, point, row), f in zip(seen, sol.stats()["iterations"]["obj"], strict=True):
        assert_close([np.sum((point - 3) ** 2), point.sum()], [f, row])
    assert_close(seen[-1][1], sol.value(x))
    count = len(seen)
    opti.copy().solve()  # as in CasADi a copy has no callback
    opti.callback()
    opti.solve()
    assert len(seen) == count
    opti.callback(seen.append)
    for plugin in ("ipopt", "hybrid"):  # it stays for the other solver, and comes back from there
        seen.clear()
        opti.solver(plugin, *QUIET)
        opti.solve()
        assert seen[0] == 0


def test_values_outside_the_problem_are_refused():
    opti, x, _, _ = corner()
    unused, weight, nothing = opti.variable(), opti.parameter(), opti.variable(0, 3)
    sol = hybrid(opti).solve()
    for foreign in (unused, weight, Opti().variable(), ca.MX.sym("w")):
        with pytest.raises(RuntimeError):
            sol.value(foreign)
    assert sol.value(unused + 1, [unused == 1]) == 2
    assert np.size(sol.value(nothing)) == 0
    opti.set_initial(sol.value_variables())  # with nothing among them
    assert_close(opti.debug.value(x, opti.initial()), [1, 1])
    with pytest.raises(RuntimeError, match="have not solved"):
        opti.value(x)  # set_initial makes the solution one of before


def test_failure_leaves_the_latest_values(capsys):
    opti, x, *_ = corner()
    opti.subject_to(x[1] >= 4)
    with pytest.raises(OptiSolveError, match="'Infeasible_Problem_Detected'") as caught:
        hybrid(opti).solve()
    assert HERE in str(caught.value)
    assert isinstance(caught.value, RuntimeError)  # CasADi's
    assert isinstance(caught.value, SolveError)  # what nlpsol raises where it is to raise
    solution = caught.value.solution
    assert isinstance(solution, OptiSolution)
    np.testing.assert_array_equal(opti.debug.value(x), solution.result.x)
    assert not opti.stats()["success"]
    with pytest.raises(OptiSolveError):
        opti.solve_limited()  # no limit has ended it
    capsys.readouterr()
    opti.debug.show_infeasibilities(1e-3)
    shown = capsys.readouterr().out
    value = opti.debug.value(opti.g)
    violated = (value > [2.001, np.inf, np.inf]) | (value < [-np.inf, -0.001, 3.999])
    assert violated.any()
    assert [f"i = {i}/3" in shown for i in range(3)] == list(violated)


def test_solve_limited_accepts_a_limit():
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


def test_options_come_in_either_dictionary():
    opti, *_ = corner()
    with pytest.raises(RuntimeError, match="solver"):
        opti.solve()
    with pytest.warns(OptionWarning, match="linear_solver"):
        hybrid(opti, {"ipopt.tol": 1e-7}, {"linear_solver": "mumps", "max_iter": 0})
    assert opti.solve_limited().stats()["iter_count"] == 0
    for options, message in (({"max_iters": 3}, "'max_iter'"), (1e-8, "float")):
        with pytest.raises(InputError, match=message):
            hybrid(opti, options)
    hybrid(opti, {"variable_names": ["left", "right"]})
    assert opti.solve().variable_names == ("left", "right")


def test_to_function_solves_and_differentiates():
    opti, x, p, _ = corner()
    hybrid(opti)
    function = opti.to_function("F", [p, x], [x, opti.lam_g, opti.f], ["p", "x0"], ["x", "l", "f"])
    for value, best, multiplier in ((3, 1, 4), (0.5, 0.5, 0)):
        outputs = function(p=value, x0=[0.1, 0.2])
        assert_close(outputs["x"], [[best], [best]])
        assert_close(outputs["l"], [[multiplier], [0]])
        assert_close(outputs["f"], 2 * (best - value) ** 2)
    q = ca.MX.sym("q")
    slope = ca.Function("slope", [q], [ca.jacobian(function(q, 0)[0], q)])
    assert_close(slope(0.5), [[1], [1]])
    named = opti.to_function("F", {"p": p, "both": x}, ["p"], ["both"])
    assert_close(named(3), [[1], [1]])
    opti.set_value(p, 0.25)
    assert_close(opti.to_function("F", [x], [x])(0), [[0.25], [0.25]])  # p has its present value
    for error, message, arguments in (
        (InputError, "Argument 1 is not purely symbolic", ([x, p + 1], [x])),
        (RuntimeError, "different instance", ([Opti().parameter()], [x])),
        (InputError, "'y'", ({"p": p, "x": x}, ["p"], ["y"])),
        (InputError, "to_function takes", ([p],)),
    ):
        with pytest.raises(error, match=message):
            opti.to_function("F", *arguments)


def test_opti_made_elsewhere_is_solved():
    existing, x, p, line = corner(ca.Opti)
    opti = hybrid(Opti(existing))
    assert_close(opti.solve().dual(line), 4)
    assert_close(existing.value(x), [1, 1])
    existing.set_value(p, 0.5)
    assert_close(opti.solve().value(x), [0.5, 0.5])
    existing.subject_to(x[1] >= 0.7)
    existing.solver("ipopt", *QUIET)
    existing.solve()  # which bakes the problem that is solved again here
    assert_close(opti.solve().value(x), [0.5, 0.7])
    existing.subject_to(x[0] >= 0.6)
    hybrid(opti).solve()
    with pytest.raises(RuntimeError, match="hybrid"):
        existing.solve()  # never by the solver that CasADi made for the former problem


def test_copies_keep_solver_and_solution():
    opti, x, p, _ = corner()
    hybrid(opti).solve()
    for other in (Opti(opti), copy.copy(opti), copy.deepcopy(opti)):
        assert other.return_status() == "Solve_Succeeded"
        assert_close(other.value(x), [1, 1])
        other.set_value(p, 0.5)  # CasADi copies the name only
        assert_close(opti.solve().value(x), [0.5, 0.5])
        opti.set_value(p, 3)
        opti.solve()


def test_advanced_solves_step_by_step():
    opti, x, *_ = corner()
    opti.callback(lambda i: None)
    steps = hybrid(opti).advanced
    steps.bake()
    steps.solve_prepare()
    steps.res(steps.solve_actual(steps.arg()))
    assert_close(steps.value(x), [1, 1])
    assert steps.return_status() == "Solve_Succeeded"
    assert_close(steps.res()["f"], 8)
    assert steps.baked_copy().problem_dirty() is False
    assert [steps.g_index_reduce_g(1), steps.g_index_unreduce_g(1)] == [1, 1]
    assert steps.g_index_reduce_x(1) == -1
    assert opti.return_status() == "unknown"  # advanced is a copy
    with pytest.raises(RuntimeError, match="have not solved"):
        opti.stats()


def test_names_say_the_line(monkeypatch):
    for slow in ("x_lookup", "g_lookup"):  # one call an entry would be quadratic in their number
        monkeypatch.delattr(ca.OptiAdvanced, slow)
    opti, *_ = mixed()
    ours = solved(opti)
    assert len({*ours.variable_names}) == opti.nx
    assert len({*ours.constraint_names}) == opti.ng
    assert f"[1, 0] ({HERE}:" in ours.variable_names[1]
    assert ours.constraint_names[3].startswith(f"g[3] ({HERE}:")
    monkeypatch.undo()
    assert HERE in ours.describe_constraint(0)
    assert "2x2" in ours.describe_variable(0)
    opti = hybrid(Opti())
    x = opti.variable()
    opti.minimize((x - 3) ** 2)
    opti.subject_to(x <= 2)
    first = opti.solve()
    opti.subject_to()
    opti.subject_to(x <= 2)  # the same expression in another line
    assert first.constraint_names != opti.solve().constraint_names


def test_refusals_name_the_line():
    opti, x, p, q, _ = mixed()
    with pytest.raises(InputError, match="dict"):
        Opti({"x": x})
    for change, error, message in (
        (lambda o: o.subject_to(o.bounded(2, q * p, 1)), InputError, rf"lbg\[7\].*\({HERE}:\d"),
        (lambda o: o.subject_to(x >= 0), InputError, "semidefinite"),
        (lambda o: o.minimize(ca.sumsqr(o.variable(LOWER))), InputError, rf"_x_\d \({HERE}:\d"),
        (lambda o: o.set_domain(q, "integer"), InputError, rf"_x_2 \({HERE}:\d+\)"),
        (lambda o: o.subject_to(q >= o.parameter()), RuntimeError, rf"opti\d+_p_\d[\s\S]*{HERE}"),
    ):
        changed = opti.copy()
        change(changed)
        with pytest.raises(error, match=message):
            solved(changed)
