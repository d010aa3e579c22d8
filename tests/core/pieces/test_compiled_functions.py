"""Functions as machine code: the bits of CasADi's interpreter, whatever repeats in them or not."""

import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cases.core import CASES, OUTPUTS, Case, van_der_pol, warm
from support.fuzz.evaluation import random_functions, same_bits

from casadi_hybrid import InputError, Problem, Solver, nlpsol
from casadi_hybrid.core.binding.core import Core
from casadi_hybrid.core.binding.in_graph import Pool
from casadi_hybrid.core.evaluation import code, compiled, forms, library, partition
from casadi_hybrid.core.evaluation.compiled import Compiled, forms_of
from casadi_hybrid.core.evaluation.forms import Code, Form, Lists
from casadi_hybrid.core.evaluation.library import UntranslatedError, graph_of
from casadi_hybrid.core.evaluation.operations import FORMULAS, NUMBER, translated
from casadi_hybrid.problem.building import BuildError, build
from casadi_hybrid.problem.graph import generate
from casadi_hybrid.utils.errors import CompilerWarning

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-310, -1e300, np.inf, -np.inf, np.nan])


def same_at_random(made: Form, functions: tuple[ca.Function, ca.Function], seed: int = 0) -> None:
    if isinstance(made, Code):  # and as lists, whether or not they are worth it
        same_at_random(Form(*functions), functions, seed)
    draws = np.random.default_rng(seed)
    for which, function in enumerate(functions):
        sizes = [function.nnz_in(i) for i in range(function.n_in())]
        for scale in (1e-3, 1.0, 30.0):
            same_bits(made, which, function, *(scale * draws.standard_normal(n) for n in sizes))


def functions_of(nlp: dict[str, Any]) -> tuple[ca.Function, ca.Function]:
    """With the derivatives that CasADi takes of the whole."""
    with patch.object(generate, "_finders", []):
        functions = Problem.from_nlp(nlp).functions
    return functions.first, functions.with_hessian("curvature")


def flow(x: ca.SX, u: ca.SX) -> ca.SX:
    return ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u, ca.sin(x[0]) * x[1])


def step(x: ca.SX, u: ca.SX, h: Any) -> ca.SX:
    return x + h * flow(x + h / 2 * flow(x, u), u)


def horizon(stages: int, how: str) -> dict[str, Any]:
    """Problems whose stages are joined by different things."""
    u, T, p = ca.SX.sym("u", stages), ca.SX.sym("T"), ca.SX.sym("p", 2)
    X = ca.SX.sym("X", 2, stages + 1)
    cost, variables, h = T + ca.sumsqr(u), [ca.vec(X), u, T], T / stages
    rows = [X[:, 0] - p]
    if how == "single":
        x, variables = p, [u, T]
        for k in range(stages):
            x = step(x, u[k], h)
            rows, cost = [*rows, x[0]], cost + ca.sumsqr(x)
        rows = rows[1:]
    elif how == "trapezoidal":
        slopes = [flow(X[:, k], u[min(k, stages - 1)]) for k in range(stages + 1)]
        rows += [X[:, k + 1] - X[:, k] - h / 2 * (slopes[k] + slopes[k + 1]) for k in range(stages)]
        cost += ca.sumsqr(ca.vec(X))
    else:
        rows += [X[:, k + 1] - step(X[:, k], u[k], h) for k in range(stages)]
        cost += ca.sumsqr(ca.vec(X)) + ca.sumsqr(u[1:] - u[:-1])
    return {"x": ca.vertcat(*variables), "p": p, "f": cost, "g": ca.vertcat(*rows)}


@pytest.mark.parametrize("how", ["multiple", "trapezoidal", "single"])
def test_stages_are_compiled_once(how: str) -> None:
    functions = functions_of(horizon(4 if how == "single" else 30, how))
    made = Code(*functions)
    same_at_random(made, functions)
    if how != "single":  # whose derivatives grow with the horizon
        operations = sum(function.n_instructions() for function in functions)
        assert sum(staged.operations for staged in made.staged) < operations / 10


def test_what_is_compiled_does_not_hang_on_the_horizon() -> None:
    made = [Code(*functions_of(horizon(stages, "multiple"))) for stages in (64, 128)]
    assert made[0]._loaded._name == made[1]._loaded._name


def test_cuts_and_chunks_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = functions_of(horizon(3, "single"))
    monkeypatch.setattr(code, "CHUNK", 60)
    same_at_random(Code(*functions), functions)
    monkeypatch.setattr(forms, "_FILE", 2000)  # and several files
    for limit in ("LARGE", "MOST", "MOST_ALONE"):
        monkeypatch.setattr(partition, limit, 20)
    pieces = Code(*functions)
    same_at_random(pieces, functions)
    assert all(staged.operations < 400 for staged in pieces.staged)


def test_operations_are_numbered_in_order() -> None:
    text = (Path(library.__file__).with_name("c") / "operations.h").read_text("utf-8")
    numbers = re.findall(r"^CASE\((\d+), (\w+), ", text, re.MULTILINE)
    assert [(int(number), name) for number, name in numbers] == list(enumerate(NUMBER))


def test_each_operation_is_casadis() -> None:
    x, p, lam = ca.SX.sym("x", 2), ca.SX.sym("p", 0), ca.SX.sym("lam", 0)
    names = [name.lower() for name in NUMBER if not name.endswith(("_FIRST", "_SECOND"))]
    made = {
        "pow": x[0] ** x[1], "constpow": ca.constpow(x[0], 3.5), "fmin": ca.fmin(x[0], x[1]),
        "fmax": ca.fmax(x[0], x[1]), "fmod": ca.fmod(x[0], x[1]), "hypot": ca.hypot(x[0], x[1]),
        "remainder": ca.remainder(x[0], x[1]), "copysign": ca.copysign(x[0], x[1]),
        "atan2": ca.atan2(x[0], x[1]), "lt": x[0] < x[1], "le": x[0] <= x[1], "eq": x[0] == x[1],
        "ne": x[0] != x[1], "and": ca.logic_and(x[0], x[1]), "or": ca.logic_or(x[0], x[1]),
        "not": ca.logic_not(x[0]), "if_else_zero": ca.if_else(x[0] < 1, x[1], 0),
        "add": x[0] + x[1], "sub": x[0] - x[1], "mul": x[0] * x[1], "div": x[0] / x[1],
        "neg": -x[0], "sq": x[0] ** 2, "twice": 2 * x[0], "inv": 1 / x[1], "assign": x[0],
        "sign": ca.sign(x[0]), "fabs": ca.fabs(x[0]), "sqrt": ca.sqrt(x[0]),
        "lift": ca.lift(x[0], x[1]) if hasattr(ca, "lift") else x[0],
    }  # fmt: skip
    rows = [made[name] if name in made else getattr(ca, name)(x[0]) for name in names]
    first = ca.Function("first", [x, p], [ca.vertcat(*rows)])
    second = ca.Function("second", [x, lam, p], [ca.vertcat(*reversed(rows))])
    read = np.array([first.instruction_id(k) for k in range(first.n_instructions())], np.int32)
    met = set(translated(read).tolist()) & set(range(len(FORMULAS)))
    assert len(met) >= len(names) - 2  # lift and assign may be left out
    code_of_all = Code(first, second)
    draws = np.random.default_rng(4)
    points = [(a, b) for a in SPECIAL for b in SPECIAL]
    sizes = 10.0 ** draws.uniform(-3, 3, (200, 1))
    points += [(a, b) for a, b in sizes * draws.standard_normal((200, 2))]
    for point in points:
        same_bits(code_of_all, 0, first, point, [])
        same_bits(code_of_all, 1, second, point, [], [])


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([20, partition.LARGE]))
def test_random_graphs(seed: int, copies: int, large: int) -> None:
    functions = random_functions(seed, copies)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "LARGE", large)
        same_at_random(Code(*functions), functions, seed)


def test_reading_through_python_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for function in functions_of(horizon(3, "multiple")):
        fast = graph_of(function)
        with monkeypatch.context() as patch:
            patch.setattr(library, "_methods", lambda: None)
            slow = graph_of(function)
        for name in ("op", "a", "b", "uses", "constants", "result"):
            assert (getattr(fast, name) == getattr(slow, name)).all(), name


def test_what_has_no_c_is_left_to_casadi() -> None:
    x = ca.SX.sym("x")
    with pytest.raises(UntranslatedError, match="the operation erfinv is left to CasADi"):
        graph_of(ca.Function("first", [x], [ca.erfinv(x)]))
    y = ca.MX.sym("y")
    with pytest.raises(UntranslatedError, match="'first' has no scalar form"):
        graph_of(ca.Function("first", [y], [y]))
    nlp = {"x": x, "f": x**2, "g": ca.erfinv(x)}
    with pytest.warns(CompilerWarning, match="not compiled: the operation erfinv is left to"):
        solver = nlpsol("s", "hybrid", nlp, {"compile": True})
    solver(x0=0.1, lbg=0.2)
    said = solver.stats()
    assert said["success"]
    assert said["functions"] == "interpreted"
    assert said["functions_note"] == "the operation erfinv is left to CasADi"


def same_on_the_way(plain: Any, fast: Any, case: Case, how: str) -> None:
    """Warm solves with and without compiled functions."""
    numbers, draws = case.numbers, np.random.default_rng(0)
    for _ in range(5):
        expected, found = plain(**numbers), fast(**numbers)
        for key in OUTPUTS:
            assert (expected[key].full() == found[key].full()).all(), key
        assert plain.stats()["iter_count"] == fast.stats()["iter_count"]
        assert (plain.stats()["functions"], plain.stats()["functions_note"]) == ("interpreted", "")
        assert (fast.stats()["functions"], fast.stats()["functions_note"]) == (how, "")
        numbers = case.moved({**case.numbers, **warm(found)}, found["x"], draws)


@pytest.mark.parametrize("name", ["van_der_pol", "hs071"])
def test_solves_have_the_same_bits(name: str) -> None:
    case = CASES[name]()
    plain, fast = (nlpsol("s", "hybrid", case.nlp, {"compile": wish}) for wish in (False, True))
    same_on_the_way(plain, fast, case, "compiled")


def test_many_stages_are_evaluated_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    case = van_der_pol(40)
    monkeypatch.setattr("casadi_hybrid.core.binding.core.LISTED_AFTER", 5)
    plain, fast = (nlpsol("s", "hybrid", case.nlp) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "_lists", lambda _: None)
        plain(**case.numbers), plain(**case.numbers)
    fast(**case.numbers)
    assert fast.stats()["functions"] == "interpreted"
    same_on_the_way(plain, fast, case, "staged")  # from the second solve on
    assert fast.stats()["engine"] == "c"


def test_where_little_repeats_the_interpreter_serves() -> None:
    functions = functions_of(horizon(3, "single"))
    with pytest.raises(UntranslatedError, match="too little of the functions repeats"):
        Lists(*functions)
    x = ca.SX.sym("x", 300)  # too small for anything to be gained
    solver = nlpsol("s", "hybrid", {"x": x, "f": ca.sumsqr(x - 1)})
    solver(x0=0)
    assert solver.stats()["functions"] == "interpreted"


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("linear", [False, True])
def test_little_problems(linear: bool, rows: bool) -> None:
    """Without rows or parameters, with a Hessian without entries."""
    x = ca.SX.sym("x", 3)
    nlp = {"x": x, "f": ca.sum1(x) if linear else ca.sumsqr(x - 1)} | ({"g": x} if rows else {})
    bounds = {"lbx": 0.0} | ({"lbg": 0.25} if rows else {})
    plain, fast = (nlpsol("s", "hybrid", nlp, {"compile": wish}) for wish in (False, True))
    assert (plain(**bounds)["x"].full() == fast(**bounds)["x"].full()).all()
    assert fast.stats()["functions"] == "compiled"


def test_a_problem_that_wishes_it_is_compiled_for_the_engine() -> None:
    case = van_der_pol()
    plain, wishing = (Problem.from_nlp(case.nlp, compile=wish) for wish in (False, True))
    names = {key: value for key, value in case.numbers.items() if key != "lam_g0"}
    expected, found = (Solver(problem).solve(**names) for problem in (plain, wishing))
    assert (found.x == expected.x).all()
    assert found.engine == expected.engine == "c"
    ready = forms_of(Solver(wishing).problem, repeated=True)[1]
    assert ready is forms_of(Solver(wishing).problem, repeated=True)[1]
    assert ready is not None
    assert ready.code is not None
    solver = nlpsol("s", "hybrid", wishing)
    solver(**case.numbers)
    assert solver.stats()["functions"] == "compiled"


def test_many_at_once_threads_and_pickles() -> None:
    case = van_der_pol()
    plain, fast = (nlpsol("s", "hybrid", case.nlp, {"compile": wish}) for wish in (False, True))
    start = {**case.numbers, **warm(plain(**case.numbers))}
    many = np.array(start.pop("p"))[:, None] + np.linspace(0, 0.02, 12)
    expected, found = (one.batch(p=many, **start, threads=2) for one in (plain, fast))
    assert (expected.x == found.x).all()
    assert fast.stats()["functions"] == "compiled"
    again = pickle.loads(pickle.dumps(fast))
    assert (again(p=many[:, 3], **start)["x"].full().ravel() == expected.x[:, 3]).all()
    assert again.stats()["functions"] == "compiled"
    with ThreadPoolExecutor(2) as pool:
        each = list(pool.map(lambda k: fast(p=many[:, k], **start)["x"].full(), range(12)))
    assert (np.hstack(each) == expected.x).all()


def test_interpreted_ones_serve_until_the_others_are_there() -> None:
    case = van_der_pol(9)
    plain = nlpsol("s", "hybrid", case.nlp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compiled, "_build", lambda _: None)
        fast = nlpsol("s", "hybrid", case.nlp, {"compile": "background"})
    numbers = case.numbers
    for there in (False, True):
        if there:
            waited = fast._runner.compiled
            assert waited is not None
            waited._build()
        for _ in range(3):
            expected, found = plain(**numbers), fast(**numbers)
            assert (expected["x"].full() == found["x"].full()).all()
            numbers = {**case.numbers, **warm(found)}
            said = fast.stats()["functions"], fast.stats()["functions_note"]
            waiting = "interpreted", "they are being compiled"
            assert said == (("compiled", "") if there else waiting)
    thread = nlpsol("s", "hybrid", case.nlp, {"compile": "background"})._runner.compiled
    assert thread is not None
    assert thread.wait()


def test_what_was_compiled_meanwhile_serves_in_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that has solved before asks for it once, and never again."""
    case = van_der_pol(6)
    with monkeypatch.context() as patch:
        patch.setattr(Compiled, "_build", lambda _: None)
        solver = nlpsol("s", "hybrid", case.nlp, {"compile": "background"})
    waited = solver._runner.compiled
    assert waited is not None
    filled: list[int] = []
    fill = Pool._fill
    monkeypatch.setattr(Pool, "_fill", lambda *given: (filled.append(1), fill(*given))[1])
    symbol = ca.MX.sym("p", 2)
    given = {name: value for name, value in case.numbers.items() if name != "p"}
    graph = ca.Function("graph", [symbol], [solver(p=symbol, **given)["x"]])
    before = [graph(case.numbers["p"]) for _ in range(2)]
    assert len(filled) == 1
    called: list[tuple[str, str]] = []
    serve = Core._serve
    monkeypatch.setattr(Core, "_serve", lambda one, *how: (called.append(how), serve(one, *how)))
    waited._build()
    after = [graph(case.numbers["p"]) for _ in range(2)]
    assert [how[1] for how in called] == ["compiled"]
    assert len(filled) == 2
    assert all((one.full() == before[0].full()).all() for one in [*before, *after])


def test_without_a_compiler_the_interpreted_ones_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Any:
        raise BuildError("no C compiler was found")

    monkeypatch.setattr(build, "load", nothing)
    case = van_der_pol(5)
    with pytest.warns(CompilerWarning, match="are not compiled: no C compiler was found; the int"):
        solver = nlpsol("s", "hybrid", case.nlp, {"compile": True})
    solver(**case.numbers)
    assert solver.stats()["success"]
    assert solver.stats()["functions_note"] == "no C compiler was found"


@pytest.mark.parametrize("wish", [2, "foreground"])  # None is no wish, as in CasADi
def test_a_wrong_wish_is_refused(wish: Any) -> None:
    with pytest.raises(InputError, match="compile must be True, False or 'background', got "):
        nlpsol("s", "hybrid", {"x": ca.SX.sym("x")}, {"compile": wish})
