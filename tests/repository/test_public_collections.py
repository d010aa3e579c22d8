"""Public collections of the benchmarks: grids by complex arithmetic, COPS by published values."""

import casadi as ca
import numpy as np
import pytest
from peers.cases import cases
from peers.judge import Judge, judged
from peers.workers import Run, solve
from problems.grids import published_costs, read_grid

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
