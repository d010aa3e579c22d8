"""Problems from foreign code and files: derivatives, names and multipliers of the user arrive."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from support.paths import DATA

from casadi_hybrid import InputError, Problem, nlpsol


class Valley(ca.Callback):
    """(x, p) → (f, g) in Python, with CasADi's finite differences."""

    def __init__(self) -> None:
        ca.Callback.__init__(self)
        self.construct("valley", {"enable_fd": True})

    def get_n_in(self) -> int:
        return 2

    def get_n_out(self) -> int:
        return 2

    def get_name_in(self, i: int) -> str:
        return "xp"[i]

    def get_name_out(self, i: int) -> str:
        return "fg"[i]

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(2, 1) if i == 0 else ca.Sparsity.dense(0, 1)

    def eval(self, arguments: list[ca.DM]) -> list[ca.DM]:
        return list(valley(arguments[0]))


def valley(x):
    return (x[0] - 1) ** 4 + (x[1] - 2) ** 2 * x[0] ** 2 + x[1] ** 2, x[0] + x[1]


x, p, lam_f, lam_g = ca.MX.sym("x", 2), ca.MX.sym("p", 0), ca.MX.sym("lam_f"), ca.MX.sym("lam_g")
f, g = valley(x)
GRAD_F = ca.Function("grad_f", [x, p], [f, ca.gradient(f, x)])
JAC_G = ca.Function("jac_g", [x, p], [g, ca.jacobian(g, x)])
HESSIAN = ca.triu(ca.hessian(lam_f * f + lam_g * g, x)[0])
HESS_LAG = ca.Function("hess_lag", [x, p, lam_f, lam_g], [HESSIAN])


@pytest.mark.parametrize(
    ("options", "hessian"),
    [
        ({}, "limited-memory"),  # as of any finite differences
        ({"hessian_approximation": "limited-memory"}, "limited-memory"),
        ({"hessian_approximation": "exact"}, "exact"),
        ({"grad_f": GRAD_F, "jac_g": JAC_G}, "exact"),
        ({"grad_f": GRAD_F, "jac_g": JAC_G, "hess_lag": HESS_LAG}, "given"),
    ],
)
def test_derivatives_of_callbacks_are_those_asked_for(options, hessian):
    bounds = {"x0": [0.5, 0.5], "lbg": 1, "ubg": 3}
    solver = nlpsol("s", "hybrid", Valley(), options)
    answer = solver(**bounds)
    assert solver.stats()["success"]
    assert solver.stats()["hessian"] == hessian
    by_graph = nlpsol("s", "hybrid", {"x": x, "f": f, "g": g})(**bounds)
    np.testing.assert_allclose(answer["x"].full(), by_graph["x"].full(), atol=1e-5)


def test_foreign_code_has_no_residuals():
    with pytest.raises(InputError, match="residuals"):
        nlpsol("s", "hybrid", Valley(), {"hessian_approximation": "gauss-newton"})


def test_renamed_problems_keep_their_blocks():
    y = ca.SX.sym("y")
    problem = Problem(x={"y": y}, f=y**2, g={"row": (1, y, 2)})
    renamed = problem.renamed(["limit"], ["height"])
    assert renamed.constraint_names == ("limit",)
    numbers = renamed.numbers(x0={"y": 3}, lbg={"row": 0})
    assert numbers.x0.tolist() == [3]
    assert numbers.bounds.lbg.tolist() == [0]


@pytest.mark.parametrize(
    ("objective", "dual"), [("O0 0\n", 2), ("O0 1\no16\n", -2)], ids=["minimize", "maximize"]
)
def test_duals_of_a_file_become_multipliers(tmp_path: Path, objective, dual):
    text = (DATA / "sum_of_squares.nl").read_text("utf-8").format(integers=0)
    text = text.replace("O0 0\n", objective).replace("\nr\n", f"\nd1\n0 {dual}\nr\n")
    file = tmp_path / "problem.nl"
    file.write_text(text)
    answer = nlpsol("s", "hybrid", file)()
    np.testing.assert_allclose(answer["lam_g"].full(), -2, atol=1e-6)
    np.testing.assert_allclose(Problem.from_nlp(file).numbers().lam_g0, -2)
