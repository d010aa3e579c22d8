"""Problems 61–119 of Hock & Schittkowski are what is published of them.

Dimensions, f(x0), x* and f* are numbers of the publications; the formulas as transcribed and IPOPT
are held against them. The formulas that the book gives in another form (loops, a distance between
profiles) are checked against that form.
"""

import math
import sys
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import nnls

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from problems import hs_061_090, hs_091_119
from problems.hs_base import problems_of
from problems.hs_process import alkylation, heat_conduction, heating_error, heating_modes

PROBLEMS = {e.number: e for part in (hs_061_090, hs_091_119) for e in problems_of(part)}
MISSING = {82, 94, 115}
every = pytest.mark.parametrize("number", sorted(PROBLEMS))

# n and m of the classification in CUTEst (a chain is one row), of the book where CUTEst differs:
# 67 and 83 have their chains as two rows there, 88–91 always six variables, 110 is not in the copy.
# fmt: off
SIZES = {
    61: (3, 2), 62: (3, 1), 63: (3, 2), 64: (3, 1), 65: (3, 1), 66: (3, 2), 67: (3, 7), 68: (4, 2),
    69: (4, 2), 70: (4, 1), 71: (4, 2), 72: (4, 2), 73: (4, 3), 74: (4, 5), 75: (4, 5), 76: (4, 3),
    77: (5, 2), 78: (5, 3), 79: (5, 3), 80: (5, 3), 81: (5, 3), 83: (5, 3), 84: (5, 3), 85: (5, 21),
    86: (5, 10), 87: (6, 4), 88: (2, 1), 89: (3, 1), 90: (4, 1), 91: (5, 1), 92: (6, 1), 93: (6, 2),
    95: (6, 4), 96: (6, 4), 97: (6, 4), 98: (6, 4), 99: (7, 2), 100: (7, 4), 101: (7, 5),
    102: (7, 5), 103: (7, 5), 104: (8, 5), 105: (8, 1), 106: (8, 6), 107: (9, 6), 108: (9, 13),
    109: (9, 10), 110: (10, 0), 111: (10, 3), 112: (10, 3), 113: (10, 8), 114: (10, 11),
    116: (13, 14), 117: (15, 5), 118: (15, 17), 119: (16, 8),
}
# fmt: on

# f and Σ log(1 + |slack|) over the sides of the rows at off_minimizer(number), evaluated with the
# formulas of CUTEst (SIF files in the Python form of S2MPJ; 88–91 padded by zeros to its six
# variables). Left out: 110 (not in that copy), 67 (loops there), and those whose notes say how
# CUTEst differs.
# fmt: off
CUTEST = {
    61: (-143.6642717, 0.08994783603), 62: (-26443.09217, 0.02955880225),
    63: (960.772335, 1.030231631), 64: (6322.969364, 0.009909863451),
    65: (0.8650077438, 0.757073319), 66: (0.5226782402, 0.03168064102),
    68: (-0.8241105908, 0.03385640429), 69: (-957.0952858, 0.0388723773),
    70: (0.01000414446, 0.9994611521), 71: (17.61224748, 1.51654999),
    72: (734.9711698, 0.0004981255547), 73: (31.08594694, 0.931685049),
    74: (5198.796818, 5.857240465), 75: (5246.398423, 5.699042179),
    76: (-4.704611932, 1.529480186), 77: (0.2737755438, 0.650830464),
    78: (-3.011163916, 0.2849973594), 79: (0.0863340383, 0.2550054556),
    80: (0.04923434004, 0.284997366), 81: (0.0490543658, 0.284997366),
    83: (-30488.63054, 11.40497991), 84: (-5842806.565, 69.8372838),
    88: (1.391798234, 0.0001694302735), 89: (1.391286444, 8.008949552e-05),
    90: (1.396823077, 0.0002027301139), 91: (1.410338306, 2.622070398e-05),
    92: (1.401225882, 0.0002343338513), 93: (143.1762248, 0.2398366651),
    95: (1.168609054, 13.95264029), 96: (1.168609054, 15.25114767), 97: (4.320000548, 10.5095721),
    98: (4.320000548, 14.1531945), 99: (-822258317.9, 16.67202124), 100: (676.12416, 12.17896761),
    104: (3.833148472, 1.705108784), 106: (7119.748061, 23.17730958),
    107: (5140.092185, 0.08933099165), 108: (-0.8856707748, 3.496643289),
    109: (5437.406934, 58.49156492), 111: (-47.59505724, 0.01372351709),
    112: (-49.53780669, 0.1367490465), 113: (21.98263007, 8.972334052),
    114: (-1971.050504, 9.959696382), 116: (98.59198538, 13.41615111),
    118: (671.6555505, 42.20016862), 119: (251.5310319, 0.2233348562),
}
# fmt: on
DIFFERENT_IN_CUTEST = {67, 85, 86, 87, 101, 102, 103, 105, 110, 117}

# f* as the book prints it (112: as CUTEst quotes it), where the collection has another value.
PRINTED = {
    67: -1162.0365,
    85: -1.90513375,
    105: 1138.41624,
    106: 7049.330923,
    112: -47.707579,
    116: 97.588409,
}
# Of these, the value of the published x*.
AT_MINIMIZER = {number: PRINTED[number] for number in (85, 105, 116)}

# Where IPOPT from x0 is not held to f*, and why.
EXCEPTIONS = {108: "ends in the local minimum f = −0.6749814"}


@cache
def functions(number: int) -> tuple[dict, ca.Function]:
    nlp = PROBLEMS[number].build()
    gradient, jacobian = ca.gradient(nlp["f"], nlp["x"]), ca.jacobian(nlp["g"], nlp["x"])
    return nlp, ca.Function("nlp", [nlp["x"]], [nlp["f"], nlp["g"], gradient, jacobian])


@cache
def ipopt(number: int) -> tuple[str, float]:
    nlp, _ = functions(number)
    # Relaxed by 1e-8, the bounds of 95 and 96 would move f by 1e-4 of it.
    options = {"print_level": 0, "sb": "yes", "tol": 1e-9, "bound_relax_factor": 0}
    problem = {key: nlp[key] for key in ("x", "f", "g")}
    solver = ca.nlpsol("s", "ipopt", problem, {"print_time": False, "ipopt": options})
    bounds = {key: nlp[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    found = solver(x0=PROBLEMS[number].x0, **bounds)
    return solver.stats()["return_status"], float(found["f"])


def stationarity(number: int) -> float:
    """Return min ‖∇f + Jᵀλ + z‖ / ‖∇f‖ at x*, multipliers of the active sides with their signs."""
    nlp, evaluate = functions(number)
    x = np.array(PROBLEMS[number].x_star)
    _, g, gradient, jacobian = (np.atleast_2d(out.full()) for out in evaluate(x))
    values = np.concatenate((g.ravel(), x))
    normals = np.vstack((jacobian, np.eye(x.size)))
    lower = np.array(nlp["lbg"] + nlp["lbx"])
    upper = np.array(nlp["ubg"] + nlp["ubx"])
    at_lower, at_upper = np.abs(values - lower) < 1e-7, np.abs(values - upper) < 1e-7
    cone = np.vstack((normals[at_upper], -normals[at_lower])).T
    return nnls(cone, -gradient.ravel())[1] / np.linalg.norm(gradient)


def off_minimizer(number: int) -> np.ndarray:
    """Return a point near x* where no entry and no slack is 0."""
    x = np.array(PROBLEMS[number].x_star)
    return 1.01 * x + 0.01 * np.arange(1, x.size + 1) / x.size


def sides(number: int, x: np.ndarray) -> np.ndarray:
    """Return the slack of every equation and of every finite side of an inequality."""
    nlp, evaluate = functions(number)
    g = evaluate(x)[1].full().ravel()
    lower, upper = np.array(nlp["lbg"]), np.array(nlp["ubg"])
    second = np.isfinite(upper) & (lower < upper)
    return np.concatenate(((g - lower)[np.isfinite(lower)], (upper - g)[second]))


def test_numbers():
    assert set(PROBLEMS) == set(range(61, 120)) - MISSING
    for number, entry in PROBLEMS.items():
        assert entry.name == f"HS{number}"
        assert entry.source.endswith(f"problem {number}")


@every
def test_sizes(number):
    entry = PROBLEMS[number]
    first, second = entry.build(), entry.build()
    n, m = SIZES[number]
    assert first["x"].shape == (n, 1)
    assert first["f"].is_scalar()
    assert first["g"].shape == (m, 1)
    assert not ca.is_equal(first["x"], second["x"])
    assert [len(first[key]) for key in ("lbx", "ubx", "lbg", "ubg")] == [n, n, m, m]
    assert all(lower < upper for lower, upper in zip(first["lbx"], first["ubx"], strict=True))
    assert all(lower <= upper for lower, upper in zip(first["lbg"], first["ubg"], strict=True))


@every
def test_value_at_the_start(number):
    entry = PROBLEMS[number]
    _, evaluate = functions(number)
    f, g, gradient, jacobian = evaluate(entry.x0)
    assert all(np.isfinite(out.full()).all() for out in (f, g, gradient, jacobian))
    if entry.f0 is None:
        assert number in {67, 85}  # other formulas in CUTEst, see the notes
    else:
        assert float(f) == pytest.approx(entry.f0, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("number", sorted(CUTEST))
def test_same_functions_as_cutest(number):
    f, slack = CUTEST[number]
    x = off_minimizer(number)
    assert float(functions(number)[1](x)[0]) == pytest.approx(f, rel=1e-9)
    measure = np.log1p(np.abs(sides(number, x))).sum()
    assert measure == pytest.approx(slack, rel=1e-7)


def test_what_is_not_compared_with_cutest_says_why():
    assert set(PROBLEMS) - set(CUTEST) == DIFFERENT_IN_CUTEST
    assert all(PROBLEMS[number].note for number in DIFFERENT_IN_CUTEST - {110})


@every
def test_published_minimizer(number):
    entry = PROBLEMS[number]
    nlp, evaluate = functions(number)
    f, g, _, jacobian = (out.full() for out in evaluate(entry.x_star))
    size = 1 + np.abs(jacobian) @ np.abs(entry.x_star)
    assert np.all(g.ravel() >= np.array(nlp["lbg"]) - 1e-7 * size)
    assert np.all(g.ravel() <= np.array(nlp["ubg"]) + 1e-7 * size)
    assert np.all(np.array(entry.x_star) >= np.array(nlp["lbx"]))
    assert np.all(np.array(entry.x_star) <= np.array(nlp["ubx"]))
    assert f.item() == pytest.approx(AT_MINIMIZER.get(number, entry.f_star), rel=1e-6)


@every
def test_ipopt_reaches_the_optimum(number):
    status, f = ipopt(number)
    assert status == "Solve_Succeeded"
    if number in EXCEPTIONS:
        assert f > PROBLEMS[number].f_star + 0.1
    else:
        assert f == pytest.approx(PROBLEMS[number].f_star, rel=1e-5, abs=0)


@pytest.mark.parametrize("number", sorted(EXCEPTIONS))
def test_minimizer_is_stationary_where_ipopt_ends_elsewhere(number):
    assert stationarity(number) < 1e-6
    assert PROBLEMS[number].note


def test_corrected_optima_differ_and_are_explained():
    for number, printed in PRINTED.items():
        entry = PROBLEMS[number]
        assert abs(printed - entry.f_star) > 1e-6 * abs(printed)
        assert f"{abs(printed):.10g}" in entry.note


@pytest.mark.parametrize("x", [(1745, 12000, 110), PROBLEMS[67].x_star, (1500, 14000, 90)])
def test_67_is_the_limit_of_the_loops_of_the_book(x):
    x1, x2, x3 = x
    y2, y4 = 1.6 * x1, 93.0
    for _ in range(200):
        y6 = (x2 + 1.22 * y2 - x1) / x1
        y2 = 0.01 * x1 * (112 + 13.167 * y6 - 0.6667 * y6**2)
    for _ in range(200):
        y5 = 86.35 + 1.098 * y6 - 0.038 * y6**2 + 0.325 * (y4 - 89)
        y8 = 3 * y5 - 133
        y7 = 35.82 - 0.222 * y8
        y4 = 98000 * x3 / (y2 * y7 + 1000 * x3)
    loops = [y2, 1.22 * y2 - x1, y4, y5, y6, y7, y8]
    assert [float(y) for y in alkylation(*x)] == pytest.approx(loops, rel=1e-10)


@pytest.mark.parametrize("x", [(0.5, -0.5), PROBLEMS[88].x_star, (0.4, 0.3, 0.5), (1.0,) * 6])
def test_88_to_92_measure_a_distance_between_profiles(x):
    modes = np.array(heating_modes(30))
    assert np.allclose(modes * np.tan(modes), 1, rtol=1e-9)
    assert np.array_equal(np.floor(modes / math.pi), np.arange(30))
    times = np.cumsum(np.square(x)[::-1])[::-1]
    signs = np.array([1.0, *(2.0 * (-1) ** k for k in range(1, len(x)))])
    decay = np.exp(-np.outer(modes**2, times)) @ signs + (-1) ** len(x)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    s, weights = (nodes + 1) / 2, weights / 2
    amplitude = 2 * np.sin(modes) / (modes + np.sin(modes) * np.cos(modes))
    profile = -(amplitude * decay) @ np.cos(np.outer(modes, s))
    # The cosines are orthogonal on [0, 1] because their frequencies solve μ tan μ = 1.
    distance = weights @ (profile - (1 - s**2) / 2) ** 2
    assert float(heating_error(x)) == pytest.approx(distance, rel=1e-8)


def test_88_to_92_with_a_last_entry_of_zero_are_their_predecessor():
    x = (0.7, -0.3, 0.4)
    f, [row] = heat_conduction(*x)
    g, [longer] = heat_conduction(*x, 0.0)
    assert f == pytest.approx(g, rel=1e-15)
    assert float(row[0]) == pytest.approx(float(longer[0]), rel=1e-12)


def test_117_is_the_dual_of_86():
    assert PROBLEMS[86].f_star == -PROBLEMS[117].f_star
    assert ipopt(86)[1] == pytest.approx(-ipopt(117)[1], rel=1e-7)


def test_112_is_111_in_other_variables():
    x = np.linspace(-3, -0.5, 10)
    f, g, *_ = functions(111)[1](x)
    same_f, same_g, *_ = functions(112)[1](np.exp(x))
    assert float(f) == pytest.approx(float(same_f), rel=1e-13)
    assert np.allclose(g.full(), same_g.full(), rtol=1e-13)
