"""Studies as a whole: dead workers, Ctrl-C, kills; sweeps and Monte Carlo that resume."""

import csv
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from itertools import product
from multiprocessing import get_context

import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.cli import main
from casadi_hybrid.control import monte_carlo, simulate
from casadi_hybrid.paper.experiment.reproduce import reproduce
from casadi_hybrid.paper.study import Unfinished, population, sweep
from casadi_hybrid.utils.record import parallel
from casadi_hybrid.utils.record.parallel import in_parallel

GRID = {"gain": [1, 2], "kind": ["a", "b"], "noise": [0, 0.5]}
HERE = {"workers": 1, "progress": False}

pytestmark = pytest.mark.usefixtures("terminal")


def slow(value):
    return pytest.param(value, marks=pytest.mark.slow)


def square(number):
    return number * number


@pytest.mark.parametrize("cluster", [None, slow("local")])
def test_dead_workers_lose_deadly_items_alone(cluster, tmp_path):
    """Item 3 ends its process always, and item 1 while no other has."""
    if cluster:
        pytest.importorskip("distributed")
    died = tmp_path / "died"

    def work(item):
        if item == 3 or (item == 1 and not died.exists()):
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return square(item)

    options = {"workers": 2, "cluster": cluster}
    values = dict(in_parallel(work, range(5), **options, lost=lambda item, why: why))
    assert "process" in values.pop(3)
    assert values == {i: i * i for i in range(5) if i != 3}
    with pytest.raises(RuntimeError, match=r"^3: "):
        list(in_parallel(work, [3, 0], **options))


def test_impossible_workers_are_refused(monkeypatch):
    lock = threading.Lock()
    with pytest.raises(InputError, match="cannot be sent"):
        list(in_parallel(lambda number: lock, range(3), workers=2))
    monkeypatch.setattr(parallel, "software", lambda: "casadi_hybrid 9")
    with pytest.raises(InputError, match="casadi_hybrid 9"):
        list(in_parallel(square, range(3), workers=2))


def test_one_process_works_without_joblib(monkeypatch):
    monkeypatch.setattr(parallel, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match="joblib"):
        processes = dict(in_parallel(lambda number: os.getpid(), range(3), workers=2))
    assert set(processes.values()) == {os.getpid()}
    with pytest.raises(InputError, match="distributed"):
        list(in_parallel(square, range(3), cluster="local"))


@pytest.mark.parametrize("cluster", ["tcp://127.0.0.1:9", "", 7])
def test_missing_cluster_is_refused(cluster, monkeypatch):
    distributed = pytest.importorskip("distributed")

    class Impatient(distributed.Client):
        def __init__(self, **options):
            super().__init__(**{**options, "timeout": 0.2})

    monkeypatch.setattr(distributed, "Client", Impatient)
    with pytest.raises(InputError, match="Dask"):
        list(in_parallel(square, range(3), cluster=cluster))


# Sweeps and Monte Carlo.


def cost(gain, kind, noise):
    if (gain, kind) == (2, "b"):
        raise ValueError("no gain of 2\nwith b")
    return {"cost": gain / 3 + noise, "rate": -noise}


@pytest.mark.parametrize("workers", [1, 2])
def test_sweep_has_a_row_a_point(workers):
    def function(**point):  # functions inside of others travel to other processes
        return cost(**point)

    with pytest.warns(UserWarning, match="2 of 8 points"):
        swept = sweep(function, GRID, ["cost", "rate"], workers=workers, progress=False)
    points = [tuple(row.values())[:3] for row in swept.records]
    assert points == list(product(*GRID.values()))
    assert swept.column("cost")[:2].tolist() == swept.rows["cost"][:2].tolist()
    assert swept.column("cost")[:2].tolist() == [1 / 3, 1 / 3 + 0.5]
    assert np.isnan(swept.column("rate")[-2:]).all()
    assert swept.errors == dict.fromkeys([(2, "b", 0.0), (2, "b", 0.5)], "ValueError: with b")
    assert "ValueError: with b" in str(swept).splitlines()[-1]
    with pytest.raises(InputError, match="'costs'"):
        swept.column("costs")


@pytest.mark.filterwarnings("ignore:sweep")
def test_sweep_resumes_and_grows(tmp_path, monkeypatch):
    undisturbed = sweep(cost, GRID, ["cost", "rate"], **HERE)
    calls = []

    def count(work, items, **options):
        calls.append(len(items))
        return in_parallel(work, items, **options)

    monkeypatch.setattr("casadi_hybrid.utils.record.collect.in_parallel", count)
    for kinds in (["b"], ["a", "b"], ["a", "b"]):
        over = {**GRID, "kind": kinds}
        swept = sweep(cost, over, ["cost", "rate"], folder=tmp_path, **HERE)
    assert calls == [4, 4, 0]
    assert str(swept) == str(undisturbed)
    with pytest.raises(InputError, match="function"):
        sweep(lambda **point: {}, GRID, ["cost", "rate"], folder=tmp_path, **HERE)


WRONG_SWEEPS = [
    ({}, ["cost"], "name"),
    ({"gain": [1]}, [], "name"),
    ({"gain": [1]}, ["gain"], "different"),
    ({"gain": [1, "a"]}, ["cost"], "'gain'"),
    ({"gain": []}, ["cost"], "'gain'"),
    ({"gain": [None]}, ["cost"], "'gain'"),
    ({"gain": [1]}, ["rate"], "rate; it returned 3"),
]


@pytest.mark.parametrize(("over", "results", "message"), WRONG_SWEEPS)
def test_wrong_sweeps_are_refused(over, results, message):
    with pytest.raises(InputError, match=message):
        sweep(lambda gain: 3, over, results, **HERE)


LOOP = {"steps": 5, "x0": [1.0], "period": 1.0, "noise": 0.1}


def one_run(seed):
    if seed == 3:
        raise ValueError("seed 3 is odd")
    plant, feedback = (lambda x, u: 0.9 * x + u), (lambda time, x: -0.5 * x)
    return simulate(plant, feedback, **LOOP, seed=seed, cost=lambda x, u, time: float(x @ x))


@pytest.mark.filterwarnings("ignore:monte_carlo")
def test_monte_carlo_resumes_with_equal_numbers(tmp_path):
    undisturbed = monte_carlo(one_run, 6, progress=False)
    monte_carlo(one_run, [4, 1, 3], folder=tmp_path, progress=False)
    resumed = monte_carlo(one_run, 6, folder=tmp_path, progress=False)
    assert resumed.table() == undisturbed.table()
    for name in ("cost", "violation", "failed", "steps"):
        assert resumed.column(name).tobytes() == undisturbed.column(name).tobytes()
    assert resumed.errors == {3: "ValueError: seed 3 is odd"}


def test_reproduction_resumes_with_equal_runs(tmp_path, monkeypatch):
    options = {"conditions": (1,), "folder": tmp_path, **HERE}
    first = reproduce(1, **options)
    monkeypatch.setattr("casadi_hybrid.paper.experiment.reproduce.run_instance", None)
    again = reproduce(1, **options)
    assert str(again) == str(first)
    for a, b in zip(again.runs, first.runs, strict=True):
        assert (a.method, a.seed, a.hits, a.stop) == (b.method, b.seed, b.hits, b.stop)
        assert a.errors.tobytes() == b.errors.tobytes()


CARRIERS = {"alone": "1", "processes": "2", "Dask": "2 --cluster local"}


def study_command(instances, folder, carrier="alone"):
    """The arguments of a study of cheap instances."""
    if carrier == "Dask":
        pytest.importorskip("distributed")
    words = "study --shapes 3x5 --radii 1 --conditions 1 2 5 13 --rules auto whitened --budget 40"
    words += f" --seeds {instances // 4} --workers {CARRIERS[carrier]} --output"
    return [*words.split(), str(folder)]


def finished_units(folder):
    path = folder / "study.sqlite"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as record, suppress(sqlite3.OperationalError):
        return record.execute("SELECT count(*) FROM units").fetchone()[0]
    return 0  # the table is not there yet


def results_of(folder):
    """Rows without their seconds, and the table."""
    with (folder / "runs.csv").open(newline="") as file:
        rows = [{**row, "elapsed": ""} for row in csv.DictReader(file)]
    return rows, (folder / "table.txt").read_text()


# Ctrl-C.


def test_ctrl_c_returns_finished_items(tmp_path):
    def interrupted(gain):
        if gain == 4:
            raise KeyboardInterrupt
        return {"cost": gain}

    def interrupted_run(seed):
        return interrupted(seed + 2) and one_run(seed)

    with pytest.raises(Unfinished, match="after 4 of 9") as caught:
        sweep(interrupted, {"gain": list(range(9))}, ["cost"], folder=tmp_path, **HERE)
    assert caught.value.found.column("cost").tolist() == [0, 1, 2, 3]
    with pytest.raises(Unfinished) as caught:
        monte_carlo(interrupted_run, 5, progress=False)
    assert [trial.seed for trial in caught.value.found.trials] == [0, 1]


def test_swallowed_ctrl_c_ends_the_sweep():
    """CasADi may lose the exception; the item ends, and the sweep after it."""

    def swallowing(gain):
        with suppress(KeyboardInterrupt):
            if gain == 2:
                signal.raise_signal(signal.SIGINT)
        return {"cost": gain}

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Unfinished, match="after 2 of 5"):
        sweep(swallowing, {"gain": list(range(5))}, ["cost"], **HERE)
    assert signal.getsignal(signal.SIGINT) is before


def before_third_unit(monkeypatch, act):
    """Let studies act before their third unit; return the list of units begun."""
    run_unit, started = population.run_unit, []

    def counted(settings, unit):
        started.append(unit)
        if len(started) == 3:
            act()
        return run_unit(settings, unit)

    monkeypatch.setattr(population, "run_unit", counted)
    return started


def test_interrupted_study_prints_and_resumes(tmp_path, monkeypatch, capsys):
    def full_disk(study, folder, form):
        raise OSError(28, "No space left on device")

    started = before_third_unit(monkeypatch, lambda: signal.raise_signal(signal.SIGINT))
    assert main(study_command(4, tmp_path)) == 130
    printed = capsys.readouterr()
    assert "(n=1)" in printed.out
    assert "interrupted after 2 of 4" in printed.err
    # A table that cannot be written is printed all the same.
    monkeypatch.setattr("casadi_hybrid.paper.study.write", full_disk)
    assert main(study_command(4, tmp_path)) == 2
    assert len(started) == 5
    printed = capsys.readouterr()
    assert "(n=1)" in printed.out
    assert "No space left" in printed.err


def test_killed_study_resumes_to_equal_tables(tmp_path, monkeypatch):
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "killed"
    assert main(study_command(4, undisturbed)) == 0
    before_third_unit(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
    arguments = study_command(4, folder)
    child = get_context("fork").Process(target=main, args=(arguments,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert finished_units(folder) == 2
    assert main(arguments) == 0
    assert results_of(folder) == results_of(undisturbed)


@pytest.mark.parametrize("command", ["study", "reproduce", "export"])
def test_output_folder_is_tried_before_work(tmp_path, capfd, command):
    (tmp_path / "file").write_text("")
    (tmp_path / "file.py").write_text("raise SystemExit('the work began')")
    words = [str(tmp_path / "file.py"), "--out"] if command == "export" else ["--output"]
    assert main([command, *words, str(tmp_path / "file" / "below")]) == 2
    assert "below cannot be written to" in capfd.readouterr().err


# Signals from outside.


def workers_of(pid):
    """The processes that work for a process."""
    words = ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="]
    table = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    workers = []
    for line in table.splitlines():
        child, parent, command = line.split(None, 2)
        if int(parent) == pid and "python" in command and "resource_tracker" not in command:
            workers.append(int(child))
    return workers


def alive(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def wait_for(condition):
    for _ in range(10_000):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("it did not come true in 200 seconds")


@pytest.mark.parametrize("end", [signal.SIGINT, slow(signal.SIGKILL)])
@pytest.mark.parametrize("carrier", ["alone", slow("processes"), slow("Dask")])
def test_signals_end_command_and_workers(tmp_path, carrier, end):
    words = [sys.executable, "-m", "casadi_hybrid", *study_command(4000, tmp_path, carrier)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(words, **pipes) as process:
        wait_for(lambda: finished_units(tmp_path) >= 2)
        workers = workers_of(process.pid)
        if end is signal.SIGINT:
            os.killpg(process.pid, end)  # as a terminal does
        else:
            process.kill()
        out, err = process.communicate(timeout=300)
    assert len(workers) == (0 if carrier == "alone" else 2)
    if end is signal.SIGINT:
        assert process.returncode == 130
        assert out
        assert b"Traceback" not in err
    wait_for(lambda: not any(map(alive, workers)))
