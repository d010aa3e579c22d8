"""``casadi-hybrid new``: each start file runs as it is, and says what a user would look for."""

import subprocess
import sys
from pathlib import Path

import pytest

from casadi_hybrid.cli import main
from casadi_hybrid.cli.new import KINDS


def run(path: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path), *options],
        capture_output=True, text=True, check=False, cwd=path.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_file_runs(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine" / "start.py"
    assert main(["new", str(path.with_suffix("")), f"--{kind}"]) == 0
    assert f"python {path}" in capsys.readouterr().out
    said = run(path)
    assert {"nlp": "ACCEPTED", "ocp": "success: True", "mpc": "solved"}[kind] in said


def test_a_copy_of_a_scenario_runs_from_anywhere(tmp_path: Path) -> None:
    assert main(["new", str(tmp_path / "mine"), "--from", "van_der_pol"]) == 0
    said = run(tmp_path / "mine.py", "--short", "--output", str(tmp_path / "out"))
    assert said.startswith("mine: ")
    assert "accepted" in said


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
