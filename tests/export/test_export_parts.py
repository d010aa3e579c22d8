"""Functions of an export in parts: CasADi's numbers, without a warning, as long as one stage is."""

import subprocess

import casadi as ca
import numpy as np
import pytest
from support.cases.core import van_der_pol
from support.paths import DATA

from casadi_hybrid import InputError, Problem, nlpsol
from casadi_hybrid.core.evaluation.forms import Form
from casadi_hybrid.core.export.compare import STRICT, compare
from casadi_hybrid.core.export.functions import LOOPS, PARTS, STRAIGHT, generate
from casadi_hybrid.core.export.parts import parts_text
from casadi_hybrid.core.export.tables import number
from casadi_hybrid.problem.building.compiler import compiler_of

CLOSE = 1e-12
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
DRIVER = (DATA / "functions_driver.c").read_text("utf-8")


def chain(N=8):
    """Masses in a row whose springs are alike; without elements, as its functions are small."""
    x, p = ca.SX.sym("x", 2 * N), ca.SX.sym("p", 2)
    far = [ca.norm_2(x[2 * k : 2 * k + 2] - x[2 * k + 2 : 2 * k + 4]) for k in range(N - 1)]
    g = ca.vertcat(x[:2] - p, *(ca.exp(one) * (1 - 0.1 / one) for one in far))
    return {"x": x, "p": p, "f": ca.sumsqr(x) + ca.sum1(x[1::2] ** 4), "g": g}


def linear():
    """No Hessian and no number that a part makes."""
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p")
    return {"x": x, "p": p, "f": x[0] + 2 * x[2], "g": ca.vertcat(x[1], x[0] + p)}


def everything():
    """Operations that compilers may have something to say about, a few times each."""
    x = ca.SX.sym("x", 24)
    terms = []
    for k in range(0, 24, 4):
        a, b, c, d = (x[k + i] for i in range(4))
        either = ca.logic_or(b <= 2, ca.logic_not(c))
        terms += [ca.fmin(a, b) * ca.fmax(c, d), ca.if_else(a < b, ca.sin(c), d**3)]
        terms += [ca.sign(a) * b, ca.atan2(1 + a**2, 2 + b**2), (2 + ca.tanh(c)) ** ca.cos(d)]
        terms += [ca.fabs(a - d), ca.logic_and(a < 1, either) * d, ca.floor(a) * c]
        terms += [ca.copysign(a, b), ca.fmod(a, 2 + b**2), ca.hypot(a, c), ca.erf(a)]
        terms += [ca.log1p(b**2), ca.expm1(c), ca.if_else(ca.eq(a, b), c, ca.ceil(d))]
        terms += [ca.asinh(a), ca.if_else(ca.ne(a, 0), ca.acos(ca.tanh(b)), ca.sqrt(1 + c**2))]
    return {"x": x, "f": sum(terms), "g": ca.vertcat(*terms)}


CASES = {
    "oscillator": lambda: van_der_pol(8).nlp,
    "chain": chain,
    "linear": linear,
    "everything": everything,
}


def functions_of(nlp):
    return Problem.from_nlp(nlp).functions


def written(functions):
    form = Form(functions.first, functions.with_hessian("curvature"), functions.assemblies)
    return parts_text(form.staged, "s")


@pytest.mark.parametrize("name", CASES)
def test_parts_have_numbers_of_casadi(name, compiler, tmp_path):
    """In memory of the very size that is told, whatever was in it."""
    functions = functions_of(CASES[name]())
    first, second = functions.first, functions.with_hessian("curvature")
    text, w = written(functions)
    sizes = {"x": first.nnz_in(0), "p": first.nnz_in(1), "lam": second.nnz_in(1), "w": w}
    sizes |= {"first": sum(first.nnz_out(i) for i in range(4)), "second": second.nnz_out(0)}
    sizes["out"] = max(1, sizes["first"], sizes["second"])
    (tmp_path / "functions.c").write_text(text)
    (tmp_path / "main.c").write_text(DRIVER % sizes)
    command = [compiler, *(flag for flag in STRICT if not flag.startswith("-I"))]
    program, sources = tmp_path / "program", [tmp_path / "functions.c", tmp_path / "main.c"]
    ended = []
    for flags in (SANITIZED, ()):  # without, where this compiler has no sanitizers here
        words = [*command, *flags, *sources, "-lm", "-o", program]
        ended.append(subprocess.run(words, capture_output=True, text=True, check=False))
        if not ended[-1].returncode:
            break
    assert not ended[-1].returncode, ended[-1].stderr
    draws = np.random.default_rng(0)
    for _ in range(3):
        x, lam, p = (draws.standard_normal(sizes[word]) for word in ("x", "lam", "p"))
        spoken = "\n".join(map(repr, map(float, (*x, *lam, *p))))
        done = subprocess.run([program], input=spoken, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        found = np.array(done.stdout.split(), float)
        outputs = [*first.call([x, p]), *second.call([x, lam, p])]
        expected = np.concatenate([np.array(one.nonzeros()) for one in outputs])
        np.testing.assert_allclose(found, expected, rtol=CLOSE, atol=CLOSE)


def test_closed_loop_in_parts(compiler, tmp_path):
    """From multipliers and without."""
    case, draws = van_der_pol(60), np.random.default_rng(0)
    solver, numbers = nlpsol("oscillator", "hybrid", case.nlp), {"p": [0.0, 0.8]}
    loop = (case.moved(numbers, solver.result.x, draws) for _ in range(4))
    export = solver.export(tmp_path, loop=loop, **case.numbers)
    assert (export.form, export.looped) == (PARTS, True)
    compared = compare(export, compiler_of((compiler,)))
    assert compared.solved == (5, 5)
    assert compared.cold == (0, export.cold.answer.iterations)
    assert compared.difference <= CLOSE


def test_shortest_form_is_chosen():
    """Parts where they are much shorter; all of them by loops=True, straight by False."""
    lengths = []
    for stages in (150, 300):
        functions = functions_of(van_der_pol(stages).nlp)
        chosen, straight = generate(functions, "s", None), generate(functions, "s", False)
        assert (chosen.form, straight.form) == (PARTS, STRAIGHT)
        lengths.append((len(chosen.text), len(straight.text)))
    short, long = np.diff(lengths, axis=0)[0]
    assert short < long / 5  # tables alone grow with the horizon
    few = functions_of(chain())
    assert generate(few, "s", None).form == STRAIGHT  # few operations
    assert generate(few, "s", True).form == PARTS
    x = ca.SX.sym("x", 3)
    with pytest.raises(InputError, match="repeats"):
        generate(functions_of({"x": x, "f": ca.sumsqr(x)}), "s", True)
    assert generate(functions_of(chain(25)), "s", None).form == PARTS


def test_graphs_become_loops_of_casadi(compiler, tmp_path):
    """A table of numbers in each mapped stage."""
    at = np.linspace(-2, 2, 9)
    table = ca.interpolant("table", "bspline", [at.tolist()], np.sin(at).tolist())
    N, a, b = 6, ca.MX.sym("a"), ca.MX.sym("b")
    step = ca.Function("step", [a, b], [a + 0.1 * (b - table(a))])
    X, U, p = ca.MX.sym("X", 1, N + 1), ca.MX.sym("U", 1, N), ca.MX.sym("p")
    gaps = step.map(N)(X[:, :-1], U) - X[:, 1:]
    f, g = ca.sumsqr(X) + ca.sumsqr(U), ca.vertcat(X[:, 0] - p, ca.vec(gaps))
    nlp = {"x": ca.veccat(X, U), "p": p, "f": f, "g": g}
    solver = nlpsol("tabled", "hybrid", nlp)
    numbers = {"p": 1.0, "lbg": 0, "ubg": 0, "lbx": -1.5, "ubx": 1.5}
    export = solver.export(tmp_path, **numbers, loops=True, loop=[{"p": 0.9}])
    assert export.form == LOOPS
    compared = compare(export, compiler_of((compiler,)))
    assert compared.solved == (2, 2)
    assert compared.difference <= CLOSE


def test_infinite_numbers_have_names():
    assert [number(v) for v in (np.nan, np.inf, -np.inf)] == ["NAN", "INFINITY", "-INFINITY"]
    assert (number(0.1), float(number(1 / 3))) == ("0.1", 1 / 3)
