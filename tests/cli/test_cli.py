"""The command line: help, listing, one-line errors, exit codes, and start files."""

import io
import re
import runpy
import sys
import time
from pathlib import Path

import pytest
from support.cases.watched import ended
from support.paths import ROOT

from casadi_hybrid.cli import main
from casadi_hybrid.cli.new import KINDS
from casadi_hybrid.cli.parser import make_parser
from casadi_hybrid.paper.experiment.tables import titled
from casadi_hybrid.utils.output.text import clock, fitted


@pytest.mark.parametrize(
    "words",
    [
        "reproduce --instances 0",
        "reproduce --shape 0 3",
        "reproduce --workers 0",
        "run no-such-scenario",
        "run pendulum --scenarios /nonexistent/folder",
    ],
)
def test_errors_are_one_line(words, capsys):
    assert main(words.split()) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("casadi-hybrid: error: ")


SCENARIO = '"""{}"""\n\n\ndef problem():\n    pass\n\n\n'


def test_misspelt_words_show_the_usage(capsys):
    for words, parts in (
        (["verfy", "mine.py"], ("'verfy'", "'verify'")),
        (["reproduce", "--instancs", "3"], ("usage: casadi-hybrid reproduce", "--instancs")),
    ):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 2
        error = capsys.readouterr().err
        assert all(part in error for part in parts)


def test_bare_command_prints_the_help(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--help"])
    assert capsys.readouterr().out == text
    assert all(name in text for name in make_parser().commands.choices)


def test_scenario_gives_report_and_exit_code(tmp_path, capfd):
    script = "import sys\nprint(*sys.argv[1:])\nopen('tank.png', 'w').close()\nsys.exit(3)\n"
    (tmp_path / "tank.py").write_text(SCENARIO.format("A tank.") + script)
    out = tmp_path / "out"
    command = ["run", "tank", "--scenarios", str(tmp_path), "--output", str(out), "--short"]
    assert main(command) == 3
    assert (out / "report.txt").read_text() == "--short\n"
    assert (out / "tank.png").exists()
    printed = capfd.readouterr().out
    assert printed.startswith("tank: A tank.")
    assert str(out / "tank.png") in printed
    (tmp_path / "file").write_text("")
    assert main([*command[:-2], str(tmp_path / "file" / "below")]) == 2  # before the work


def test_scenarios_are_listed_by_summary(tmp_path, capsys):
    (tmp_path / "tank.py").write_text(SCENARIO.format("A tank."))
    (tmp_path / "shared.py").write_text("VALUE = 1\n")
    assert main(["run", "--help", "--scenarios", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "  tank  A tank." in out
    assert "  shared" not in out
    assert main(["run", "--scenarios", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["run", "tank", "--help", "--scenarios", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "A tank.\n"
    assert main(["run", "--scenarios", str(tmp_path / "none")]) == 2
    assert main(["run", "tnak", "--scenarios", str(tmp_path)]) == 2
    assert "did you mean 'tank'?" in capsys.readouterr().err


def test_pipes_without_greek_still_print(tmp_path, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    (tmp_path / "tank.py").write_text(SCENARIO.format("‖M‖ of a tank"), encoding="utf-8")
    assert main(["run", "--help", "--scenarios", str(tmp_path)]) == 0
    sys.stdout.flush()
    assert b"tank  ?M? of a tank" in written.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_start_files_run(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine" / "start.py"
    assert main(["new", str(path.with_suffix("")), f"--{kind}"]) == 0
    assert f"python {path}" in capsys.readouterr().out
    done = ended([sys.executable, "-W", "error", str(path)], cwd=path.parent)
    assert done.returncode == 0, done.stderr
    assert {"nlp": "ACCEPTED", "ocp": "Solved", "mpc": "solved"}[kind] in done.stdout


def test_first_loop_keeps_its_limits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "loop", "--mpc"]) == 0
    run = runpy.run_path("loop.py", run_name="__main__")["run"]
    assert run.worst is None
    assert run.success.all()


@pytest.mark.parametrize("columns", [80, 120])
def test_output_fits_the_terminal(columns, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    path = str(tmp_path / "start.py")
    main(["new", path, "--nlp", "--force"])
    capsys.readouterr()
    assert main(["verify", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert 0.8 * columns < max(map(len, lines)) <= columns
    rows = [["cond", *(f"method {k}" for k in range(20))]]
    rows += [[f"{c}", *(f"{k} of {c}" for k in range(20))] for c in (100, 2000)]
    parts = fitted("\n".join(titled("Runs", rows)))
    assert max(map(len, parts.splitlines())) <= columns
    cells = re.split(r"\s{2,}|\n", parts)
    assert all(cells.count(cell) == 1 for row in rows for cell in row[1:])


def test_clock_is_for_terminals(monkeypatch):
    for is_terminal in (True, False):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda answer=is_terminal: answer)
        monkeypatch.setattr(sys, "stderr", stream)
        with clock("waiting"):
            time.sleep(1.3)
        assert ("waiting" in stream.getvalue()) is is_terminal


def test_copy_of_scenario_is_its_file(tmp_path: Path) -> None:
    assert main(["new", str(tmp_path / "mine"), "--from", "van_der_pol"]) == 0
    source = ROOT / "scenarios" / "van_der_pol.py"
    assert (tmp_path / "mine.py").read_bytes() == source.read_bytes()


def test_existing_files_are_kept(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text("precious")
    assert main(["new", str(path)]) == 2
    assert f"{path} exists" in capsys.readouterr().err
    assert path.read_text() == "precious"
    assert main(["new", str(path), "--force"]) == 0
    assert "OptimalControl" in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "text"), [(["2fast"], "NAME"), (["mine", "--from", "cartpol"], "'cartpol'")]
)
def test_wrong_names_are_refused(arguments, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", *arguments]) == 2
    assert text in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_start_files_can_be_verified(tmp_path, capsys):
    path = str(tmp_path / "start.py")
    assert main(["new", path, "--nlp"]) == 0
    assert main(["verify", path]) == 0
    out, err = capsys.readouterr()
    assert "ACCEPTED" in out
    assert not err
