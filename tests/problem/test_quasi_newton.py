"""Curvature learned from first derivatives, and problems that have no second ones."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
import quasi_newton
from problems.black_box import PROBLEMS, Step, pendulum, step_of
from support.cases.nlp import solved
from support.cases.watched import PythonFunction

from casadi_hybrid import (
    Derivatives,
    InputError,
    Problem,
    Solver,
    nlpsol,
    solution_sensitivity,
    verify,
)
from casadi_hybrid.problem.hessian.quasi_newton import Blocks, QuasiNewton

LEARN = {"hessian_approximation": "limited-memory"}


class Square(ca.Callback):
    """v ↦ ‖v‖² + v_0⁴, with or without a Jacobian, which has no derivatives."""

    def __init__(self, size: int, options: dict[str, Any], *, jacobian: bool) -> None:
        ca.Callback.__init__(self)
        self.size, self._wanted = size, jacobian
        self._jacobian: ca.Function | None = None
        self.construct("square", options)

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(self.size, 1)

    def eval(self, arguments: Any) -> list[ca.DM]:
        return [ca.sumsqr(arguments[0]) + arguments[0][0] ** 4]

    def has_jacobian(self) -> bool:
        return self._wanted

    def get_jacobian(self, name: str, *others: Any) -> ca.Function:
        self._jacobian = Slope(name, self.size)
        return self._jacobian


class Slope(ca.Callback):
    def __init__(self, name: str, size: int) -> None:
        ca.Callback.__init__(self)
        self.size = size
        self.construct(name, {})

    def get_n_in(self) -> int:
        return 2

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense((self.size, 1)[i], 1)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(1, self.size)

    def eval(self, arguments: Any) -> list[Any]:
        slope = 2 * arguments[0].T
        slope[0] += 4 * arguments[0][0] ** 3
        return [slope]


def with_square(square: Square) -> dict[str, Any]:
    x = ca.MX.sym("x", 4)
    f = square(x[:2]) + ca.sumsqr(x - 2)
    return {"x": x, "f": f, "g": ca.vertcat(square(x[2:]), x[0] + x[3])}


def test_curvature_is_learned_by_itself_where_there_is_none() -> None:
    square = Square(2, {}, jacobian=True)
    nlp = with_square(square)
    solver = nlpsol("s", "hybrid", nlp)
    found = solver(x0=1, lbg=[0, 1], ubg=[5, 5])
    assert solver.stats()["success"]
    assert solver.stats()["hessian"] == "limited-memory"
    assert solver.stats()["n_call_nlp_hess_l"] == 0
    text = solver.explain()
    assert "(limited memory)" in text
    assert "no second derivatives" in text
    x = ca.SX.sym("x", 4)
    a, b = (ca.sumsqr(v) + v[0] ** 4 for v in (x[:2], x[2:]))
    plain = {"x": x, "f": a + ca.sumsqr(x - 2), "g": ca.vertcat(b, x[0] + x[3])}
    exact = nlpsol("s", "hybrid", plain)(x0=1, lbg=[0, 1], ubg=[5, 5])
    for key in ("x", "lam_g", "lam_x"):
        np.testing.assert_allclose(found[key].full(), exact[key].full(), atol=1e-5)
    report = verify(nlp, solver.result)
    assert report.accepted
    assert report.second.verdict.name == "UNAVAILABLE"
    assert "not known to be a minimizer" in str(report)


def test_what_needs_second_derivatives_says_so() -> None:
    square = Square(4, {}, jacobian=True)
    x = ca.MX.sym("x", 4)
    problem = Problem(x=x, f=square(x), h=x[0] + x[1] - 1)
    assert Solver(problem).solve(1).success
    with pytest.raises(InputError, match="there are no second derivatives"):
        problem.with_derivatives(Derivatives("exact")).functions  # noqa: B018
    with pytest.raises(InputError, match=r"second derivatives are needed.*Derivatives cannot"):
        solution_sensitivity(problem, Solver(problem).solve(1))
    assert Solver(problem, "gda", max_iter=3).solve(1).iterations == 3


def test_no_derivatives_at_all_are_refused_with_a_remedy() -> None:
    square = Square(2, {}, jacobian=False)
    x = ca.MX.sym("x", 2)
    with pytest.raises(InputError, match=r"f has no first derivatives: .*square.*enable_fd"):
        nlpsol("s", "hybrid", {"x": x, "f": square(x)})
    with pytest.raises(InputError, match="g has no first derivatives"):
        nlpsol("s", "hybrid", {"x": x, "g": square(x)})
    given = ca.Function("grad_f", [x], [0, 2 * x + ca.vertcat(4 * x[0] ** 3, 0)])
    with pytest.raises(InputError, match="must take 2 arguments"):
        nlpsol("s", "hybrid", {"x": x, "f": square(x)}, {"grad_f": given})
    none = ca.MX.sym("p", 0)
    given = ca.Function("grad_f", [x, none], [0, 2 * x + ca.vertcat(4 * x[0] ** 3, 0)])
    nlp = {"x": x, "f": square(x), "g": x[0] - x[1]}
    solver = solved(nlp, {"grad_f": given}, x0=3, lbg=1, ubg=2)
    assert solver.stats()["success"]
    problem = Problem.from_nlp(nlp, lbg=1, ubg=2, derivatives=Derivatives(grad_f=given))
    assert verify(problem, solver.result).accepted


def test_finite_differences() -> None:
    square = Square(2, {"enable_fd": True}, jacobian=False)
    solver = solved(with_square(square), x0=1, lbg=[0, 1], ubg=[5, 5])
    assert solver.stats()["success"]
    assert solver.result.residuals.stationarity <= 1e-6
    assert solver.stats()["hessian"] == "limited-memory"
    assert "finite differences" in solver.explain()


def test_two_functions_may_have_one_name() -> None:
    x = ca.MX.sym("x", 2)
    f, g = PythonFunction(lambda v: ca.sumsqr(v - 1), 2), PythonFunction(ca.sum1, 2)
    solve = nlpsol("s", "hybrid", {"x": x, "f": f(x), "g": g(x)})
    found = solve(x0=[0.3, 0.1], ubg=1)
    np.testing.assert_allclose(found["x"], [[0.5], [0.5]], atol=1e-5)
    assert float(found["g"]) == pytest.approx(1.0)


def test_trial_points_have_no_differences() -> None:
    """Iterates have: of three variables at four points each, and the value."""
    calls = []

    def model(x: Any) -> Any:
        calls.append(x)
        return ca.sumsqr(10 * (x[1:] - x[:-1] ** 2)) + ca.sumsqr(1 - x[:-1])

    black, x = PythonFunction(model, 3), ca.MX.sym("x", 3)
    y = black(x)
    solver = nlpsol("s", "hybrid", {"x": x, "f": y + x[0], "g": y + ca.sumsqr(x)})
    for _ in range(2):  # what the first one makes has calls too
        calls.clear()
        solver(x0=[-1.2, 1, 1], ubg=3)
    stats = solver.stats()
    iterates, points = stats["n_call_nlp_grad_f"], stats["n_call_nlp_f"]
    assert stats["success"]
    assert iterates == stats["n_call_nlp_jac_g"] <= stats["iter_count"] + 2
    assert points == stats["n_call_nlp_g"] >= 2 * iterates - 2
    assert len(calls) == points + 12 * iterates


@pytest.mark.parametrize("word", ["hessian_approximation", "ipopt.hessian_approximation"])
def test_second_differences_where_they_are_asked_for_as_in_ipopt(word: str) -> None:
    def rosenbrock(x: Any) -> Any:
        return ca.sumsqr(10 * (x[1:] - x[:-1] ** 2)) + ca.sumsqr(1 - x[:-1])

    black, x = PythonFunction(rosenbrock, 4), ca.MX.sym("x", 4)
    nlp = {"x": x, "f": black(x), "g": ca.sumsqr(x)}
    solver = nlpsol("s", "hybrid", nlp, {word: "exact"})
    # Its own tolerances: differences lead no further.
    quiet = {"ipopt": {"print_level": 0, "sb": "yes"}, "print_time": False}
    ipopt = ca.nlpsol("s", "ipopt", nlp, quiet)
    start = {"x0": 0.5, "ubg": 6}
    found, by_ipopt = solver(**start), ipopt(**start)
    assert solver.stats()["success"]
    assert solver.stats()["hessian"] == "exact"
    np.testing.assert_allclose(found["x"], by_ipopt["x"], atol=1e-6)
    plain = solved(nlp, **start)
    assert solver.stats()["iter_count"] < 0.6 * plain.stats()["iter_count"]
    assert abs(solver.stats()["iter_count"] - ipopt.stats()["iter_count"]) <= 5


def test_differences_too_coarse_for_the_tolerance_end_honestly() -> None:
    square = Square(2, {"enable_fd": True}, jacobian=False)
    x = ca.MX.sym("x", 2)
    solver = nlpsol("s", "hybrid", {"x": x, "f": 1e7 * (square(x) - ca.sum1(x))}, {"max_iter": 60})
    found = solver(x0=1)
    result = solver.result
    assert result.success == (result.residuals.stationarity <= 1e-6)
    np.testing.assert_allclose(found["x"].full().ravel(), [0.385458, 0.5], atol=1e-4)


def quadratics(n: int, seed: int) -> tuple[list[np.ndarray], Any]:
    """∇² of f and of two rows, constant and indefinite, and (x) → ∇f, J."""
    draws = np.random.default_rng(seed)
    parts = [(A + A.T) / 2 for A in draws.standard_normal((3, n, n))]
    return parts, lambda x: (parts[0] @ x, np.array([A @ x for A in parts[1:]]))


def test_constant_curvature_is_known_after_n_steps_for_any_multipliers() -> None:
    n = 5
    parts, slopes = quadratics(n, 1)
    memory = QuasiNewton(Blocks(n, (np.arange(n),)))
    draws = np.random.default_rng(2)
    for x in draws.standard_normal((n + 1, n)):
        memory.see(x, *slopes(x))
    for objective, lam in ((1.0, [0.3, -2.0]), (1e-3, [5.0, 1.0])):
        H = objective * parts[0] + lam[0] * parts[1] + lam[1] * parts[2]
        found = memory.hessian(objective, np.array(lam))
        np.testing.assert_allclose(found, H, atol=1e-7 * np.abs(H).max())
        assert np.linalg.eigvalsh(found).min() < 0.0


def test_blocks_are_stages() -> None:
    N = 5
    x, u = ca.SX.sym("x", 2, N + 1), ca.SX.sym("u", N)
    step = [x[:, k + 1] - x[:, k] - ca.vertcat(ca.sin(x[1, k]), x[0, k] * u[k]) for k in range(N)]
    z = ca.vertcat(ca.vec(x), u)
    problem = Problem(x=z, f=ca.sumsqr(u), h=ca.vertcat(*step))
    functions = problem.with_derivatives(Derivatives("limited-memory")).functions
    groups = {tuple(one.tolist()) for one in functions.blocks.members}
    stages = {(2 * k, 2 * N + 2 + k) for k in range(N)}  # x_0 and u couple, x_1 is on its own
    assert groups == stages | {(2 * k + 1,) for k in range(N)}
    exact = problem.functions.hessian_sparsity
    assert (exact + functions.hessian_sparsity).nnz() == functions.hessian_sparsity.nnz()


def test_stages_learn_at_once_and_alone() -> None:
    parts, _ = quadratics(2, 3)
    n = 6
    H = np.kron(np.eye(3), parts[0]) * np.repeat([1.0, 2.0, 3.0], 2)[:, None]
    pairs = tuple(np.array([2 * k, 2 * k + 1]) for k in range(3))
    shape = Blocks(n, pairs)
    dense = QuasiNewton(shape)
    for x in np.random.default_rng(4).standard_normal((3, n)):  # two steps, for six variables
        dense.see(x, H @ x, np.zeros((0, n)))
    np.testing.assert_allclose(dense.hessian(1.0, np.zeros(0)), H, atol=1e-7)


def test_a_large_coupled_problem() -> None:
    n = 220
    x = ca.SX.sym("x", n)
    f = ca.sumsqr(x - 1) + ca.sumsqr(ca.sin(x[1:]) - x[:-1])
    nlp = {"x": x, "f": f, "g": ca.sumsqr(x)}
    solver = nlpsol("s", "hybrid", nlp, LEARN)
    found = solver(lbx=-1, ubx=0.9, ubg=40)
    assert solver.stats()["success"]
    assert solver.stats()["n_call_nlp_hess_l"] == 0
    exact = nlpsol("s", "hybrid", nlp)(lbx=-1, ubx=0.9, ubg=40)
    assert float(found["f"]) == pytest.approx(float(exact["f"]), rel=1e-6)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_sensitivities_of_the_black_boxes(name: str) -> None:
    step: Step = PROBLEMS[name](4).step
    draws = np.random.default_rng(7)
    x, u = draws.uniform(0.3, 0.9, step.nx), draws.uniform(0.3, 0.9, step.nu)
    _, A, B = step_of(step.rates, x, u, step.h)
    e = 1e-6
    for k, column in enumerate(np.hstack((A, B)).T):
        move = np.eye(step.nx + step.nu)[k] * e
        up, down = (
            step_of(step.rates, x + s * move[: step.nx], u + s * move[step.nx :], step.h)[0]
            for s in (1, -1)
        )
        np.testing.assert_allclose((up - down) / (2 * e), column, rtol=1e-5, atol=1e-7)


def test_a_black_box_swings_up() -> None:
    problem = pendulum(10)
    solver = nlpsol("s", "hybrid", problem.nlp)
    found = solver(x0=problem.x0, **problem.bounds)
    assert solver.stats()["success"]
    assert solver.stats()["hessian"] == "limited-memory"
    theta = found["x"].full().ravel()[0::3]
    assert theta[0] == pytest.approx(0.0, abs=1e-6)
    assert theta[-1] == pytest.approx(np.pi, abs=1e-6)


def test_the_benchmark_prints_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    quasi_newton.main(["--only", "6", "71", "--black-box"])
    printed = capsys.readouterr().out
    assert "hybrid: solved 2 of 2" in printed
    assert "IPOPT: solved 2 of 2" in printed
