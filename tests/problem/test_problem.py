"""Problems: accepted statements, refused arguments, default numbers, pickles, and copies."""

import dataclasses
import pickle
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Problem, Solver, nlpsol

KINDS = (ca.SX, ca.MX)
x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 2)
X, Y = ca.MX.sym("X", 2), ca.MX.sym("Y", 2)
row, square = ca.SX.sym("row", 1, 2), ca.SX.sym("square", 2, 2)
nan, inf = np.nan, np.inf
holes = ca.SX.sym("holes", ca.Sparsity.triplet(3, 1, [0, 2], [0, 0]))


def make(**changes: Any) -> Problem:
    return Problem(**{"x": x, "f": x[0], "h": x, **changes})


def test_variables_are_named_by_symbols() -> None:
    assert Problem(x=x, f=0, h=x).variable_names == ("x_0", "x_1")
    u, v = ca.MX.sym("u"), ca.MX.sym("v", 2)
    assert Problem(x=ca.vertcat(u, v), f=0, h=u).variable_names == ("u", "v[0]", "v[1]")
    assert Problem(x=v, f=0, h=v, variable_names=["a", "b"]).variable_names == ("a", "b")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_in_many_forms(kind: Any) -> None:
    """Vectors, lists, tuples, mappings and numbers are stacked; structural zeros are rows."""
    z = kind.sym("z", 3)
    sparse = kind(ca.Sparsity.triplet(4, 1, [1], [0]), z[0])
    named = {"ball": ca.sumsqr(z) - 1, "pins": z[:2], "none": kind(0, 1), "list": [z[2], 4.0]}
    for h, values, names in (
        (z[:2], [1, 2], ["h[0]", "h[1]"]),
        ([z[0], z[1] - 2], [1, 0], None),
        ((z, 3), [1, 2, 3, 3], None),
        ([ca.DM([1, 2]), z[1]], [1, 2, 2], None),
        (ca.DM([1, 2, 3]), [1, 2, 3], None),
        (sparse, [0, 1, 0, 0], None),
        (named, [13, 1, 2, 3, 4], ["ball", "pins[0]", "pins[1]", "list[0]", "list[1]"]),
    ):
        problem = Problem(x=z, f=np.float64(3.0), h=h, p=kind(0, 1))  # an empty p is no p
        assert (problem.n, problem.m, problem.n_p) == (3, len(values), 0)
        assert names is None or problem.constraint_names == tuple(names)
        f, h_values = ca.Function("fh", [z], [problem.f, problem.h])([1.0, 2.0, 3.0])
        assert f == 3
        assert h_values.full().ravel().tolist() == values


def test_problems_cannot_be_changed() -> None:
    start = np.zeros(2)
    problem = make(g=x, x0=start, lbx=start)
    start[:] = 5.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.f = x[0]
    for vector in (problem.lbg, problem.x0, problem.bounds.ubg, problem.bounds.lbx):
        assert not vector.flags.writeable
    assert not problem.x0.any()
    assert not problem.bounds.lbx.any()


# The text that the message must contain, and the arguments that are wrong.
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("x must be", {"x": [x]}),
    ("x must be", {"x": x + 1}),
    ("x must be", {"x": X[0], "f": X[0], "h": X[0]}),
    ("x has shape (1, 2)", {"x": row}),
    ("x has shape", {"x": holes}),
    ("x is empty", {"x": {}}),
    ("x or p has one twice", {"x": ca.vertcat(X, X), "f": X[0], "h": X}),
    ("x['a'] must be", {"x": {"a": "x"}}),
    ("x['b'] is MX", {"x": {"a": x, "b": X}}),
    ("x has a block by the name 0", {"x": {0: x}}),
    ("variable_names", {"x": {"a": x}, "variable_names": ["a", "b"]}),
    ("variable_names", {"variable_names": (c for c in "ab")}),
    ("variable_names", {"variable_names": list("abc")}),
    ("variable_names has 'a' twice", {"variable_names": ["a", "a"]}),
    ("p['a'] must be", {"p": {"a": y + 1}}),
    ("p is MX", {"p": Y}),
    ("p has shape (1, 2)", {"p": row}),
    ("x and p share", {"p": ca.vertcat(y, x[1])}),
    ("f must be", {"x": X, "f": x[0], "h": X}),
    ("f must be", {"f": 1j}),
    ("f has shape (2, 1)", {"f": x}),
    ("f has shape", {"f": ca.SX(0, 1)}),
    ("f is the comparison", {"f": x[0] <= 1}),
    ("f depends on y_1", {"f": y[1]}),
    ("h must be", {"h": np.array([1.0, 2.0])}),
    ("h has shape (1, 2)", {"h": x.T}),
    ("h['a'][1] is the comparison", {"h": {"a": [x[0], x[1] == 1]}}),
    ("h[1] must be", {"h": [x[0], X[0]]}),
    ("h[1] has shape (1, 2)", {"h": [x[0], x.T]}),
    ("h has a block by the name 1", {"h": {1: x[0], "1": x[1]}}),
    ("h depends on y_0, y_1", {"h": x - y}),
    ("h depends on Y", {"x": X, "f": 0, "h": X - Y}),
    ("h['a'] has bounds", {"h": {"a": (0, x[0], 5)}}),
    ("constraint_names", {"constraint_names": "ab"}),
    ("constraint_names", {"h": {"a": x}, "constraint_names": ["a", "b"]}),
    ("constraint_names", {"g": x, "constraint_names": ["a"]}),
    ("g must be", {"g": X}),
    ("g['a'] must be", {"g": {"a": (0, "x", 1)}}),
    ("g is the", {"x": X, "f": 0, "h": X, "g": ca.vertcat(X, ca.logic_not(X[0]))}),
    ("g['a'] is a pair", {"g": {"a": (x[0], 1)}}),
    ("h and g", {"h": {"a": x}, "g": {"a": x}}),
    ("g['a']", {"g": {"a": (0, x[0], y[0])}}),
    ("the upper bound in g['a']", {"g": {"a": (0, x, nan)}}),
    ("the lower bound in g['a']", {"g": {"a": ([0, 0, 0], x, 1)}}),
    ("ubg[1] = 1", {"g": {"a": (2, x, [3, 1])}}),
    ("lbg names 'a'", {"g": {"a": (0, x, 1)}, "lbg": {"a": 1}}),
    ("ubg names 'a'", {"g": {"a": (0, x, None)}, "ubg": {"a": 1}}),
    ("lbg", {"g": {"a": (0, x, 1), "b": x}, "lbg": 0}),
    ("'speed'?", {"g": {"speed": x}, "lbg": {"spede": 0}}),
    ("lbg", {"h": {"a": x}, "g": {"b": x}, "lbg": {"a": 0}}),
    ("lbg", {"g": x, "lbg": {"a": 0}}),
    ("lbg[1] is nan", {"g": x, "lbg": [0, nan]}),
    ("lbg has shape (3,)", {"g": x, "lbg": [0, 0, 0]}),
    ("lbg has shape", {"lbg": [0, 0]}),  # h has no bounds
    ("lbg[1] is inf", {"g": {"a": x}, "lbg": {"a": [0, inf]}}),
    ("lbg is a CasADi symbol", {"g": x, "lbg": y}),
    ("lbg[0] = 2", {"g": {"a": x}, "lbg": 2, "ubg": 1}),
    ("x_1", {"lbx": 2, "ubx": [3, 1]}),
    ("lbx", {"lbx": nan}),
    ("ubx", {"x": {"q": x}, "ubx": {"p": 0}}),
    ("x0[1] is inf", {"x0": [1, inf]}),
    ("p0 has shape", {"p": y, "p0": [1, 2, 3]}),
    ("lam_g0 has shape", {"g": x, "lam_g0": [1, 2]}),
    ("lam_x0 must be", {"lam_x0": "a"}),
]


@pytest.mark.parametrize(("text", "arguments"), REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_wrong_statements_are_refused(text: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        make(**arguments)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)  # a sentence, no dump of the library underneath


@pytest.mark.parametrize("kind", KINDS)
def test_statements_build_no_functions(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **keywords: Any) -> None:
        raise AssertionError("built")

    monkeypatch.setattr("casadi_hybrid.problem.problem.build_functions", fail)
    problem = stacked(kind)
    problem.numbers(x0=1, ubg=7)
    with pytest.raises(InputError):
        stacked(kind, f=problem.h)


@pytest.mark.parametrize("h", [None, ca.SX(0, 1), {"a": ca.SX(0, 1)}])
def test_some_methods_need_equations(h: Any) -> None:
    problem = Problem(x=x, f=ca.sumsqr(x - 1), h=h)
    assert problem.m == 0
    with pytest.raises(InputError, match=r"^h is empty.*'closed-form'"):
        Solver(problem, "closed-form")
    assert Solver(problem).solve().x == pytest.approx([1, 1])
    assert nlpsol("f", "hybrid", problem)(x0=0)["x"].full().ravel() == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (r"'speed'.*lbg\[0\] = 0 < ubg\[0\] = 5", {"g": {"speed": (0, x[0], 5)}}),
        (r"'g\[1\]'.*lbg\[1\] = -inf", {"g": [0, x[0]], "lbg": [0, -inf], "ubg": 0}),
        (r"'x_1'.*ubx\[1\] = 1", {"ubx": [inf, 1]}),
    ],
)
def test_equation_methods_name_other_rows(words: str, arguments: dict[str, Any]) -> None:
    for method in ("gda", "matrix-lookahead"):
        with pytest.raises(InputError, match=f"'{method}'.*{words}"):
            Solver(make(**arguments), method)


def test_rows_may_get_bounds_later() -> None:
    problem = Problem.from_nlp({"x": x, "f": ca.sumsqr(x), "g": x[0] - 1})
    solver = Solver(problem, "closed-form")
    assert solver.solve(0.9, lbg=0, ubg=0).x == pytest.approx([1, 0], abs=1e-2)
    with pytest.raises(InputError, match=r"'g'.*lbg\[0\] = -inf"):
        solver.solve(0.5, ubg=0)


@pytest.mark.parametrize("value", [0, 3])
def test_equal_bounds_make_equations(value: float) -> None:
    by_h = make(f=ca.sumsqr(x), h=x - value)
    by_g = make(f=ca.sumsqr(x), h=None, g=x, lbg=value, ubg=value)
    ours, theirs = (Solver(made, "closed-form").solve(value + 0.5) for made in (by_h, by_g))
    assert ours.x == pytest.approx(theirs.x, abs=1e-12)
    assert ours.lam_g == pytest.approx(theirs.lam_g, abs=1e-12)
    assert ours.g + value == pytest.approx(theirs.g, abs=1e-12)


# --- blocks and numbers --------------------------------------------------------------------------

POINT = [2.0, 3.0, 0.5], [10.0, 1.0, 1.0]  # x and p


def stacked(kind: Any, **changes: Any) -> Problem:
    """Two variables by name, three equations, four rows with bounds, two parameters by name."""
    q, u, a, b = (kind.sym(name, size) for name, size in zip("quab", (2, 1, 1, 2), strict=True))
    arguments: dict[str, Any] = {
        "x": {"q": q, "u": u},
        "p": {"a": a, "b": b},
        "f": ca.sumsqr(q) * a + u * b[1],
        "h": {"pin": q - b, "flat": ca.sin(u)},
        "g": {"speed": (0, q[0] * u, 5), "box": q * a, "none": kind(0, 1), "cap": (None, u, [2])},
        "lbg": {"box": [-1, -2]},
        "x0": {"u": 7},
        "p0": [1, 2, 3],
        "ubx": {"q": 9},
        "lam_g0": {"flat": 4, "box": [5, 6]},
        "name": "two",
    }
    return Problem(**{**arguments, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_equations_precede_bounded_rows(kind: Any) -> None:
    problem = stacked(kind)
    assert (problem.n, problem.m, problem.m_h, problem.n_p) == (3, 7, 3, 3)
    assert all(word in repr(problem) for word in ("two", kind.__name__, "n=3", "m=7"))
    assert problem.variable_names == ("q[0]", "q[1]", "u")
    rows = ("pin[0]", "pin[1]", "flat", "speed", "box[0]", "box[1]", "cap")
    assert problem.constraint_names == rows == problem.functions.constraint_names
    assert problem.blocks["x"] == {"q": slice(0, 2), "u": slice(2, 3)}
    assert problem.blocks["p"] == {"a": slice(0, 1), "b": slice(1, 3)}
    lasts = {name: part.stop for name, part in problem.blocks["c"].items()}
    assert lasts == {"pin": 2, "flat": 3, "speed": 4, "box": 6, "none": 6, "cap": 7}
    assert problem.blocks["g"]["box"] == slice(1, 3)
    c = problem.functions.residual(*POINT).full().ravel()
    assert c == pytest.approx([1, 2, np.sin(0.5), 1, 20, 30, 0.5])
    both = ca.Function("hg", [problem.x, problem.p], [problem.h, problem.g])(*POINT)
    assert np.concatenate([part.full().ravel() for part in both]) == pytest.approx(c)
    lam = np.arange(1.0, 8.0)
    slope = problem.parameter_gradient(POINT[0], lam, POINT[1]).full().ravel()
    expected = [13 + lam[4] * 2 + lam[5] * 3, -lam[0], 0.5 - lam[1]]
    assert slope == pytest.approx(expected)
    assert problem.lbg.tolist() == [0, -1, -2, -inf]
    assert problem.ubg.tolist() == [5, inf, inf, 2]


def test_rows_need_no_names() -> None:
    problem = make(g=x[0], ubg=3)
    assert problem.constraint_names == ("h[0]", "h[1]", "g")
    assert problem.bounds.lbg.tolist() == [0, 0, -inf]
    assert problem.bounds.ubg.tolist() == [0, 0, 3]
    assert make(g=x[0], constraint_names=["a", "b", "c"]).constraint_names == ("a", "b", "c")


DEFAULTS = {
    "x0": [0, 0, 7],
    "p": [1, 2, 3],
    "lam_x0": [0, 0, 0],
    "lam_g0": [0, 0, 4, 0, 5, 6, 0],
    "lbx": [-inf] * 3,
    "ubx": [9, 9, inf],
    "lbg": [0, 0, 0, 0, -1, -2, -inf],
    "ubg": [0, 0, 0, 5, inf, inf, 2],
}


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        ({}, {}),
        ({"x0": {"q": [1, 2]}, "p": 8}, {"x0": [1, 2, 7], "p": [8, 8, 8]}),
        ({"p": {"b": [0, 0]}}, {"p": [1, 0, 0]}),
        ({"lbx": {"u": -1}, "ubx": 4}, {"lbx": [-inf, -inf, -1], "ubx": [4, 4, 4]}),
        ({"ubx": {"u": ca.DM(3)}}, {"ubx": [9, 9, 3]}),
        ({"lbg": -inf}, {"lbg": [0, 0, 0, *[-inf] * 4]}),
        ({"lbg": {"speed": 1}}, {"lbg": [0, 0, 0, 1, -1, -2, -inf]}),
        ({"ubg": [5, 6, 7, 8]}, {"ubg": [0, 0, 0, 5, 6, 7, 8]}),
        ({"lam_x0": 1}, {"lam_x0": [1, 1, 1]}),
        ({"lam_g0": {"speed": 9}}, {"lam_g0": [0, 0, 4, 9, 5, 6, 0]}),
    ],
)
def test_arguments_replace_default_numbers(arguments: Any, changes: Any) -> None:
    problem = stacked(ca.SX)
    problem.numbers().x0[:] = 1.0  # its own copy
    numbers = problem.numbers(**arguments)
    for name, values in (DEFAULTS | changes).items():
        assert getattr(numbers.bounds if "b" in name else numbers, name).tolist() == values, name


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("lbg[2] is nan", {"lbg": [0, 0, nan, 0]}),
        ("ubg['box']", {"ubg": {"box": nan}}),
        ("speed", {"lbg": {"speed": 6}}),  # crosses a default
        ("q[1]", {"lbx": 2, "ubx": [2, 1, 3]}),
        ("lbg has shape (7,)", {"lbg": [0] * 7}),  # h has no bounds
        ("unknown block 'pin'", {"ubg": {"pin": 1}}),
        ("x0 has shape", {"x0": [1, 2]}),
        ("p is a CasADi symbol", {"p": x}),
        ("lam_g0 has shape", {"lam_g0": [1] * 4}),
    ],
)
def test_bad_numbers_are_refused_early(text: str, numbers: dict[str, Any]) -> None:
    problem = stacked(ca.SX)
    with pytest.raises(InputError) as caught:
        problem.numbers(**numbers)
    assert text in str(caught.value)
    assert "functions" not in vars(problem)


def test_missing_parameters_are_named() -> None:
    with pytest.raises(InputError, match="p is missing"):
        make(p=y).numbers()
    assert make(p=y).numbers(p=1).p.tolist() == [1, 1]


# --- pickles and copies --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("built", [False, True])
@pytest.mark.parametrize("absent", [{}, {"h": None}, {"g": None, "lbg": -inf}])
def test_problems_can_be_pickled(kind: Any, built: bool, absent: dict[str, Any]) -> None:
    problem = stacked(kind, **absent, **({"lam_g0": None} if absent else {}))
    if built:
        assert problem.functions
        assert problem.parameter_gradient
    sent = pickle.loads(pickle.dumps(problem))
    assert ("functions" in vars(sent)) == built
    for name in ("blocks", "constraint_names", "variable_names", "m_h"):
        assert getattr(sent, name) == getattr(problem, name)
    assert repr(sent) == repr(problem)
    again = Problem(x=sent.x, f=sent.f, h=sent.h, g=sent.g, p=sent.p)
    for other in (sent, again):
        outputs = zip(other.functions.first(*POINT), problem.functions.first(*POINT), strict=True)
        assert all((ours.full() == theirs.full()).all() for ours, theirs in outputs)
    assert (sent.numbers().x0 == problem.numbers().x0).all()
    assert (sent.bounds.ubg == problem.bounds.ubg).all()


def test_compiled_code_stays_in_its_process(compiler: str) -> None:
    problem = stacked(ca.MX)
    compiled = problem.compiled()
    assert compiled.functions.backend == "compiled"
    assert problem.functions.backend == "interpreted"
    sent = pickle.loads(pickle.dumps(compiled))
    assert "functions" not in vars(sent)
    assert sent.compile
    there, here = (each.functions.residual(*POINT).full() for each in (sent, problem))
    assert there == pytest.approx(here, rel=1e-12)


def test_expanded_problem_is_equal() -> None:
    problem = stacked(ca.MX)
    assert problem.functions
    expanded = problem.expanded()
    assert isinstance(expanded.x, ca.SX)
    assert expanded.expanded() is expanded
    assert expanded.functions.residual.is_a("SXFunction")
    there, here = (each.functions.residual(*POINT).full() for each in (expanded, problem))
    assert (there == here).all()
    assert expanded.bounds is problem.bounds


@pytest.mark.parametrize("kind", KINDS)
def test_from_nlp_reads_the_dictionary(kind: Any) -> None:
    z, q = kind.sym("z", 2), kind.sym("q", 1, 2)
    nlp = {"x": z, "p": q, "f": ca.sumsqr(z) * q[0], "g": (z * q[1]).T}
    problem = Problem.from_nlp(nlp, lbg=0, ubg=[1, 2], x0=3, p0=[[4, 5]])
    assert problem.variable_names == ("x[0]", "x[1]")
    assert problem.constraint_names == ("g[0]", "g[1]")
    assert problem.shapes == {"p": (1, 2), "g": (1, 2)}
    f, _, g, _ = problem.functions.first([2, 3], [4, 5])
    assert float(f) == 52
    assert g.full().ravel().tolist() == [10, 15]
    numbers = problem.numbers()
    assert numbers.bounds.ubg.tolist() == [1, 2]
    assert numbers.x0.tolist() == [3, 3]
    assert numbers.p.tolist() == [4, 5]


def test_renamed_copy_keeps_everything_else() -> None:
    problem = stacked(ca.MX)
    other = dataclasses.replace(problem, name="other")
    assert other.name == "other"
    assert other.constraint_names == problem.constraint_names
    assert other.bounds.ubg.tolist() == problem.bounds.ubg.tolist()
    rows = [f"row {k}" for k in range(7)]
    renamed = problem.renamed(rows, ["a", "b", "c"])
    assert (renamed.constraint_names, renamed.variable_names) == ((*rows,), ("a", "b", "c"))
    numbers = renamed.numbers(x0={"q": 3}, lbg={"speed": -1})  # blocks keep their names
    assert numbers.x0.tolist() == [3, 3, 7]
    assert numbers.bounds.lbg[3] == -1
