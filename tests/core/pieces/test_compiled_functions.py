"""Functions as machine code or programs: the bits of CasADi's interpreter, whatever repeats."""

import importlib.util
import pickle
import threading
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cases.core import CASES, Case, bits, van_der_pol, warm
from support.fuzz.evaluation import random_functions, same_bits

from casadi_hybrid import InputError, Problem, Solver, nlpsol
from casadi_hybrid.core.binding import core
from casadi_hybrid.core.binding.serving import for_machine_code
from casadi_hybrid.core.evaluation import code, compiled, forms, library, partition
from casadi_hybrid.core.evaluation.compiled import compile_functions, forms_of
from casadi_hybrid.core.evaluation.forms import Code, Form, Lists
from casadi_hybrid.core.evaluation.library import UntranslatedError, graph_of
from casadi_hybrid.core.evaluation.operations import FORMULAS, NUMBER, translated
from casadi_hybrid.problem.building import BuildError, build
from casadi_hybrid.utils.errors import CompilerWarning

OF_TWO = "fmin fmax fmod hypot remainder copysign atan2 lt le eq ne"
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-310, -1e300, np.inf, -np.inf, np.nan])


def same_at_random(form: Form, functions: tuple[ca.Function, ca.Function], seed: int = 0) -> None:
    """Compare the form with CasADi at random numbers, and programs too."""
    if isinstance(form, Code):
        same_at_random(Form(*functions), functions, seed)
    draws = np.random.default_rng(seed)
    for which, function in enumerate(functions):
        sizes = [function.nnz_in(i) for i in range(function.n_in())]
        for scale in (1e-3, 1.0, 30.0):
            same_bits(form, which, function, *(scale * draws.standard_normal(n) for n in sizes))


def functions_of(nlp: dict[str, Any]) -> tuple[ca.Function, ca.Function]:
    """Values with first derivatives, and the Hessian of the Lagrangian."""
    x, p, f, g = (nlp[name] for name in "xpfg")
    lam = ca.SX.sym("lam", g.numel())
    first = [f, ca.gradient(f, x), g, ca.jacobian(g, x)]
    hessian = ca.hessian(f + ca.dot(lam, g), x)[0]
    return ca.Function("first", [x, p], first), ca.Function("second", [x, lam, p], [hessian])


def single_shooting(stages: int) -> tuple[ca.Function, ca.Function]:
    """Derivatives that grow with the horizon, of which little repeats."""
    u, T, p = ca.SX.sym("u", stages), ca.SX.sym("T"), ca.SX.sym("p", 2)
    x, f, rows = p, T + ca.sumsqr(u), []
    for k in range(stages):
        slope = ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u[k], ca.sin(x[0]) * x[1])
        x = x + T / stages * slope
        rows, f = [*rows, x[0]], f + ca.sumsqr(x)
    return functions_of({"x": ca.vertcat(u, T), "p": p, "f": f, "g": ca.vertcat(*rows)})


def test_stages_are_compiled_once() -> None:
    functions = functions_of(van_der_pol(30).nlp)
    form = Code(*functions)
    same_at_random(form, functions)
    operations = sum(function.n_instructions() for function in functions)
    assert sum(staged.operations for staged in form.staged) < operations / 10


def test_cuts_and_files_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = single_shooting(4)
    monkeypatch.setattr(code, "CHUNK", 60)
    same_at_random(Code(*functions), functions)
    monkeypatch.setattr(forms, "FILE", 2000)
    for limit in ("LARGE", "MOST", "MOST_ALONE"):
        monkeypatch.setattr(partition, limit, 20)
    pieces = Code(*functions)
    same_at_random(pieces, functions)
    assert all(staged.operations < 400 for staged in pieces.staged)


def test_each_operation_is_casadis() -> None:
    x, p, lam = ca.SX.sym("x", 2), ca.SX.sym("p", 0), ca.SX.sym("lam", 0)
    a, b = x[0], x[1]
    names = [name.lower() for name in NUMBER if not name.endswith(("_FIRST", "_SECOND"))]
    rows = {name: getattr(ca, name)(a, b) for name in OF_TWO.split()}
    rows |= {name: getattr(ca, f"logic_{name}")(a, b) for name in ("and", "or")}
    rows |= {"add": a + b, "sub": a - b, "mul": a * b, "div": a / b, "neg": -a, "sq": a**2}
    rows |= {"pow": a**b, "constpow": ca.constpow(a, 3.5), "twice": 2 * a, "inv": 1 / b}
    rows |= {"not": ca.logic_not(a), "if_else_zero": ca.if_else(a < 1, b, 0), "assign": a}
    rows |= {"lift": ca.lift(a, b) if hasattr(ca, "lift") else a}
    rows |= {name: getattr(ca, name)(a) for name in names if name not in rows}
    first = ca.Function("first", [x, p], [ca.vertcat(*rows.values())])
    second = ca.Function("second", [x, lam, p], [ca.vertcat(*reversed(rows.values()))])
    read = np.array([first.instruction_id(k) for k in range(first.n_instructions())], np.int32)
    met = set(translated(read).tolist()) & set(range(len(FORMULAS)))
    assert len(met) >= len(names) - 2  # lift and assign may be left out
    form, draws = Code(first, second), np.random.default_rng(4)
    points = [(one, other) for one in SPECIAL for other in SPECIAL]
    points += list(10.0 ** draws.uniform(-3, 3, (200, 1)) * draws.standard_normal((200, 2)))
    for point in points:
        same_bits(form, 0, first, point, [])
        same_bits(form, 1, second, point, [], [])


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([20, partition.LARGE]))
def test_random_graphs(seed: int, copies: int, large: int) -> None:
    functions = random_functions(seed, copies)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "LARGE", large)
        same_at_random(Code(*functions), functions, seed)


def test_graph_is_read_through_python_too() -> None:
    """In a process whose CasADi has other symbols; a second copy of the module is like that."""
    spec = importlib.util.spec_from_file_location("other_library", library.__file__)
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    other.instruction_methods = lambda: None
    for function in functions_of(van_der_pol(3).nlp):
        fast, slow = graph_of(function), other.graph_of(function)
        for name in ("op", "a", "b", "uses", "constants", "result"):
            assert (getattr(fast, name) == getattr(slow, name)).all(), name


def test_little_repetition_is_left_to_casadi() -> None:
    with pytest.raises(UntranslatedError):
        Lists(*single_shooting(4))
    x = ca.SX.sym("x", 300)  # too small for anything to be gained
    solver = nlpsol("s", "hybrid", {"x": x, "f": ca.sumsqr(x - 1)})
    solver(x0=0)
    assert solver.stats()["functions"] == "interpreted"


def test_operation_without_c_is_left_to_casadi() -> None:
    x, y = ca.SX.sym("x"), ca.MX.sym("y")
    with pytest.raises(UntranslatedError, match="erfinv"):
        graph_of(ca.Function("first", [x], [ca.erfinv(x)]))
    with pytest.raises(UntranslatedError, match="first"):
        graph_of(ca.Function("first", [y], [y]))
    with pytest.warns(CompilerWarning, match="erfinv"):
        solver = nlpsol("s", "hybrid", {"x": x, "f": x**2, "g": ca.erfinv(x)}, {"compile": True})
    solver(x0=0.1, lbg=0.2)
    stats = solver.stats()
    assert (stats["success"], stats["functions"]) == (True, "interpreted")
    assert "erfinv" in stats["functions_note"]


# --- solves ---------------------------------------------------------------------------------------


def loop(solver: Any, case: Case) -> tuple[list[Any], list[tuple[str, str]]]:
    """Bits and steps of five solves, all but the first one warm; how functions were evaluated."""
    numbers, draws = case.numbers, np.random.default_rng(0)
    solves, ways = [], []
    for _ in range(5):
        outputs, stats = solver(**numbers), solver.stats()
        solves.append((bits(outputs), stats["iter_count"]))
        ways.append((stats["functions"], stats["functions_note"]))
        numbers = case.moved({**case.numbers, **warm(outputs)}, outputs["x"], draws)
    return solves, ways


@pytest.mark.parametrize("name", ["van_der_pol", "hs071", "box", "no_parameter"])
def test_compiled_solves_have_the_same_bits(name: str) -> None:
    case = CASES[name]()
    plain, fast = (loop(nlpsol("s", "hybrid", case.nlp, {"compile": c}), case) for c in (0, 1))
    assert fast == (plain[0], [("compiled", "")] * 5)
    assert plain[1] == [("interpreted", "")] * 5


def test_many_stages_become_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second solve on."""
    case = van_der_pol(40)
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "SMALL", 10**9)
        expected, ways = loop(nlpsol("s", "hybrid", case.nlp), case)
    assert ways == [("interpreted", "")] * 5
    monkeypatch.setattr(core, "LISTED_AFTER", 5)
    solves, ways = loop(nlpsol("s", "hybrid", case.nlp), case)
    assert solves == expected
    assert ways == [("interpreted", ""), *[("staged", "")] * 4]


def test_problem_may_wish_compilation() -> None:
    case = van_der_pol()
    plain, wishing = (Problem.from_nlp(case.nlp, compile=wish) for wish in (False, True))
    expected, result = (Solver(problem).solve(**case.numbers) for problem in (plain, wishing))
    assert (result.x == expected.x).all()
    assert forms_of(Solver(wishing).problem, repeated=True)[1].code is not None
    assert loop(nlpsol("s", "hybrid", wishing), case)[1] == [("compiled", "")] * 5


def test_batches_and_pickles_use_code() -> None:
    case = van_der_pol()
    plain, fast = (nlpsol("s", "hybrid", case.nlp, {"compile": wish}) for wish in (False, True))
    start = {**case.numbers, **warm(plain(**case.numbers))}
    many = np.array(start.pop("p"))[:, None] + np.linspace(0, 0.02, 12)
    expected, batch = (solver.batch(p=many, **start, threads=2) for solver in (plain, fast))
    assert (expected.x == batch.x).all()
    assert fast.stats()["functions"] == "compiled"
    again = pickle.loads(pickle.dumps(fast))
    assert (again(p=many[:, 3], **start)["x"].full().ravel() == expected.x[:, 3]).all()
    assert again.stats()["functions"] == "compiled"


# --- code that comes later, or never --------------------------------------------------------------


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Compilers wait until this is set."""
    event, load = threading.Event(), build.load

    def waiting(sources: build.Sources) -> Any:
        assert event.wait(60)
        return load(sources)

    monkeypatch.setattr(build, "load", waiting)
    return event


def test_interpreter_serves_until_code_arrives(gate: threading.Event) -> None:
    case = van_der_pol(9)
    problem = Problem.from_nlp(case.nlp, compile=True)
    plain = nlpsol("s", "hybrid", case.nlp)
    fast = nlpsol("s", "hybrid", problem, {"compile": "background"})
    numbers = case.numbers
    for way in ("interpreted", "compiled"):
        for _ in range(3):
            outputs = fast(**numbers)
            assert bits(outputs) == bits(plain(**numbers))
            stats = fast.stats()
            assert (stats["functions"], bool(stats["functions_note"])) == (way, not gate.is_set())
            numbers = {**case.numbers, **warm(outputs)}
        gate.set()
        assert compile_functions(for_machine_code(problem), background=True).wait()


def test_arrived_code_serves_in_graphs(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that has solved before asks for it once."""
    case = van_der_pol(6)
    problem = Problem.from_nlp(case.nlp, compile=True)
    solver = nlpsol("solver", "hybrid", problem, {"compile": "background"})
    served: list[Form] = []
    functions = Code.functions
    monkeypatch.setattr(Code, "functions", lambda form: served.append(form) or functions(form))
    symbol = ca.MX.sym("p", 2)
    others = {name: value for name, value in case.numbers.items() if name != "p"}
    graph = ca.Function("graph", [symbol], [solver(p=symbol, **others)["x"]])
    points = [graph(case.numbers["p"]).full() for _ in range(2)]
    assert not served
    gate.set()
    assert compile_functions(for_machine_code(problem), background=True).wait()
    points += [graph(case.numbers["p"]).full() for _ in range(2)]
    assert len(served) == 1
    assert all((point == points[0]).all() for point in points)


def test_interpreter_serves_without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Any:
        raise BuildError("no C compiler was found")

    monkeypatch.setattr(build, "load", nothing)
    case = van_der_pol(5)
    with pytest.warns(CompilerWarning, match="no C compiler was found"):
        solver = nlpsol("s", "hybrid", case.nlp, {"compile": True})
    solver(**case.numbers)
    assert solver.stats()["success"]
    assert solver.stats()["functions_note"] == "no C compiler was found"


@pytest.mark.parametrize("wish", [2, "foreground"])  # None is no wish, as in CasADi
def test_other_wishes_are_refused(wish: Any) -> None:
    with pytest.raises(InputError, match="compile"):
        nlpsol("s", "hybrid", {"x": ca.SX.sym("x")}, {"compile": wish})
