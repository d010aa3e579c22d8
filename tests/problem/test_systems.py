"""The collection of overdetermined systems is what its sources print.

Published numbers (dimensions, norms at the starts, least sums of squares, minimizers) are held
against numbers computed from the residuals as transcribed; neither side is derived from the other.
"""

from functools import cache

import numpy as np
import pytest
from problems.systems import SYSTEMS, System, system
from systems_peers import PEERS, Score, compare, report, scipy_least_squares, score, verdict

every = pytest.mark.parametrize("entry", SYSTEMS, ids=lambda entry: entry.name)
problem_of = cache(lambda entry: entry.build())


@cache
def reached(entry: System) -> list[tuple[np.ndarray, Score]]:
    """Where least squares ends from the standard start and from the tabulated minimizer."""
    starts = [entry.x0] if entry.minimizer is None else [entry.x0, entry.minimizer]
    problem = problem_of(entry)
    points = [scipy_least_squares(problem, start).x for start in starts]
    return [(x, score(problem, x)) for x in points if x is not None]


def least(entry: System) -> Score:
    return min((found for _, found in reached(entry)), key=lambda found: found.norm2)


def test_size_of_the_collection():
    assert len({entry.name for entry in SYSTEMS}) == len(SYSTEMS) >= 30
    assert sum(entry.consistent for entry in SYSTEMS) >= 10
    assert sum(not entry.consistent for entry in SYSTEMS) >= 10


@every
def test_dimensions_and_starts(entry):
    problem = problem_of(entry)
    assert (problem.n, problem.m) == (entry.n, entry.m)
    assert entry.m > entry.n
    assert entry.source
    assert entry.starts[0] == entry.x0
    for start in entry.starts:
        f, gradient, h, jacobian = problem.functions.first(start, [])
        assert float(f) == 0
        assert not gradient.full().any()
        assert np.isfinite(h.full()).all()
        assert np.isfinite(jacobian.full()).all()


@pytest.mark.parametrize(
    ("entry", "k"),
    [(entry, k) for entry in SYSTEMS for k in range(len(entry.start_norms))],
    ids=lambda value: value if isinstance(value, int) else value.name,
)
def test_published_norm_at_a_start(entry, k):
    h = problem_of(entry).functions.residual(entry.starts[k], []).full()
    assert np.linalg.norm(h) == pytest.approx(entry.start_norms[k], rel=1e-12)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in SYSTEMS if entry.known_norm2 and not entry.consistent],
    ids=lambda entry: entry.name,
)
def test_published_least_sum_of_squares(entry):
    # One unit of the last printed digit, which may be cut off instead of rounded; eleven digits are
    # at the limit of what the rounding of the residuals leaves.
    unit = 10.0 ** (np.floor(np.log10(entry.known_norm2)) + 1 - entry.digits)
    assert least(entry).norm2 == pytest.approx(entry.known_norm2, abs=unit, rel=1e-9)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in SYSTEMS if entry.minimizer is not None],
    ids=lambda entry: entry.name,
)
def test_tabulated_minimizer(entry):
    x, found = reached(entry)[-1]
    tabulated = np.asarray(entry.minimizer)
    assert found.norm2 <= least(entry).norm2 * (1 + 1e-9) + 1e-20
    np.testing.assert_allclose(x, tabulated, rtol=1e-3, atol=1e-4)


@every
def test_consistent_or_not(entry):
    found = least(entry)
    if entry.consistent:
        assert found.largest <= 1e-10
    else:
        assert found.norm2 > 1e-12
        assert found.gradient <= 1e-6


def test_a_name_that_does_not_exist():
    assert system("mgh05-beale").n == 2
    with pytest.raises(KeyError, match="no system 'beale'"):
        system("beale")


def test_standard_start_of_chebyquad_is_stationary_but_not_least():
    entry = system("mgh35-chebyquad-1")
    at_start = score(problem_of(entry), np.asarray(entry.x0))
    assert at_start.gradient <= 1e-14
    assert at_start.norm2 > entry.known_norm2 * 1.002


def test_ten_times_the_start_of_gulf_is_its_root():
    entry = system("mgh11-gulf")
    assert entry.starts[1] == entry.minimizer


@pytest.mark.parametrize("number", [1, 2, 3])
def test_mckeown_data_make_zero_stationary(number):
    # a and C are printed to six digits, and Cᵀa = 0 by construction.
    entry = system(f"mckeown-{number}")
    assert score(problem_of(entry), np.zeros(entry.n)).gradient <= 2e-6


def test_score_is_recomputed_from_the_problem():
    problem = problem_of(system("cutest-denschnb"))
    h = np.array([-1.0, -1.0, 2.0])  # (x₁ − 2, (x₁ − 2) x₂, x₂ + 1) at (1, 1)
    B = np.array([[1.0, 0.0], [1.0, -1.0], [0.0, 1.0]])
    found = score(problem, np.ones(2))
    assert found.largest == 2
    assert found.norm2 == pytest.approx(6)
    expected = np.linalg.norm(B.T @ h) / (np.linalg.norm(B) * np.linalg.norm(h))
    assert found.gradient == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "reached_score", "word"),
    [
        ("mgh05-beale", None, "refused"),
        ("mgh05-beale", Score(1e-9, 1e-18, 0.5), "root"),
        ("mgh05-beale", Score(1e-3, 1e-6, 0.5), "no"),
        ("mgh05-beale", Score(1e-3, 1e-6, 1e-9), "local"),
        ("mgh08-bard", Score(0.1, 8.21488e-3, 1e-9), "least"),
        ("mgh08-bard", Score(2.0, 17.4286, 1e-9), "local"),
        ("mgh08-bard", Score(2.0, 17.4286, 1e-2), "no"),
    ],
)
def test_verdict(name, reached_score, word):
    assert verdict(system(name), reached_score, 1.0) == word


def test_peers_on_one_consistent_and_one_inconsistent_system():
    consistent = system("mgh05-beale")
    outcome = compare(consistent, consistent.x0, ["IPOPT", "IPOPT L1-elastic", "SciPy"])
    assert [word for _, _, word in outcome.values()] == ["refused", "root", "root"]
    assert outcome["IPOPT"][0].status == "Not_Enough_Degrees_Of_Freedom"
    inconsistent = system("mgh15-kowalik-osborne")
    outcome = compare(inconsistent, inconsistent.x0, ["IPOPT L1-elastic", "IPOPT squares", "SciPy"])
    assert [word for _, _, word in outcome.values()] == ["no", "least", "least"]


def test_report_has_a_row_per_start():
    entry = system("nist-danwood")
    peers = [name for name in PEERS if name.startswith("SciPy")]
    text = report([entry], peers, every_start=True)
    assert text.count("nist-danwood") == len(entry.starts) == 2
    assert "SciPy, inconsistent: 2 least" in text
