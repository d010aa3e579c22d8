"""Many solves by one call: ``solver.batch`` and arguments with k columns."""

import gc
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, OUTPUTS, bits, warm
from support.cases.watched import PythonFunction, interrupted_square
from support.paths import BENCHMARKS, TESTS

from casadi_hybrid import InputError, Problem, nlpsol
from casadi_hybrid.solver.nlpsol.runner import SolveError
from casadi_hybrid.solver.nlpsol.solver import NlpSolver
from casadi_hybrid.utils.threads import share_out


def prepared(name: str, count: int, **options: Any) -> tuple[NlpSolver, dict[str, Any], np.ndarray]:
    """A solver, the arguments of a warm start, and parameters for so many solves."""
    case = CASES[name]()
    solver = nlpsol("solver", "hybrid", case.nlp, options)
    arguments = {**case.numbers, **warm(solver(**case.numbers))}
    draws = np.random.default_rng(3)
    p = np.asarray(case.numbers["p"])
    return solver, arguments, p[:, None] + 0.01 * draws.standard_normal((p.size, count))


def column(found: Any, k: int) -> dict[str, bytes]:
    return {name: np.ascontiguousarray(getattr(found, name)[:, k]).tobytes() for name in OUTPUTS}


def test_the_results_are_those_of_one_by_one():
    solver, arguments, p = prepared("with_rows", 4)
    found = solver.batch(**{**arguments, "p": p})
    assert solver.result is found.result(3)
    for k in range(4):
        solver(**{**arguments, "p": p[:, k].copy()})
        result, other = found.result(k), solver.result
        assert result.explain() == other.explain()
        assert result.x.tobytes() == other.x.tobytes()
        assert result.evaluations == other.evaluations
        assert (result.working_set.g == other.working_set.g).all()
        stats, expected = found.stats(k), solver.stats()
        assert stats.keys() == expected.keys()
        assert stats["iterations"] == expected["iterations"]
    assert found.result(-1) is found.result(3)
    with pytest.raises(IndexError):
        found.result(4)


def test_fewer_columns_are_repeated():
    solver, arguments, p = prepared("with_rows", 4)
    starts = np.array(arguments["x0"]) + np.array([[0.0, 1e-3]])
    high = np.tile(np.full((6, 1), 5.0), (1, 4)) - 0.1 * np.arange(4)
    found = solver.batch(**{**arguments, "p": p, "x0": ca.DM(starts), "ubx": high.tolist()})
    for k in range(4):
        one = {**arguments, "p": p[:, k], "x0": starts[:, k % 2].copy(), "ubx": high[:, k].copy()}
        assert column(found, k) == bits(solver(**one))


@pytest.mark.parametrize("kind", [ca.DM, lambda p: ca.DM(p.T).T, lambda p: ca.sparsify(ca.DM(p))])
def test_columns_may_be_matrices_of_any_kind(kind: Any):
    solver, arguments, p = prepared("with_rows", 6)
    p[0, 3] = 0.0
    expected = solver.batch(**{**arguments, "p": p})
    found = solver.batch(**{**arguments, "p": kind(p)})
    assert [column(found, k) for k in range(6)] == [column(expected, k) for k in range(6)]


def test_overflowing_column_harms_no_other():
    """And nothing warns of them on the way to an honest no."""
    solver, arguments, p = prepared("van_der_pol", 5)
    expected = solver.batch(**{**arguments, "p": p})
    wild = p.copy()
    wild[:, 2] = 1e200
    found = solver.batch(**{**arguments, "p": wild})
    assert found.success.tolist() == [True, True, False, True, True]
    assert [column(found, k) for k in (0, 1, 3, 4)] == [column(expected, k) for k in (0, 1, 3, 4)]


@pytest.mark.parametrize("threads", [1, 3])
def test_cold_solves_run_over_threads_too(threads: int):
    case = CASES["van_der_pol"]()
    solver = nlpsol("solver", "hybrid", case.nlp)
    p = np.asarray(case.numbers["p"])[:, None] * np.linspace(0.5, 1.0, 70)
    found = solver.batch(**{**case.numbers, "p": p}, threads=threads)
    assert found.success.all()
    for k in range(0, 70, 9):
        assert column(found, k) == bits(solver(**{**case.numbers, "p": p[:, k]})), k
        assert found.stats(k)["iter_count"] == solver.stats()["iter_count"]


def test_error_of_a_worker_ends_all():
    done: list[int] = []

    def fails(k: int) -> None:
        if k == 3:
            raise KeyboardInterrupt
        time.sleep(2e-3)
        done.append(k)

    with pytest.raises(KeyboardInterrupt):
        share_out(range(1000), [fails, fails])
    assert len(done) < 999


@pytest.mark.usefixtures("terminal")
def test_ctrl_c_ends_all():
    """A signal that is there already is handled a tenth of a second after a thread has begun."""
    solver, arguments, p = prepared("van_der_pol", 5)
    many = np.tile(p, (1, 20_000))
    timer = threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solver.batch(**{**arguments, "p": many}, threads=1)
    timer.join()
    assert solver.batch(**{**arguments, "p": p}).success.all()


@pytest.mark.parametrize("times", [1, 3])
def test_threads_are_awaited_after_ctrl_c(monkeypatch: pytest.MonkeyPatch, times: int):
    solver, arguments, p = prepared("van_der_pol", 400)
    expected = solver.batch(**{**arguments, "p": p}, threads=1).x.tobytes()
    join, left = threading.Thread.join, [None] * times

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        if left:
            left.pop()
            raise KeyboardInterrupt
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    others = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        solver.batch(**{**arguments, "p": np.tile(p, 50)}, threads=4)
    assert threading.active_count() == others
    assert solver.batch(**{**arguments, "p": p}, threads=2).x.tobytes() == expected


_PRESSED = """
import os, signal, sys, threading, time
sys.path[:0] = sys.argv[1:]
from test_nlpsol_batch import np, prepared
solver, arguments, p = prepared("van_der_pol", 400)
many = np.tile(p, 250)
expected, raised, done = solver.batch(**{**arguments, "p": p}).x.tobytes(), 0, threading.Event()

def handler(number, frame):
    if threading.active_count() > 2:  # while the workers are there
        raise KeyboardInterrupt

def press():
    while not done.wait(1e-3):
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, handler)
presser = threading.Thread(target=press)
presser.start()
for _ in range(5):
    try:
        solver.batch(**{**arguments, "p": many}, threads=3)
    except KeyboardInterrupt:
        raised += threading.active_count() == 2
    assert solver.batch(**{**arguments, "p": p}, threads=1).x.tobytes() == expected
done.set()
presser.join()
print(raised)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there os.kill ends the process")
def test_ctrl_c_again_and_again_leaves_right_numbers():
    folders = [str(Path(__file__).parent), str(BENCHMARKS), str(TESTS)]
    command = [sys.executable, "-c", _PRESSED, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr


def test_a_failing_solve_harms_no_other():
    """Rows that contradict each other in one solve, a logarithm of a negative number in another."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x) + ca.log(p[1]) * x[0], "g": x[0] + x[1] - p[0]}
    solver = nlpsol("solver", "hybrid", nlp, {"max_iter": 200})
    numbers = {"lbx": 0.0, "ubx": 1.0, "lbg": 0.0, "ubg": 0.0}
    start = warm(solver(**numbers, p=[1.0, 1.0]))
    p_all = np.array([[1.0, 1.1, 5.0, 0.9, 1.2], [1.0, 1.0, 1.0, -1.0, 1.1]])
    found = solver.batch(**numbers, **start, p=p_all)
    assert found.success.tolist() == [True, True, False, False, True]
    assert "not defined" in found.result(3).explain() or "nan" in found.result(3).explain()
    assert solver.result is found.result(4)
    for k in (0, 1, 4):
        assert column(found, k) == bits(solver(**numbers, **start, p=p_all[:, k].copy()))


def test_a_model_that_raises_harms_no_other():
    def sine(value: Any) -> Any:
        if value > 100.0:
            raise ValueError("too hot")
        return ca.sin(value)

    model, x, p = PythonFunction(sine), ca.MX.sym("x"), ca.MX.sym("p")
    nlp = {"x": x, "p": p, "f": (x - p) ** 2 + 0.01 * model(x)}
    solver = nlpsol("solver", "hybrid", nlp, {"hessian_approximation": "limited-memory"})
    found = solver.batch(x0=[[0.0, 200.0, 0.5]], p=[[0.1, 0.1, 0.2]])
    assert found.success.tolist() == [True, False, True]
    assert solver.result is found.result(2)
    with pytest.raises(RuntimeError, match="too hot"):
        solver(x0=[[0.0, 200.0, 0.5]], p=[[0.1, 0.1, 0.2]])


def test_error_on_fail_is_for_calls_alone():
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": x**2, "g": x - p}
    solver = nlpsol("solver", "hybrid", nlp, {"error_on_fail": True})
    numbers = {"ubx": 1.0, "lbg": 0.0, "ubg": 0.0, "p": np.array([[0.5, 3.0, 0.7]])}
    assert solver.batch(**numbers).success.tolist() == [True, False, True]
    with pytest.raises(SolveError, match="solver failed"):
        solver(**numbers)


def test_bad_columns_are_refused_before_work():
    calls: list[Any] = []
    count, x = PythonFunction(lambda value: calls.append(value) or value), ca.MX.sym("x")
    nlp = {"x": x, "f": count(x) ** 2}
    counted = nlpsol("solver", "hybrid", nlp, {"hessian_approximation": "limited-memory"})
    calls.clear()
    with pytest.raises(InputError, match=r"column 2: x0\[0\] is nan"):
        counted.batch(x0=[[0.0, 1.0, np.nan]])
    assert not calls
    solver, arguments, p = prepared("with_rows", 4)
    p[1, 3] = np.nan
    with pytest.raises(InputError, match=r"column 3: p\[1\] is nan"):
        solver.batch(**{**arguments, "p": p})
    low = np.tile([[0.0, 0.0, 3.0]], (6, 1))
    with pytest.raises(InputError, match=r"column 2: .*lbx"):
        solver.batch(**{**arguments, "lbx": low, "ubx": 1.0})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"y": 1}, "unknown argument 'y'"),
        ({"x0": ca.MX.sym("x", 6)}, "x0 is a symbol"),
        ({"threads": 0}, "threads must be a whole number, at least 1"),
        ({"threads": 1.5}, "threads must be a whole number"),
        ({"x0": np.zeros((6, 3))}, "x0 has numbers for 3 solves, another argument for 4"),
        ({"x0": np.ones((6, 4), dtype=complex)}, "x0 must be real"),
        ({"lbx": [["a", "b", "c", "d"]] * 6}, "lbx must be real numbers"),
        ({"warm_start": []}, "warm_start has 0 results, the arguments 4 columns"),
        ({"warm_start": [3, 3, 3, 3]}, "warm_start must be the result of a solve"),
        ({"warm_start": ["hs071", None, None, None]}, "warm_start has 4 variables"),
    ],
    ids=str,
)
def test_what_is_refused(changes: dict[str, Any], text: str):
    solver, arguments, p = prepared("with_rows", 4)
    if "hs071" in changes.get("warm_start", ()):
        changes = {"warm_start": [prepared("hs071", 1)[0].result, None, None, None]}
    with pytest.raises(InputError, match=text):
        solver.batch(**{**arguments, "p": p, **changes})


def test_results_to_start_from():
    """One for all, or one for each, some of which are missing."""
    case = CASES["van_der_pol"]()
    solver, arguments, p = prepared("van_der_pol", 4)
    first = solver.batch(**{**arguments, "p": p})
    results = [first.result(k) for k in range(4)]
    numbers = {name: case.numbers[name] for name in ("lbx", "ubx", "lbg", "ubg")}
    again = solver.batch(**numbers, p=p + 0.01, warm_start=results)
    same = solver.batch(**numbers, p=p + 0.01, warm_start=results[0])
    some = solver.batch(**numbers, p=p + 0.01, warm_start=[*results[:2], None, results[3]])
    for k in range(4):
        one = {**numbers, "p": p[:, k] + 0.01}
        assert column(again, k) == bits(solver(**one, warm_start=results[k]))
        assert column(same, k) == bits(solver(**one, warm_start=results[0]))
        if k != 2:
            assert column(some, k) == column(again, k)
    assert column(some, 2) == bits(solver(**numbers, p=p[:, 2] + 0.01))


def test_bounds_of_several_kinds_in_one_batch():
    solver, arguments, p = prepared("with_fixed", 6)
    low, high = (np.tile(np.asarray(arguments[name])[:, None], (1, 6)) for name in ("lbx", "ubx"))
    low[3, ::2] = high[3, ::2] = float(np.array(arguments["x0"])[3, 0])
    found = solver.batch(**{**arguments, "p": p, "lbx": low, "ubx": high})
    assert found.success.all()
    for k in range(6):
        one = {**arguments, "p": p[:, k], "lbx": low[:, k].copy(), "ubx": high[:, k].copy()}
        np.testing.assert_allclose(found.x[:, k], np.array(solver(**one)["x"]).ravel(), atol=1e-9)


def test_a_matrix_p_has_as_many_columns_for_each():
    x, P = ca.MX.sym("x", 2), ca.MX.sym("P", 2, 2)
    nlp = {"x": x, "p": P, "f": ca.sumsqr(P @ x - 1), "g": ca.sum1(x)}
    solver = nlpsol("solver", "hybrid", nlp)
    P_all = np.random.default_rng(1).standard_normal((2, 6))
    found = solver.batch(p=P_all, ubg=1.0)
    assert (found.x.shape, found.lam_p.shape) == ((2, 3), (2, 6))
    for k in range(3):
        outputs = solver(p=P_all[:, 2 * k : 2 * k + 2], ubg=1.0)
        np.testing.assert_allclose(found.x[:, [k]], outputs["x"], atol=1e-12)
        np.testing.assert_allclose(found.lam_p[:, 2 * k : 2 * k + 2], outputs["lam_p"], atol=1e-12)


def test_threads_may_ask_at_once():
    solver, arguments, p = prepared("van_der_pol", 12)
    expected = solver.batch(**{**arguments, "p": p}, threads=1)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(solver.batch, **{**arguments, "p": p}, threads=2) for _ in range(8)]
        for future in asked:
            found = future.result()
            for name in OUTPUTS:
                assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


def test_batch_outlives_solver_and_leaks_nothing():
    def used() -> tuple[Any, weakref.ref[Any]]:
        case = CASES["with_rows"]()
        problem = Problem.from_nlp(case.nlp)
        solver = nlpsol("solver", "hybrid", problem)
        return solver.batch(**case.numbers), weakref.ref(problem)

    found, known = used()
    assert found.result(0).success
    del found
    gc.collect()
    assert known() is None


def test_an_interrupt_inside_a_function_ends_the_batch():
    calls: list[Any] = []
    model, x = PythonFunction(interrupted_square(calls)), ca.MX.sym("x")
    solver = nlpsol("s", "hybrid", {"x": x, "f": (model(x) - 4) ** 2 + x**4})
    with pytest.raises(KeyboardInterrupt):
        solver.batch(x0=[[3.0, 2.0, 1.0]])
    assert len(calls) == 60
