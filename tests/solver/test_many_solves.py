"""Studies as a whole: workers that die, Ctrl-C, sweeps and Monte Carlo that are taken up again."""

import contextlib
import os
import signal
import subprocess
import threading

import killed_study
import numpy as np
import pytest
import reporting

from casadi_hybrid import InputError
from casadi_hybrid.cli import main
from casadi_hybrid.control import monte_carlo, simulate
from casadi_hybrid.paper.experiment.reproduce import reproduce
from casadi_hybrid.paper.study import Unfinished, population, sweep
from casadi_hybrid.utils.record import parallel
from casadi_hybrid.utils.record.parallel import in_parallel

GRID = {"gain": [1, 2], "kind": ["a", "b"], "noise": [0, 0.5]}


pytestmark = pytest.mark.usefixtures("terminal")


def square(number):
    return number * number


def deadly_at(*numbers, once=None):
    """A function that ends its process at some numbers; with ``once``, a file, the first time."""

    def work(number):
        if number in numbers and not (once and once.exists()):
            if once:
                once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    return work


def test_items_of_a_dead_worker_run_again(tmp_path):
    work = deadly_at(5, once=tmp_path / "died")
    assert dict(in_parallel(work, range(9), workers=2)) == {i: i * i for i in range(9)}


@pytest.mark.parametrize(
    "cluster", [None, pytest.param("local", marks=pytest.mark.slow, id="Dask")]
)
def test_an_item_that_kills_its_worker_is_one_row(cluster):
    if cluster:
        pytest.importorskip("distributed")
    work = deadly_at(5)
    values = dict(in_parallel(work, range(9), workers=2, cluster=cluster, lost=lambda i, why: why))
    assert values.pop(5) == (
        "the process it ran in ended without an answer, also when it was run alone"
    )
    assert values == {i: i * i for i in range(9) if i != 5}


def test_a_killing_item_is_an_error_without_a_value():
    with pytest.raises(RuntimeError, match="1: the process it ran in ended"):
        list(in_parallel(deadly_at(1), range(3), workers=2))


def test_workers_with_other_software_are_refused(monkeypatch):
    monkeypatch.setattr(parallel, "software", lambda: "casadi_hybrid 9")
    with pytest.raises(InputError, match=r"a worker runs casadi_hybrid .*, and this process"):
        list(in_parallel(square, range(3), workers=2))


def test_functions_that_cannot_travel_are_refused():
    lock = threading.Lock()
    with pytest.raises(InputError, match="cannot be sent to other processes; make what it uses"):
        list(in_parallel(lambda number: lock, range(3), workers=2))


def test_one_process_does_all_without_joblib(monkeypatch):
    monkeypatch.setattr(parallel, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"joblib is not installed.*casadi_hybrid\[study\]"):
        processes = dict(in_parallel(lambda number: os.getpid(), range(3), workers=2))
    assert set(processes.values()) == {os.getpid()}
    with pytest.raises(InputError, match=r"needs distributed.*casadi_hybrid\[cluster\]"):
        list(in_parallel(square, range(3), cluster="local"))


@pytest.mark.parametrize("cluster", ["tcp://127.0.0.1:9", "", 7])
def test_a_cluster_that_is_not_there_is_an_error(cluster, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(parallel, "_CONNECT_SECONDS", 0.2)
    with pytest.raises(InputError, match="no Dask scheduler"):
        list(in_parallel(square, range(3), cluster=cluster))


def test_lambdas_travel_to_other_processes():
    swept = sweep(
        lambda gain: {"cost": gain / 3}, {"gain": [1, 2, 3]}, ["cost"], workers=2, progress=False
    )
    assert swept.column("cost").tolist() == [1 / 3, 2 / 3, 1.0]


# Sweeps and Monte Carlo.


def cost(gain, kind, noise):
    if (gain, kind) == (2, "b"):
        raise ValueError("no gain of 2\nwith b")
    return {"cost": gain / 3 + noise, "rate": -noise}


def test_a_sweep_is_a_row_a_point_whatever_is_raised(tmp_path):
    with pytest.warns(UserWarning, match=r"raised at 2 of 8 points.*'b', 'noise': 0.0} ValueError"):
        found = sweep(cost, GRID, ["cost", "rate"], workers=1, folder=tmp_path, progress=False)
    assert found.rows["cost"].tolist()[:2] == found.column("cost").tolist()[:2]
    assert [tuple(row.values())[:3] for row in found.records][:3] == [
        (1, "a", 0.0), (1, "a", 0.5), (1, "b", 0.0),
    ]  # fmt: skip
    assert found.errors == dict.fromkeys([(2, "b", 0.0), (2, "b", 0.5)], "ValueError: with b")
    assert found.column("cost")[:2].tolist() == [1 / 3, 1 / 3 + 0.5]
    assert np.isnan(found.column("rate")[-2:]).all()
    assert "ValueError: with b" in str(found).splitlines()[-1]
    with pytest.raises(InputError, match="no column 'costs'"):
        found.column("costs")


@pytest.mark.filterwarnings("ignore:sweep")
def test_a_sweep_is_taken_up_again_and_grows(tmp_path, monkeypatch):
    whole = sweep(cost, GRID, ["cost", "rate"], workers=1, progress=False)
    calls = []

    def count(work, items, **options):
        calls.append(list(items))
        return in_parallel(work, items, **options)

    monkeypatch.setattr("casadi_hybrid.utils.record.collect.in_parallel", count)
    for kinds in (["b"], ["a", "b"], ["a", "b"]):
        found = sweep(cost, {**GRID, "kind": kinds}, ["cost", "rate"], workers=1,
                      folder=tmp_path, progress=False)  # fmt: skip
    assert [len(items) for items in calls] == [4, 4, 0]
    assert str(found) == str(whole)


def another(gain, kind, noise):
    return {"cost": gain, "rate": noise}


@pytest.mark.filterwarnings("ignore:sweep")
def test_a_sweep_of_another_function_is_not_mixed_in(tmp_path):
    sweep(cost, GRID, ["cost", "rate"], workers=1, folder=tmp_path, progress=False)
    with pytest.raises(InputError, match="a study with function = "):
        sweep(another, GRID, ["cost", "rate"], workers=1, folder=tmp_path, progress=False)


@pytest.mark.parametrize(
    ("over", "results", "message"),
    [
        ({}, ["cost"], "at least one name"),
        ({"gain": [1]}, [], "at least one name"),
        ({"gain": [1]}, ["gain"], "all of them different"),
        ({"gain": [1, "a"]}, ["cost"], "'gain' must be numbers, words or truth values of one"),
        ({"gain": []}, ["cost"], "got none"),
        ({"gain": [None]}, ["cost"], "NoneType"),
    ],
)
def test_a_wrong_sweep_is_refused(over, results, message):
    with pytest.raises(InputError, match=message):
        sweep(cost, over, results, progress=False)


def test_a_function_that_returns_something_else_is_an_error():
    with pytest.raises(InputError, match="must return a dictionary of cost; it returned 3"):
        sweep(lambda gain: 3, {"gain": [1]}, ["cost"], workers=1, progress=False)


def one_run(seed):
    if seed == 3:
        raise ValueError("seed 3 is odd")
    return simulate(
        lambda x, u: 0.9 * x + u, lambda time, x: -0.5 * x, steps=5, x0=[1.0], period=1.0,
        noise=0.1, seed=seed, cost=lambda x, u, time: float(x @ x),
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:monte_carlo")
def test_monte_carlo_is_taken_up_again_with_the_same_numbers(tmp_path):
    whole = monte_carlo(one_run, 6, progress=False)
    monte_carlo(one_run, [4, 1, 3], folder=tmp_path, progress=False)
    found = monte_carlo(one_run, 6, folder=tmp_path, progress=False)
    assert found.table() == whole.table()
    for name in ("cost", "violation", "failed", "steps"):
        assert found.column(name).tobytes() == whole.column(name).tobytes()
    assert found.errors == {3: "ValueError: seed 3 is odd"}


def test_a_reproduction_is_taken_up_again_with_the_same_runs(tmp_path, monkeypatch):
    options = {"conditions": (1,), "workers": 1, "progress": False}
    first = reproduce(1, folder=tmp_path, **options)
    monkeypatch.setattr("casadi_hybrid.paper.experiment.reproduce.run_instance", None)
    again = reproduce(1, folder=tmp_path, **options)
    assert str(again) == str(first)
    for a, b in zip(again.runs, first.runs, strict=True):
        assert (a.method, a.seed, a.hits, a.stop) == (b.method, b.seed, b.hits, b.stop)
        assert a.errors.tobytes() == b.errors.tobytes()


# Ctrl-C and kills.


def interrupted_after(number):
    def run(gain):
        if gain == number:
            raise KeyboardInterrupt
        return {"cost": gain}

    return run


def test_ctrl_c_hands_over_what_there_is(tmp_path):
    over = {"gain": list(range(9))}
    with pytest.raises(Unfinished, match="after 4 of 9") as caught:
        sweep(interrupted_after(4), over, ["cost"], workers=1, folder=tmp_path, progress=False)
    assert caught.value.found.column("cost").tolist() == [0, 1, 2, 3]
    with pytest.raises(Unfinished) as caught:
        monte_carlo(lambda seed: interrupted_after(2)(seed) and one_run(seed), 5, progress=False)
    assert [trial.seed for trial in caught.value.found.trials] == [0, 1]


def test_ctrl_c_that_casadi_swallows_is_heard_after_the_piece(tmp_path):
    def swallowing(gain):
        with contextlib.suppress(KeyboardInterrupt):
            if gain == 2:
                signal.raise_signal(signal.SIGINT)
        return {"cost": gain}

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Unfinished, match="after 2 of 5"):
        sweep(swallowing, {"gain": list(range(5))}, ["cost"], workers=1, folder=tmp_path,
              progress=False)  # fmt: skip
    assert signal.getsignal(signal.SIGINT) is before


def study(folder, *more):
    arguments = ["study", "--shapes", "3x5", "--conditions", "1", "--radii", "1", "--seeds", "3"]
    arguments += ["--rules", "auto", "--budget", "30", "--workers", "1"]
    return main([*arguments, "--output", str(folder), *more])


def test_ctrl_c_in_a_study_prints_what_there_is_and_goes_on(tmp_path, monkeypatch, capsys):
    whole, ran = population.run_unit, []

    def run(settings, unit):
        ran.append(unit)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return whole(settings, unit)

    monkeypatch.setattr(population, "run_unit", run)
    assert study(tmp_path) == 130
    printed = capsys.readouterr()
    assert "(n=  2)" in printed.out
    assert "interrupted after 2 of 3" in printed.err
    monkeypatch.setattr("casadi_hybrid.paper.study.write", lambda found, folder, form: [])
    assert study(tmp_path) == 0
    assert len(ran) == 4
    assert "(n=  3)" in capsys.readouterr().out


def test_a_table_that_cannot_be_written_is_printed(tmp_path, monkeypatch, capsys):
    def full(population, folder, form):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("casadi_hybrid.paper.study.write", full)
    assert study(tmp_path) == 2
    printed = capsys.readouterr()
    assert "(n=  3)" in printed.out
    assert "not everything was written: [Errno 28] No space left" in printed.err


@pytest.mark.parametrize("command", [["study"], ["reproduce"], ["export", "file.py"]])
def test_a_folder_is_tried_before_the_work(tmp_path, capfd, command):
    (tmp_path / "file").write_text("")
    (tmp_path / "file.py").write_text("raise SystemExit('the work began')")
    out = "--output"
    if command[0] == "export":
        out, command = "--out", ["export", str(tmp_path / "file.py")]
    assert main([*command, out, str(tmp_path / "file" / "below")]) == 2
    assert "below cannot be written to: Not a directory" in capfd.readouterr().err


def test_a_scenario_tries_its_folder_before_the_work(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as stop:
        reporting.parser("tank", "").parse_args(["--output", str(tmp_path / "file" / "below")])
    assert stop.value.code == 2
    assert "--output" in capsys.readouterr().err


SLOW = [pytest.param(carrier, marks=pytest.mark.slow) for carrier in ("processes", "Dask")]


@pytest.mark.parametrize("carrier", ["one process", *SLOW])
def test_ctrl_c_ends_a_command_without_a_traceback_and_leaves_no_worker(tmp_path, carrier):
    if carrier == "Dask":
        pytest.importorskip("distributed")
    words = killed_study.command(4000, tmp_path, carrier)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(words, **pipes) as process:
        assert killed_study.waited(lambda: killed_study.units_there(tmp_path) >= 2)
        workers = killed_study.workers_of(process.pid)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=300)
    assert len(workers) == (0 if carrier == "one process" else 2)
    assert process.returncode == 130
    assert b"runs a cell" in out
    assert b"Traceback" not in err
    assert b"the same command goes on from there" in err
    assert killed_study.waited(lambda: not any(map(killed_study.alive, workers)), patience=20)


@pytest.mark.parametrize("carrier", SLOW)
def test_a_study_that_is_killed_twice_ends_as_an_undisturbed_one(carrier, capsys):
    if carrier == "Dask":
        pytest.importorskip("distributed")
    assert killed_study.main(["--instances", "60", "--on", carrier]) == 0
    assert capsys.readouterr().out.count("same") == 2
