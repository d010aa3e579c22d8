"""The C of an export needs three headers of C99; code that needs more is refused by name."""

import subprocess
import sys

import casadi as ca
import numpy as np
import pytest
from support.cases.watched import PythonFunction, ended

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.core.export.compare import STRICT, compare
from casadi_hybrid.core.export.functions import STRAIGHT, generate
from casadi_hybrid.core.export.needs import HEADERS
from casadi_hybrid.problem.problem import Problem

X, P = ca.MX.sym("X", 3), ca.MX.sym("p")
SHARED = ("-dynamiclib",) if sys.platform == "darwin" else ("-shared", "-Wl,-z,defs")


def table(x):
    """A function without a scalar form, so that what stands beside it stays a graph of matrices."""
    return ca.interpolant("table", "bspline", [list(range(6))], np.arange(6.0) ** 2)(x)


OF_ONE = "atan asinh ceil cos cosh erf exp expm1 fabs floor sign sin sinh tan tanh logic_not"
OF_LESS_THAN_ONE = "acos asin atanh erfinv log1p"
OF_TWO = "atan2 copysign fmax fmin fmod hypot remainder eq ne lt le logic_and logic_or"


def scalars(kind):
    """Every operation on numbers that has two derivatives."""
    x, p = kind.sym("x", 3), kind.sym("p")
    small, a, b = ca.tanh(x) / 2, x[0], x[1]
    rows = [getattr(ca, name)(x) for name in OF_ONE.split()]
    rows += [getattr(ca, name)(small) for name in OF_LESS_THAN_ONE.split()]
    rows += [getattr(ca, name)(a, b) for name in OF_TWO.split()]
    rows += [ca.acosh(2 + x**2), ca.log(2 + x), ca.sqrt(1 + x**2), 1 / (3 + x), x**2, 2 * x, -x]
    rows += [x**2.5, a**b, ca.if_else(a < b, p, b), a / (2 + b)]
    g = ca.densify(ca.vertcat(*rows))
    return x, p, g if kind is ca.SX else g + table(x[0])


def matrices():
    """Kinds of nodes of an MX graph, and functions that are called in one."""
    a, b, y = ca.SX.sym("a"), ca.SX.sym("b"), ca.MX.sym("y")
    fixed = ca.DM([[3, 1, 0], [1, 4, 1], [0, 1, 5]])
    M = ca.mtimes(X, X.T) + fixed
    step = ca.Function("step", [a, b], [a + 0.1 * (b - a**3)])
    staged = ca.Function("staged", [y], [table(y)])
    square, sine = ca.Function("square", [a], [a**2]), ca.Function("sine", [a], [ca.sin(a)])
    switch = ca.Function.conditional("switch", [square, sine], ca.Function("same", [a], [a]))
    root = ca.rootfinder("root", "fast_newton", {"x": a, "p": b, "g": a**3 + a - b})
    flat = ca.interpolant("flat", "linear", [[0, 1, 2], [0, 1, 2]], np.arange(9.0))
    cubic = ca.interpolant("cubic", "bspline", [list(range(6))], np.arange(6.0))
    four, six, placed = ca.repmat(X, 1, 4), ca.repmat(P, 1, 6), ca.MX(X)
    placed[1] = P
    rows = [X.attachAssert(X[0] > -100, "below"), ca.low(ca.DM([0, 1, 2, 3]), P), ca.find(X > 0)]
    rows += [ca.det(M), ca.inv(M), ca.pinv(M), ca.logsumexp(X), ca.norm_1(X), ca.norm_2(X)]
    rows += [ca.norm_inf(X), ca.norm_fro(M), ca.mmin(X), ca.mmax(X), ca.bilin(fixed, X, X)]
    rows += [ca.rank1(fixed, P, X, X), ca.kron(X, M), ca.diagcat(X, M), ca.horzcat(X, M)]
    rows += [*ca.vertsplit(ca.sin(X))[::-1], *ca.horzsplit(ca.sin(M))[::-1], four]
    rows += [*ca.diagsplit(ca.diagcat(ca.sin(P), M), [0, 1, 4]), ca.repsum(four * 2, 1, 2)]
    rows += [ca.sin(M).T, ca.mtimes(M, M.T), ca.dot(X, X), ca.reshape(M, 9, 1), X[P], M[P, :]]
    rows += [ca.einstein(ca.vec(M), X, [3, 3], [3], [3], [-1, -2], [-2], [-1]), placed]
    rows += [ca.project(M, ca.Sparsity.diag(3)), ca.densify(ca.diag(X)), ca.cumsum(X)]
    rows += [ca.if_else(P > 0, X, X**2, True), ca.conditional(P, [X, X**2], X**3, True)]
    rows += [switch(P, X[0]), step.fold(6)(X[0], six), step.mapaccum(6)(X[0], six), root(0.1, P)]
    rows += [staged.map(3)(X.T), staged.map(3, "openmp")(X.T), flat(X[:2]), cubic(X[1])]
    rows += [ca.solve(M, X, kind) for kind in ("qr", "ldl", "lsqr")]
    return X, P, ca.vertcat(*(ca.densify(ca.vec(row)) for row in rows))


NOT_WRITTEN = "PRINTME MONITOR DUMP"
NOT_MET = "ASSIGN CONVEXIFY INVERSE LIFT MAP NORM2 PARAMETER SETNONZEROS_PARAM SUBASSIGN SUBREF"
"""Operations of graphs that CasADi makes itself, or of nodes that have no derivatives."""


def operations(function):
    """Operations of a function and of all that it calls, by CasADi's words."""
    numbers = set()
    for one in (function, *function.find_functions()):
        if one.is_a("SXFunction") or one.is_a("MXFunction"):
            numbers |= {one.instruction_id(k) for k in range(one.n_instructions())}
    words = (word for word in dir(ca) if word.startswith("OP_"))
    return {word.removeprefix("OP_") for word in words if getattr(ca, word) in numbers}


def test_all_that_is_written_compiles_and_links(compiler, tmp_path):
    """Every operation there is, with warnings as errors, and nothing is left to be linked."""
    seen, files = set(), []
    parts = {"sx": scalars(ca.SX), "mx": scalars(ca.MX), "nodes": matrices()}
    for name, (x, p, g) in parts.items():
        nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": g}
        functions = Problem.from_nlp(nlp).functions
        both = functions.first, functions.with_hessian("curvature")
        assert functions.first.is_a("SXFunction") == (name == "sx")
        generated = generate(functions, name, None)
        assert generated.form == STRAIGHT
        lines = generated.text.splitlines()
        included = {line.split()[1] for line in lines if line.startswith("#include ")}
        assert included <= {f"<{header}>" for header in HEADERS}
        files.append(tmp_path / f"{name}_functions.c")
        files[-1].write_text(generated.text)
        seen |= operations(both[0]) | operations(both[1])
    flags = [flag for flag in STRICT if not flag.startswith("-I")]
    words = [compiler, *flags, "-fPIC", *SHARED, *files, "-lm", "-o", tmp_path / "all"]
    done = ended(words)
    assert not done.returncode, done.stderr
    every = {word.removeprefix("OP_") for word in dir(ca) if word.startswith("OP_")}
    assert every - seen <= {*NOT_WRITTEN.split(), *NOT_MET.split()}


def test_inverse_error_function_is_written(tmp_path):
    """By CasADi's formula, which the header math.h does not have."""
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": ca.erfinv(ca.vertcat(0.3, 0.8, -0.9) * x)}
    written = nlpsol("s", "hybrid", nlp).export(tmp_path, p=1, ubg=[0.2, 0.8, 5])
    compared = compare(written)
    assert compared.solved[0]
    assert compared.difference < 1e-15  # log and exp of a C library differ in the last bit


MINE, STAGE = PythonFunction(ca.sin, name="mine"), ca.Function("t", [X], [table(X[0])])
PROGRAM = {"h": ca.Sparsity.diag(3)}, {"print_header": False}
Y = ca.SX.sym("y")
REFUSED = {
    "printme": (lambda: X[0].printme(P), r"printme.*stdio\.h"),
    "monitor": (lambda: table(X[0]) + X[0].monitor("here"), r"monitor.*stdio\.h"),
    "callback": (lambda: MINE(P), "'mine'"),
    "threads": (lambda: STAGE.map(2, "thread", 2)(ca.horzcat(X, X)).T, "map .* over threads"),
    "a solver": (
        lambda: ca.conic("q", "qrqp", *PROGRAM)(h=ca.DM.eye(3), g=ca.DM.ones(3), lbx=P)["x"][0],
        r"stdarg\.h, stdio\.h",
    ),
    "an integrator": (
        lambda: ca.integrator("i", "cvodes", {"x": Y, "ode": -Y}, 0, 1)(x0=P)["xf"],
        "Cvodes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_code_that_needs_more_is_refused(name, tmp_path, capfd):
    made, message = REFUSED[name]
    nlp = {"x": X, "p": P, "f": ca.sumsqr(X - P), "g": made()}
    with pytest.raises(InputError, match=message):
        nlpsol("s", "hybrid", nlp).export(tmp_path / "out", p=0.5)
    assert not (tmp_path / "out").exists()
    capfd.readouterr()


def test_foreign_library_is_refused(compiler, tmp_path, monkeypatch):
    """Nothing of that library is written: an export would not link."""
    monkeypatch.chdir(tmp_path)
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": x[0] * x[1]}
    quiet = {"ipopt.print_level": 0, "print_time": 0}
    ca.nlpsol("i", "ipopt", nlp, quiet).generate_dependencies("nlp.c")
    subprocess.run([compiler, "-fPIC", SHARED[0], "nlp.c", "-o", "nlp.so", "-lm"], check=True)
    solver = nlpsol("s", "hybrid", "./nlp.so")
    with pytest.raises(InputError, match=r"'nlp_grad_f'.*'nlp_jac_g'"):
        solver.export("out", p=0.5, lbg=0)
    assert not (tmp_path / "out").exists()
