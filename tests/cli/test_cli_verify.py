"""``casadi-hybrid verify``, the examples of every command, and the completion of a shell."""

import json
import os
import shlex
import subprocess
import sys
from contextlib import suppress

import pytest
from support.paths import DATA

from casadi_hybrid import InputError
from casadi_hybrid.cli import main, verifying
from casadi_hybrid.cli.own import module_at, read
from casadi_hybrid.cli.parser import EXAMPLES, GROUPS, make_parser

HEAD = "import casadi as ca\nimport casadi_hybrid as ch\nx = ca.SX.sym('x', 2)\n"
NLP = HEAD + "nlp = {'x': x, 'f': ca.sumsqr(x - 1), 'g': x[0] + x[1]}\n"
NL = (DATA / "verified.nl").read_text("utf-8")


@pytest.fixture
def written(tmp_path):
    def write(text, name="own.py"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def judged(place, capsys, *more):
    code = main(["verify", place, "--json", *more])
    return code, json.loads(capsys.readouterr().out)


OPTI = """
opti = ca.Opti()
y, p = opti.variable(2), opti.parameter()
opti.minimize(ca.sumsqr(y - p))
opti.subject_to(opti.bounded(0, y, p / 2))
opti.set_value(p, 3)
opti.set_initial(y, 1)
"""
PARAMETERS = """
p = ca.SX.sym('p')
nlp = {'x': x, 'p': p, 'f': ca.sumsqr(x - p)}
solver = ch.nlpsol('solver', 'hybrid', nlp)
numbers = {'x0': 1, 'p': 3, 'ubx': [2, 5]}
"""


@pytest.mark.parametrize(
    ("text", "name", "x"),
    [
        (NLP + "ubg = 1\n", "", [0.5, 0.5]),
        (NLP + "lbg = 4\nlbx = [0, 2.5]\nx0 = [9, 9]\n", "", [1.5, 2.5]),
        (NLP + "def plan():\n    return nlp, {'lbg': 4}\n", ":plan", [2, 2]),
        (NLP + "mine = ch.nlpsol('mine', 'hybrid', nlp), {'ubg': 0}\n", ":mine", [0, 0]),
        (HEAD + "problem = ch.Problem(x=x, f=ca.sumsqr(x), h=x[0] + x[1] - 2)\n", "", [1, 1]),
        (HEAD + OPTI, "", [1.5, 1.5]),
        (HEAD + PARAMETERS, "", [2, 3]),
        (HEAD + PARAMETERS, ":solver", [2, 3]),
        (HEAD + "def problem():\n    return ch.Problem(x=x, f=ca.sumsqr(x + 2))\n", "", [-2, -2]),
    ],
)
def test_problems_are_solved_and_judged(written, capsys, text, name, x):
    code, data = judged(written(text) + name, capsys)
    assert code == 0
    assert data["result"]["stop"] == "CONVERGED"
    assert data["report"]["accepted"]
    assert data["report"]["reference"]["relation"] == "SAME_POINT"
    assert data["report"]["x"] == pytest.approx(x, abs=1e-5)


CALLBACK = f"""{HEAD}
class Sine(ca.Callback):
    def __init__(self):
        ca.Callback.__init__(self)
        self.construct("sine", dict(enable_fd=True))
    def eval(self, arguments):
        return [ca.sin(arguments[0])]
sine = Sine()
y = ca.MX.sym("y")
def problem():
    return dict(x=y, f=y**2 + sine(y))
"""
DATACLASS = f"""from __future__ import annotations
from dataclasses import dataclass
{HEAD}
@dataclass
class Place:
    at: float = 1.0
def problem():
    return dict(x=x, f=ca.sumsqr(x - Place().at))
"""
BALL = """
from casadi_hybrid.control import *

def ball(inner):
    model = Model("ball")
    model.state("height", upper=1, unit="m")
    push = model.control("push", lower=-5, upper=5)
    model.rates(height=model.state("speed"), speed=push - 9.81)
    ocp = OptimalControl(model, duration=1, intervals=1, method=MultipleShooting(inner=inner))
    ocp.initial(height=0)
    ocp.final(height=0)
    ocp.minimize("effort", integral=push**2)
    return ocp

def low():
    return ball(1)

ocp = ball(0)
"""


def test_ocp_is_judged_between_points(written, capsys):
    """Thrown up to come down after a second without a push, a ball rises by g/8 = 1.226 m."""
    path = written(BALL)
    code, data = judged(path, capsys)
    assert code == 1
    (reason,) = data["report"]["findings"]
    assert reason["category"] == "EXCEEDED_BETWEEN"
    assert "height is 0.226 m" in reason["sentence"]
    assert main(["verify", path + ":low"]) == 0
    assert "ACCEPTED" in capsys.readouterr().out


FOLLOWED = """
model = Model("mass")
x, u = model.state("x", upper=model.parameter("top", 9.0)), model.control("u")
model.rates(x=u)
ocp = OptimalControl(model, duration=2.0, intervals=2)
ocp.initial(x=0)
ocp.minimize("error", integral=(x - model.reference("goal")) ** 2 + 0.1 * u**2)
mine = ocp, {"goal": 1.0, "top": 0.25, "x0": [-1]}
"""


def test_ocp_takes_numbers_of_file(written, capsys):
    path = written(BALL + FOLLOWED)
    assert main(["verify", path]) == 2
    assert "'goal'" in capsys.readouterr().err
    code, data = judged(path + ":mine", capsys)
    assert (code, max(data["report"]["x"][::2])) == (0, pytest.approx(0.25, abs=1e-5))
    assert main(["verify", written(BALL + FOLLOWED + "numbers = {'goal': 1.0}")]) == 0


def test_unknown_numbers_are_named(written, capsys):
    assert main(["verify", written(NLP + "numbers = {'mass': 3}")]) == 0  # other numbers
    assert main(["verify", written(NLP + "numbers = {'x0': 3, 'upx': 3}")]) == 2
    assert "did you mean 'ubx'" in capsys.readouterr().err


def test_modules_live_with_their_problem(written, capsys, tmp_path):
    """A callback that only the file's module keeps, and a class that asks for the module."""
    place = written(CALLBACK)
    code, data = judged(place, capsys, "--no-ipopt")
    assert code == 0
    assert data["report"]["x"] == pytest.approx([-0.45018361], abs=1e-5)
    assert main(["export", place, "--out", str(tmp_path / "out")]) == 2
    assert "'sine'" in capsys.readouterr().err
    code, data = judged(written(DATACLASS, "queue.py"), capsys, "--no-ipopt")
    assert code == 0
    assert data["report"]["x"] == pytest.approx([1, 1])


def test_module_names_stay_unique(written):
    before = set(sys.modules)
    names = "fractions.py", "casadi.py", "two.dots.py", "fractions.py"
    modules = [module_at(written(DATACLASS, name)) for name in names]
    assert len({module.__name__ for module in modules}) == len(names)
    assert all(sys.modules.pop(module.__name__) is module for module in modules)
    assert set(sys.modules) == before
    with pytest.raises(ZeroDivisionError):
        module_at(written("1 / 0\n"))
    assert set(sys.modules) == before


def test_ampl_files_are_read(written, capsys):
    code, data = judged(written(NL, "hs.nl"), capsys)
    assert code == 0
    assert data["report"]["problem"] == "hs"
    assert data["report"]["x"] == pytest.approx([0.5, 0.5], abs=1e-6)
    for sizes in (" 1000000000 1", " 2 1000000000", f" {'9' * 21} 0", " 2 C", ""):
        assert main(["verify", written(NL.replace(" 2 1", sizes, 1), "hs.nl")]) == 2
        assert "hs.nl cannot be read" in capsys.readouterr().err


def test_answer_of_the_file_is_judged(written, capsys):
    assert main(["verify", written(NLP + "ubg = 1\nanswer = [0.5, 0.5]\n")]) == 0
    assert capsys.readouterr().out.count("ACCEPTED") == 2  # of the solve, and of the file's answer
    code, data = judged(written(NLP + "ubg = 1\nanswer = [1, 0]\n"), capsys)
    assert code == 1
    assert data["report"]["accepted"]
    assert not data["answer"]["accepted"]


def test_own_answer_is_printed_before_others(written, capsys, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(verifying, "verify", interrupted)
    assert main(["verify", written(NLP + "ubg = 1\n")]) == 130
    assert "CONVERGED" in capsys.readouterr().out


def test_rows_without_bounds_are_named(written, capsys):
    """CasADi's default is no bound: what was meant as an equation limits nothing."""
    assert main(["verify", written(NLP), "--no-ipopt"]) == 0
    assert "has a bound" in capsys.readouterr().out
    for given in ("lbg = 0\n", "ubg = 9\n"):
        assert main(["verify", written(NLP + given), "--no-ipopt"]) == 0
        assert "has a bound" not in capsys.readouterr().out


def test_failed_solves_exit_with_three(written, capsys):
    place = written(HEAD + "problem = ch.Problem(x=x, f=x[0], h=ca.sumsqr(x) + 1)\n")
    assert main(["verify", place]) == 3
    assert "cannot be met" in capsys.readouterr().out
    code, data = judged(written(NLP + "ubg = 1\n"), capsys, "--max-iter", "1", "--no-ipopt")
    assert (code, data["result"]["stop"]) == (3, "ITERATION_LIMIT")
    assert data["report"]["restart"] is None


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("x = 1\n", "", "has no problem, nlp, opti or ocp"),
        (NLP, ":nlpp", "has no 'nlpp'; did you mean 'nlp'"),
        (BALL, ":other", "known: ball, low, ocp"),  # what the file states, no imports
        (NLP, ":x", "must be a Problem"),
        (NLP + "a = nlp, {'ubgs': 1}\n", ":a", "'ubgs'.* did you mean"),
        (NLP + "a = nlp, 3\n", ":a", "must be a dictionary"),
        ("1 / 0\n", "", r"\.py:1: .* raised ZeroDivisionError: division by zero"),
        ("def ocp():\n    {}['k']\n", "", r"\.py:2: ocp of .*\.py raised KeyError: 'k'"),
        ("def ocp(n, m=1): 0\n", "", "ocp of .* needs n"),
    ],
)
def test_files_without_problems_are_refused(written, text, name, message):
    with pytest.raises(InputError, match=message):
        read(written(text) + name)


@pytest.mark.parametrize("command", [["verify"], ["export", "--out", "none"]])
@pytest.mark.parametrize("name", ["none.py", "none.nl", "no_such_module", "no_such_module:ocp"])
def test_missing_files_are_refused(name, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*command, name]) == 2
    assert "there is no" in capsys.readouterr().err


# Help and completion.


def test_help_examples_can_be_parsed(capsys):
    parser = make_parser()
    assert set(EXAMPLES) == set(parser.commands.choices) == set(sum(GROUPS.values(), ()))
    for name, lines in EXAMPLES.items():
        for line in lines:
            arguments, rest = parser.parse_known_args(shlex.split(line))
            assert arguments.command == name
            assert not rest or name == "run"
        with suppress(SystemExit):
            main([name, "--help"])
        text = capsys.readouterr().out
        assert all(f"casadi-hybrid {line}" in text for line in lines)


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("ver", {"verify"}),
        ("study --cl", {"--cluster"}),
        ("study --table ", {"csv", "parquet"}),
        ("run cartp", {"cartpole"}),
    ],
)
def test_shells_complete_words(line, some, tmp_path):
    line = f"casadi-hybrid {line}"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_POINT": str(len(line))}
    asked |= {"COMP_LINE": line, "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "words")}
    command = [sys.executable, "-m", "casadi_hybrid"]
    subprocess.run(command, env=os.environ | asked, check=False)
    assert {word.strip() for word in (tmp_path / "words").read_text().splitlines()} == some
