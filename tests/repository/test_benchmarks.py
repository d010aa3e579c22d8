"""Benchmarks: the judge knows solutions, grids and COPS are right, breaks can be applied."""

import breaks
import casadi as ca
import numpy as np
import pytest
from peers.cases import cases
from peers.judge import TOLERANCE, Judge, judged
from peers.workers import Run, solve
from problems.grids import published_costs, read_grid
from support.paths import TESTS

NO_MULTIPLIERS = {"lam_g": (np.nan,), "lam_x": (np.nan, np.nan)}
SOLUTION = {"x": (0.5, 0.5), "lam_g": (-1.0,), "lam_x": (4.0, 0.0)}


def projection(target: float = 2.0) -> Judge:
    """min (x1 − target)² + x2² subject to x1 + x2 = 1, x1 ≤ 0.5: x* = (0.5, 0.5)."""
    x = ca.SX.sym("x", 2)
    data = {"x": x, "f": (x[0] - target) ** 2 + x[1] ** 2, "g": x[0] + x[1]}
    bounds = {"lbx": [-np.inf] * 2, "ubx": [0.5, np.inf], "lbg": [1.0], "ubg": [1.0]}
    return Judge(data | bounds)


def test_judge_accepts_the_solution():
    judge = projection()
    assert judge.residual(**SOLUTION) == pytest.approx(0.0, abs=1e-12)
    # Without usable multipliers the point alone counts.
    assert judge.residual(**SOLUTION | NO_MULTIPLIERS) == pytest.approx(0.0, abs=1e-12)
    assert judge.residual(**SOLUTION | {"lam_x": (0.0, 0.0)}) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("x", [(0.5, 0.51), (0.4, 0.6), (0.6, 0.4), (np.nan, 0.5)])
def test_judge_rejects_perturbed_points(x):
    judge = projection()
    assert judge.residual(**SOLUTION | {"x": x}) > TOLERANCE
    assert judge.residual(**SOLUTION | NO_MULTIPLIERS | {"x": x}) > TOLERANCE
    assert not judge.infeasible(x)
    assert not judge.unbounded(x)


def test_judge_rejects_the_wrong_sign():
    """At (0.5, 0.5) the bound x1 ≤ 0.5 would have to pull when the target is −2."""
    assert projection(-2.0).residual((0.5, 0.5), (-1.0,), (-4.0, 0.0)) > TOLERANCE


def test_judge_confirms_proofs_alone():
    x = ca.SX.sym("x")
    free = {"lbx": [-np.inf], "ubx": [np.inf]}
    gap = {"x": x, "f": x, "g": ca.vertcat(x**2 + 1, x), "lbg": [0, -5], "ubg": [0, 5], **free}
    assert Judge(gap).infeasible((0.0,))
    assert not Judge(gap).infeasible((1.0,))
    ray = {"x": x, "f": -x, "g": ca.SX(0, 1), "lbg": [], "ubg": [], "lbx": [0], "ubx": [np.inf]}
    assert Judge(ray).unbounded((1e11,))
    assert not Judge(ray).unbounded((1e3,))


@pytest.mark.parametrize("change", breaks.BREAKS, ids=lambda change: change.name)
def test_break_can_be_applied(change):
    broken = change.applied(change.source)
    if change.file.endswith(".py"):
        compile(broken, change.file, "exec")
    assert change.tests
    assert all((TESTS / name.split("::")[0]).is_file() for name in change.tests)


GRID = """
function mpc = two
mpc.baseMVA = 100.0; % MVA
mpc.bus = [ % number type Pd Qd Gs Bs area Vm Va baseKV zone Vmax Vmin
    7 3 0 0 0 0 1 1 0 230 1 1.1 0.9;
    9 1 80 20 5 -10 1 1 0 230 1 1.1 0.9;
    8 4 50 10 0 0 1 1 0 230 1 1.1 0.9; % isolated
];
mpc.gen = [
    7 0 0 90 -90 1 100 1 200 0;
    9 0 0 90 -90 1 100 0 200 0; % off
];
mpc.branch = [
    7 9 0.02 0.1 0.04 150 0 0 0.95 10 1 -30 30;
    7 9 0.01 0.2 0.00 0 0 0 0 0 1 -360 360;
    9 7 0.01 0.2 0.00 0 0 0 0 0 0 -30 30; % open
];
mpc.gencost = [
    2 0 0 3 0.01 14 2;
    2 0 0 2 20 1 0;
];
"""
BASELINE = """
| pglib_opf_case5_pjm | 5 | 6 | 1.7480e+04 | 1.7552e+04 | 14.55 |
| pglib_opf_case9_api | 9 | 9 | 1.0000e+01 | n.a. | -- |
"""


def test_grid_balances_as_complex_power(tmp_path):
    path = tmp_path / "two.m"
    path.write_text(GRID)
    data = read_grid(path)
    theta, v = np.array([0.0, -0.2]), np.array([1.05, 0.97])
    p, q = 0.9, 0.3
    g = ca.Function("g", [data["x"]], [data["g"]])([*theta, *v, p, q]).full().ravel()
    V, out = v * np.exp(1j * theta), np.zeros(2, dtype=complex)
    flows = []
    for z, b, tap in ((0.02 + 0.1j, 0.04, 0.95 * np.exp(1j * np.pi / 18)), (0.01 + 0.2j, 0, 1)):
        inner = V[0] / tap  # behind the ideal transformer
        start, end = ((a - c) / z + 0.5j * b * a for a, c in ((inner, V[1]), (V[1], inner)))
        flows.append((inner * np.conj(start), V[1] * np.conj(end)))
        out += flows[-1]
    taken = np.array([0, 0.8 + 0.2j]) + np.array([0, 0.05 + 0.1j]) * v**2
    balance = np.array([p + 1j * q, 0]) - taken - out
    limits = np.abs(np.array(flows[0])) ** 2
    wanted = np.concatenate((balance.real, balance.imag, limits, [0.2]))
    np.testing.assert_allclose(g, wanted, atol=1e-12)
    assert data["ubg"][-3:] == pytest.approx([2.25, 2.25, np.pi / 6])
    cost = ca.Function("f", [data["x"]], [data["f"]])([*theta, *v, p, q])
    assert float(cost) == pytest.approx(0.01 * 90**2 + 14 * 90 + 2)


def test_published_costs_are_read(tmp_path):
    (tmp_path / "BASELINE.md").write_text(BASELINE)
    assert published_costs(tmp_path) == {"pglib_opf_case5_pjm": 17552.0}


@pytest.mark.parametrize("name", ["electrons-25", "chain-50", "polygon-6", "steering-200"])
def test_published_value_is_reached(name):
    case = next(case for case in cases("cops") if case.name == name)
    outcome = judged(case, Judge(case.build()), solve(Run("hybrid"), case))
    assert (outcome.kind, outcome.f) == ("solved", pytest.approx(case.f_star, rel=case.digits))


@pytest.mark.slow
def test_every_break_is_noticed():
    assert breaks.main([]) == 0
