"""Many solves by one call: ``solver.batch`` and arguments with k columns."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, OUTPUTS, bits, warm
from support.cases.watched import PythonFunction, ended, interrupted_square
from support.paths import TESTS

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.solver.nlpsol.runner import SolveError
from casadi_hybrid.utils.threads import share_out


def prepared(name, count):
    """A solver, the arguments of a warm start, and parameters for so many solves."""
    case = CASES[name]()
    solver = nlpsol("solver", "hybrid", case.nlp)
    arguments = {**case.numbers, **warm(solver(**case.numbers))}
    p = np.asarray(case.numbers["p"])[:, None]
    return solver, arguments, p + 0.01 * np.random.default_rng(3).standard_normal((p.size, count))


def column(batch, k):
    return {name: getattr(batch, name)[:, k].tobytes() for name in OUTPUTS}


def columns(batch):
    return [column(batch, k) for k in range(batch.x.shape[1])]


def test_results_are_those_of_single_solves():
    solver, arguments, p = prepared("with_rows", 4)
    batch = solver.batch(**{**arguments, "p": p}, threads=2)
    assert solver.result is batch.result(-1) is batch.result(3)
    for k in range(4):
        solver(**{**arguments, "p": p[:, k].copy()})
        result, single = batch.result(k), solver.result
        assert result.explain() == single.explain()
        assert result.x.tobytes() == single.x.tobytes()
        assert result.evaluations == single.evaluations
        assert (result.working_set.g == single.working_set.g).all()
        stats, expected = batch.stats(k), solver.stats()
        assert stats.keys() == expected.keys()
        assert stats["iterations"] == expected["iterations"]
    with pytest.raises(IndexError):
        batch.result(4)


def test_fewer_columns_are_repeated():
    solver, arguments, p = prepared("with_rows", 4)
    starts = np.array(arguments["x0"]) + np.array([[0.0, 1e-3]])
    high = np.full((6, 4), 5.0) - 0.1 * np.arange(4)
    batch = solver.batch(**{**arguments, "p": p, "x0": ca.DM(starts), "ubx": high.tolist()})
    for k in range(4):
        single = {"p": p[:, k], "x0": starts[:, k % 2].copy(), "ubx": high[:, k].copy()}
        assert column(batch, k) == bits(solver(**{**arguments, **single}))


def test_columns_may_be_any_matrix():
    solver, arguments, p = prepared("with_rows", 6)
    p[0, 3] = 0.0
    expected = columns(solver.batch(**{**arguments, "p": p}))
    for matrix in (ca.DM(p), ca.DM(p.T).T, ca.sparsify(ca.DM(p)), np.asfortranarray(p)):
        assert columns(solver.batch(**{**arguments, "p": matrix})) == expected


def test_error_ends_and_awaits_all_workers(monkeypatch):
    """Errors come from a worker, and from a signal's handler while the others are awaited."""
    join, interrupts, finished = threading.Thread.join, [KeyboardInterrupt] * 2, []

    def interrupted(thread, timeout=None):
        if interrupts:
            raise interrupts.pop()
        join(thread, timeout)

    def fail(item):
        time.sleep(0.01)
        raise KeyboardInterrupt

    def finish(item):
        time.sleep(0.05)
        finished.append(item)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    others = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        share_out(range(1000), [fail, finish])
    assert threading.active_count() == others
    assert len(finished) < 900


PRESSED = """
import os, signal, sys, threading
sys.path[:0] = sys.argv[1:]
from test_nlpsol_batch import np, prepared
solver, arguments, p = prepared("van_der_pol", 400)
many = np.tile(p, 100)
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
for threads in (2, 3):
    try:
        solver.batch(**{**arguments, "p": many}, threads=threads)
    except KeyboardInterrupt:
        raised += threading.active_count() == 2
    assert solver.batch(**{**arguments, "p": p}, threads=1).x.tobytes() == expected
done.set()
presser.join()
print(raised)
"""
"""A script that presses Ctrl-C all the time: workers are awaited, and the next numbers right."""


@pytest.mark.skipif(sys.platform == "win32", reason="there os.kill ends the process")
def test_repeated_ctrl_c_leaves_right_numbers():
    done = ended([sys.executable, "-c", PRESSED, str(Path(__file__).parent), str(TESTS)])
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def test_failing_solve_harms_no_other():
    """Contradicting rows in one solve, a logarithm of a negative number in another."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x) + ca.log(p[1]) * x[0], "g": x[0] + x[1] - p[0]}
    solver = nlpsol("solver", "hybrid", nlp, {"max_iter": 200, "error_on_fail": True})
    bounds = {"lbx": 0.0, "ubx": 1.0, "lbg": 0.0, "ubg": 0.0}
    start = warm(solver(**bounds, p=[1.0, 1.0]))
    p_all = np.array([[1.0, 1.1, 5.0, 0.9, 1.2], [1.0, 1.0, 1.0, -1.0, 1.1]])
    batch = solver.batch(**bounds, **start, p=p_all)
    assert batch.success.tolist() == [True, True, False, False, True]
    assert batch.result(3).stop.name == "EVALUATION_ERROR"
    assert solver.result is batch.result(4)
    for k in (0, 1, 4):
        assert column(batch, k) == bits(solver(**bounds, **start, p=p_all[:, k].copy()))
    with pytest.raises(SolveError):  # which the option is for
        solver(**bounds, p=p_all)


def test_raising_model_harms_no_other():
    def sine(value):
        if value > 100.0:
            raise ValueError("too hot")
        return ca.sin(value)

    model, x, p = PythonFunction(sine), ca.MX.sym("x"), ca.MX.sym("p")
    nlp = {"x": x, "p": p, "f": (x - p) ** 2 + 0.01 * model(x)}
    solver = nlpsol("solver", "hybrid", nlp, {"hessian_approximation": "limited-memory"})
    arguments = {"x0": [[0.0, 200.0, 0.5]], "p": [[0.1, 0.1, 0.2]]}
    batch = solver.batch(**arguments)
    assert batch.success.tolist() == [True, False, True]
    assert solver.result is batch.result(2)
    with pytest.raises(RuntimeError, match="too hot"):
        solver(**arguments)


P = np.random.default_rng(2).uniform(0.4, 1.0, (3, 4))
REFUSED = [
    ({"y": 1}, "'y'"),
    ({"x0": ca.MX.sym("x", 6)}, "x0 is a symbol"),
    ({"threads": 0}, "threads"),
    ({"threads": 1.5}, "threads"),
    ({"x0": np.zeros((6, 3))}, "x0 has numbers for 3 solves, another argument for 4"),
    ({"x0": np.ones((6, 4), dtype=complex)}, "x0"),
    ({"x0": np.tile([[0.0, 1.0, np.nan, 0.0]], (6, 1))}, r"column 2: x0\[0\]"),
    ({"lbx": [["a", "b", "c", "d"]] * 6}, "lbx"),
    ({"lbx": np.tile([[0.0, 0.0, 3.0, 0.0]], (6, 1)), "ubx": 1.0}, "column 2: .*lbx"),
    ({"p": np.where(np.arange(12).reshape(3, 4) == 7, np.nan, P)}, r"column 3: p\[1\]"),
    ({"warm_start": []}, "warm_start has 0 results"),
    ({"warm_start": [3, 3, 3, 3]}, "warm_start"),
]


def test_bad_arguments_are_refused_before_work():
    solver, arguments, _ = prepared("with_rows", 4)
    before = solver.result
    other = {"warm_start": [prepared("hs071", 1)[0].result, None, None, None]}
    for changes, message in (*REFUSED, (other, "warm_start has 4 variables")):
        with pytest.raises(InputError, match=message):
            solver.batch(**{**arguments, "p": P, **changes})
    assert solver.result is before


def test_batch_starts_from_results():
    """One for all, or one for each, some of which are missing."""
    solver, arguments, p = prepared("van_der_pol", 4)
    first = solver.batch(**{**arguments, "p": p})
    results = [first.result(k) for k in range(4)]
    bounds = {name: arguments[name] for name in ("lbx", "ubx", "lbg", "ubg")}
    starts = results, [results[0]] * 4, [*results[:2], None, results[3]]
    for start, each in zip((results, results[0], starts[2]), starts, strict=True):
        batch = solver.batch(**bounds, p=p + 0.01, warm_start=start)
        for k, result in enumerate(each):
            warm_start = {"warm_start": result} if result else {}
            assert column(batch, k) == bits(solver(**bounds, p=p[:, k] + 0.01, **warm_start))


def test_bounds_may_differ_in_kind():
    solver, arguments, p = prepared("with_fixed", 6)
    low, high = (np.tile(np.asarray(arguments[name])[:, None], (1, 6)) for name in ("lbx", "ubx"))
    low[3, ::2] = high[3, ::2] = float(np.array(arguments["x0"])[3, 0])
    batch = solver.batch(**{**arguments, "p": p, "lbx": low, "ubx": high})
    assert batch.success.all()
    for k in range(6):
        single = {"p": p[:, k], "lbx": low[:, k].copy(), "ubx": high[:, k].copy()}
        x = solver(**{**arguments, **single})["x"].full().ravel()
        np.testing.assert_allclose(batch.x[:, k], x, atol=1e-9)


def test_matrix_p_has_columns_for_each():
    x, P = ca.MX.sym("x", 2), ca.MX.sym("P", 2, 2)
    nlp = {"x": x, "p": P, "f": ca.sumsqr(P @ x - 1), "g": ca.sum1(x)}
    solver = nlpsol("solver", "hybrid", nlp)
    P_all = np.random.default_rng(1).standard_normal((2, 6))
    batch = solver.batch(p=P_all, ubg=1.0)
    assert (batch.x.shape, batch.lam_p.shape) == ((2, 3), (2, 6))
    for k in range(3):
        own = slice(2 * k, 2 * k + 2)
        outputs = solver(p=P_all[:, own], ubg=1.0)
        np.testing.assert_allclose(batch.x[:, [k]], outputs["x"], atol=1e-12)
        np.testing.assert_allclose(batch.lam_p[:, own], outputs["lam_p"], atol=1e-12)


def test_threads_may_solve_at_once():
    solver, arguments, p = prepared("van_der_pol", 12)
    expected = columns(solver.batch(**{**arguments, "p": p}, threads=1))
    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(solver.batch, **{**arguments, "p": p}, threads=2) for _ in range(8)]
        assert all(columns(future.result()) == expected for future in work)


def test_an_interrupt_inside_a_function_ends_the_batch():
    calls = []
    model, x = PythonFunction(interrupted_square(calls)), ca.MX.sym("x")
    solver = nlpsol("s", "hybrid", {"x": x, "f": (model(x) - 4) ** 2 + x**4})
    with pytest.raises(KeyboardInterrupt):
        solver.batch(x0=[[3.0, 2.0, 1.0]])
    assert len(calls) == 60
