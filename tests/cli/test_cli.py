"""The command line: help, listing, one-line errors, exit codes, and start files."""

import io
import sys
from pathlib import Path

import pytest
from support.cases.watched import ended
from support.paths import ROOT

from casadi_hybrid.cli import main
from casadi_hybrid.cli.new import KINDS


@pytest.mark.parametrize("command", ["reproduce", "study"])
def test_figures_in_other_formats_are_in_the_help(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "--figures {png,svg,pdf}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["reproduce", "--instances", "0"],
        ["reproduce", "--shape", "0", "3"],
        ["reproduce", "--workers", "0"],
        ["run", "no-such-scenario"],
        ["run", "pendulum", "--scenarios", "/nonexistent/folder"],
    ],
)
def test_errors_are_one_line_and_a_code(arguments, capsys):
    assert main(arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("casadi-hybrid: error: ")


SCENARIO = '"""{}"""\n\n\ndef problem():\n    pass\n\n\n'


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


def test_scenarios_are_listed_and_a_misspelt_one_gets_a_suggestion(tmp_path, capsys):
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
    with pytest.raises(SystemExit):
        main(["verfy", "mine.py"])
    assert "no command 'verfy'; did you mean 'verify'?" in capsys.readouterr().err


def test_an_unknown_option_shows_the_usage_of_its_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "--instancs", "3"])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("usage: casadi-hybrid reproduce [-h] [--instances N]")
    assert err.endswith("casadi-hybrid reproduce: error: unrecognized arguments: --instancs 3\n")


def test_the_bare_command_prints_the_help_by_groups(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--help"])
    assert capsys.readouterr().out == out
    titles = [line for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == ["use:", "check:", "the paper:", "this machine:", "examples:"]
    assert all(len(line) <= 100 for line in out.splitlines())


def test_a_pipe_without_greek_gets_question_marks(tmp_path, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    (tmp_path / "tank.py").write_text(SCENARIO.format("‖M‖ of a tank"), encoding="utf-8")
    assert main(["run", "--help", "--scenarios", str(tmp_path)]) == 0
    sys.stdout.flush()
    assert b"tank  ?M? of a tank" in written.getvalue()


def run(path: Path, *options: str) -> str:
    done = ended([sys.executable, "-W", "error", str(path), *options], cwd=path.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_file_runs(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine" / "start.py"
    assert main(["new", str(path.with_suffix("")), f"--{kind}"]) == 0
    assert f"python {path}" in capsys.readouterr().out
    assert {"nlp": "ACCEPTED", "ocp": "success: True", "mpc": "solved"}[kind] in run(path)


def test_copy_of_scenario_is_its_file(tmp_path: Path) -> None:
    assert main(["new", str(tmp_path / "mine"), "--from", "van_der_pol"]) == 0
    source = ROOT / "scenarios" / "van_der_pol.py"
    assert (tmp_path / "mine.py").read_bytes() == source.read_bytes()


def test_what_exists_is_not_written_over(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text("precious")
    assert main(["new", str(path)]) == 2
    assert f"{path} exists" in capsys.readouterr().err
    assert path.read_text() == "precious"
    assert main(["new", str(path), "--force"]) == 0
    assert "OptimalControl" in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["2fast"], "NAME must be a word"), (["mine", "--from", "cartpol"], "no scenario 'cartpol'")],
)
def test_refusals(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_start_file_is_verified_without_being_run(tmp_path, capsys):
    path = tmp_path / "start.py"
    assert main(["new", str(path), "--nlp"]) == 0
    capsys.readouterr()
    assert main(["verify", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out.count("ACCEPTED") == 1
    assert not err
