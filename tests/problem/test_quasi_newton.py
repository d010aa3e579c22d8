"""Curvature learned from first derivatives, and problems that have no second ones."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
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


class Square(PythonFunction):
    """v ↦ ‖v‖² + v_0⁴, with or without a Jacobian, which has no derivatives."""

    def __init__(self, size: int, *, jacobian: bool = False, differences: bool = False) -> None:
        self.wanted = jacobian
        super().__init__(lambda v: ca.sumsqr(v) + v[0] ** 4, size, "square", enable_fd=differences)

    def has_jacobian(self) -> bool:
        return self.wanted

    def get_jacobian(self, name: str, *names_and_options: Any) -> ca.Function:
        v, value = ca.SX.sym("v", self.size), ca.SX.sym("value")
        slope = ca.horzcat(2 * v[0] + 4 * v[0] ** 3, 2 * v[1:].T)
        none = dict.fromkeys(("enable_forward", "enable_reverse", "enable_jacobian"), False)
        return ca.Function(name, [v, value], [slope], none | {"never_inline": True})


def test_missing_curvature_is_learned() -> None:
    def stated(kind: Any, square: Any) -> dict[str, Any]:
        x = kind.sym("x", 4)
        f, g = square(x[:2]) + ca.sumsqr(x - 2), ca.vertcat(square(x[2:]), x[0] + x[3])
        return {"x": x, "f": f, "g": g}

    square = Square(2, jacobian=True)
    nlp = stated(ca.MX, square)
    solver = nlpsol("s", "hybrid", nlp)
    solution = solver(x0=1, lbg=[0, 1], ubg=[5, 5])
    assert solver.stats()["success"]
    assert solver.stats()["hessian"] == "limited-memory"
    assert solver.stats()["n_call_nlp_hess_l"] == 0
    assert "limited memory" in solver.explain()
    plain = stated(ca.SX, lambda v: ca.sumsqr(v) + v[0] ** 4)
    exact = nlpsol("s", "hybrid", plain)(x0=1, lbg=[0, 1], ubg=[5, 5])
    for key in ("x", "lam_g", "lam_x"):
        np.testing.assert_allclose(solution[key].full(), exact[key].full(), atol=1e-5)
    report = verify(nlp, solver.result)
    assert report.accepted
    assert report.second.verdict.name == "UNAVAILABLE"


def test_missing_second_derivatives_are_named() -> None:
    square = Square(4, jacobian=True)
    x = ca.MX.sym("x", 4)
    problem = Problem(x=x, f=square(x), h=x[0] + x[1] - 1)
    with pytest.raises(InputError, match="no second derivatives"):
        problem.with_derivatives(Derivatives("exact")).functions  # noqa: B018
    with pytest.raises(InputError, match="second derivatives"):
        solution_sensitivity(problem, Solver(problem).solve(1))
    assert Solver(problem, "gda", max_iter=3).solve(1).iterations == 3


def test_missing_first_derivatives_are_named() -> None:
    square = Square(2)
    x = ca.MX.sym("x", 2)
    with pytest.raises(InputError, match=r"f has no first derivatives: .*square.*enable_fd"):
        nlpsol("s", "hybrid", {"x": x, "f": square(x)})
    with pytest.raises(InputError, match="g has no first derivatives"):
        nlpsol("s", "hybrid", {"x": x, "g": square(x)})
    none = ca.MX.sym("p", 0)
    given = ca.Function("grad_f", [x, none], [0, 2 * x + ca.vertcat(4 * x[0] ** 3, 0)])
    nlp = {"x": x, "f": square(x), "g": x[0] - x[1]}
    solver = solved(nlp, {"grad_f": given}, x0=3, lbg=1, ubg=2)
    assert solver.stats()["success"]
    problem = Problem.from_nlp(nlp, lbg=1, ubg=2, derivatives=Derivatives(grad_f=given))
    assert verify(problem, solver.result).accepted


def test_exact_second_differences_on_request() -> None:
    def rosenbrock(x: Any) -> Any:
        return ca.sumsqr(10 * (x[1:] - x[:-1] ** 2)) + ca.sumsqr(1 - x[:-1])

    black, x = PythonFunction(rosenbrock, 4), ca.MX.sym("x", 4)
    nlp, start = {"x": x, "f": black(x), "g": ca.sumsqr(x)}, {"x0": 0.5, "ubg": 6}
    # IPOPT's own tolerances: differences lead no further.
    ipopt = ca.nlpsol("s", "ipopt", nlp, {"ipopt": {"print_level": 0}, "print_time": False})
    expected, learned = ipopt(**start), solved(nlp, **start)
    for option in ("hessian_approximation", "ipopt.hessian_approximation"):
        solver = solved(nlp, {option: "exact"}, **start)
        assert solver.stats()["success"]
        assert solver.stats()["hessian"] == "exact"
        np.testing.assert_allclose(solver.result.x, expected["x"].full().ravel(), atol=1e-6)
        assert solver.stats()["iter_count"] < 0.6 * learned.stats()["iter_count"]
        assert abs(solver.stats()["iter_count"] - ipopt.stats()["iter_count"]) <= 5


def test_black_boxes_may_share_a_name() -> None:
    x = ca.MX.sym("x", 2)
    f, g = PythonFunction(lambda v: ca.sumsqr(v - 1), 2), PythonFunction(ca.sum1, 2)
    solver = solved({"x": x, "f": f(x), "g": g(x)}, x0=[0.3, 0.1], ubg=1)
    assert solver.stats()["hessian"] == "limited-memory"
    np.testing.assert_allclose(solver.result.x, [0.5, 0.5], atol=1e-5)
    assert solver.result.g == pytest.approx([1.0])
    assert "finite differences" in solver.explain()


def test_trial_points_need_no_differences() -> None:
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


def test_coarse_differences_end_honestly() -> None:
    square = Square(2, differences=True)
    x = ca.MX.sym("x", 2)
    solver = nlpsol("s", "hybrid", {"x": x, "f": 1e7 * (square(x) - ca.sum1(x))}, {"max_iter": 60})
    solver(x0=1)
    result = solver.result
    assert result.success == (result.residuals.stationarity <= 1e-6)
    np.testing.assert_allclose(result.x, [0.385458, 0.5], atol=1e-4)


def quadratics(n: int, seed: int) -> tuple[list[np.ndarray], Any]:
    """∇² of f and of two rows, constant and indefinite, and (x) → ∇f, J."""
    draws = np.random.default_rng(seed)
    parts = [(A + A.T) / 2 for A in draws.standard_normal((3, n, n))]
    return parts, lambda x: (parts[0] @ x, np.array([A @ x for A in parts[1:]]))


def test_quadratics_are_known_after_n_steps() -> None:
    n = 5
    parts, slopes = quadratics(n, 1)
    memory = QuasiNewton(Blocks(n, (np.arange(n),)))
    draws = np.random.default_rng(2)
    for x in draws.standard_normal((n + 1, n)):
        memory.see(x, *slopes(x))
    for objective, lam in ((1.0, [0.3, -2.0]), (1e-3, [5.0, 1.0])):
        H = objective * parts[0] + lam[0] * parts[1] + lam[1] * parts[2]
        learned = memory.hessian(objective, np.array(lam))
        np.testing.assert_allclose(learned, H, atol=1e-7 * np.abs(H).max())
        assert np.linalg.eigvalsh(learned).min() < 0.0


def test_blocks_learn_at_once() -> None:
    curvature = quadratics(2, 3)[0][0]
    H = np.kron(np.diag([1.0, 2.0, 3.0]), curvature)
    memory = QuasiNewton(Blocks(6, tuple(np.array([2 * k, 2 * k + 1]) for k in range(3))))
    for x in np.random.default_rng(4).standard_normal((3, 6)):  # two steps, for six variables
        memory.see(x, H @ x, np.zeros((0, 6)))
    np.testing.assert_allclose(memory.hessian(1.0, np.zeros(0)), H, atol=1e-7)


def test_blocks_are_stages() -> None:
    N = 5
    x, u = ca.SX.sym("x", 2, N + 1), ca.SX.sym("u", N)
    step = [x[:, k + 1] - x[:, k] - ca.vertcat(ca.sin(x[1, k]), x[0, k] * u[k]) for k in range(N)]
    z = ca.vertcat(ca.vec(x), u)
    problem = Problem(x=z, f=ca.sumsqr(u), h=ca.vertcat(*step))
    functions = problem.with_derivatives(Derivatives("limited-memory")).functions
    groups = {tuple(members.tolist()) for members in functions.blocks.members}
    stages = {(2 * k, 2 * N + 2 + k) for k in range(N)}  # x_0 and u couple, x_1 is on its own
    assert groups == stages | {(2 * k + 1,) for k in range(N)}
    exact = problem.functions.hessian_sparsity
    assert (exact + functions.hessian_sparsity).nnz() == functions.hessian_sparsity.nnz()


def test_large_coupled_problem() -> None:
    n = 220
    x = ca.SX.sym("x", n)
    f = ca.sumsqr(x - 1) + ca.sumsqr(ca.sin(x[1:]) - x[:-1])
    nlp = {"x": x, "f": f, "g": ca.sumsqr(x)}
    solver = nlpsol("s", "hybrid", nlp, LEARN)
    solution = solver(lbx=-1, ubx=0.9, ubg=40)
    assert solver.stats()["success"]
    assert solver.stats()["n_call_nlp_hess_l"] == 0
    exact = nlpsol("s", "hybrid", nlp)(lbx=-1, ubx=0.9, ubg=40)
    assert float(solution["f"]) == pytest.approx(float(exact["f"]), rel=1e-6)
