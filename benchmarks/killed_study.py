"""A population study that is killed twice and taken up again, beside one that nobody disturbs.

On processes and on a local Dask cluster the study loses a worker by ``kill -9`` after a quarter of
its instances, and then, after half, its main process, whose workers have to end by themselves; the
same command takes it up again. Its rows, but for the seconds, and its table have to be those of an
undisturbed run in one process, byte for byte. The exit code is 1 where anything differs.

    python benchmarks/killed_study.py                     # 2,000 instances; minutes
    python benchmarks/killed_study.py --instances 40 --on processes
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

CARRIERS: dict[str, list[str]] = {
    "one process": ["--workers", "1"],
    "processes": ["--workers", "2"],
    "Dask": ["--workers", "2", "--cluster", "local"],
}
UNDISTURBED = "one process"
PATIENCE = 600.0  # seconds for anything to happen at all
LOOK = 0.02


@dataclass(frozen=True)
class Outcome:
    """What became of a study."""

    label: str
    rows: list[list[str]]
    table: str
    there: list[int]
    left_behind: int
    seconds: float


def command(
    instances: int, folder: Path, carrier: str, rules: Sequence[str] = ("auto", "whitened")
) -> list[str]:
    """The study: cheap instances of three variables and five equations."""
    conditions = ["1", "2", "5", "13"]
    seeds = str(-(-instances // len(conditions)))
    study = ["study", "--shapes", "3x5", "--radii", "1", "--conditions", *conditions]
    study += ["--seeds", seeds, "--rules", *rules, "--budget", "40"]
    start = [sys.executable, "-m", "casadi_hybrid", *study, "--output", str(folder)]
    return start + CARRIERS[carrier]


def workers_of(pid: int) -> dict[int, str]:
    """The processes that a process has started to work for it."""
    text = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    found = {}
    for line in text.splitlines():
        child, parent, words = line.split(None, 2)
        if int(parent) == pid and "python" in words and "resource_tracker" not in words:
            found[int(child)] = words
    return found


def units_there(folder: Path) -> int:
    """Finished units in the record so far."""
    path = folder / "study.sqlite"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as record:
        try:
            return int(record.execute("SELECT count(*) FROM units").fetchone()[0])
        except sqlite3.OperationalError:  # the table is not there yet
            return 0


def waited(holds: Callable[[], bool], *, patience: float = PATIENCE) -> bool:
    """Whether something became true."""
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        if holds():
            return True
        time.sleep(LOOK)
    return holds()


def alive(pid: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def disturbed(words: list[str], total: int, folder: Path) -> tuple[list[int], int]:
    """Kill a worker, kill the main process, take the study up.

    Returns:
        The units that were there at each of the two kills, and how many workers outlived the main
        process for more than ten seconds.
    """
    main = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    there = []
    waited(lambda: units_there(folder) >= total // 4 or main.poll() is not None)
    victims = workers_of(main.pid)
    there.append(units_there(folder))
    if main.poll() is None and victims:
        os.kill(min(victims), signal.SIGKILL)
    waited(lambda: units_there(folder) >= total // 2 or main.poll() is not None)
    orphans = workers_of(main.pid)
    there.append(units_there(folder))
    if main.poll() is not None or not victims or not orphans:
        raise SystemExit("the study ended, or worked alone, before it was killed")
    main.kill()
    main.wait()
    waited(lambda: not any(map(alive, orphans)), patience=10.0)
    left = [pid for pid in orphans if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    again = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if again.returncode:
        raise SystemExit(f"exit code {again.returncode}\n{again.stderr.decode()}")
    return there, len(left)


def outcome(instances: int, folder: Path, carrier: str, rules: Sequence[str]) -> Outcome:
    """Run a study, with its kills where it has workers."""
    began = time.perf_counter()
    there, left = [], 0
    words = command(instances, folder, carrier, rules)
    if carrier == UNDISTURBED:
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    else:
        there, left = disturbed(words, instances, folder)
    with (folder / "runs.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    kept = [i for i, name in enumerate(head) if name != "elapsed"]
    return Outcome(
        carrier,
        [[row[i] for i in kept] for row in rows],
        (folder / "table.txt").read_text(encoding="utf-8"),
        there,
        left,
        time.perf_counter() - began,
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=2000, metavar="N")
    parser.add_argument(
        "--on", nargs="+", default=["processes", "Dask"], choices=["processes", "Dask"]
    )
    parser.add_argument("--rules", nargs="+", default=["auto", "whitened"], metavar="RULE")
    arguments = parser.parse_args(argv)

    def study(folder: Path, carrier: str) -> Outcome:
        return outcome(arguments.instances, folder, carrier, arguments.rules)

    with tempfile.TemporaryDirectory() as place:
        undisturbed = study(Path(place, "undisturbed"), UNDISTURBED)
        print(f"{'on':<12} {'rows':>5} {'at the kills':>13} {'left behind':>12} {'differ':>7} "
              f"{'table':>6} {'s':>6}")  # fmt: skip
        wrong = False
        for carrier in [UNDISTURBED, *arguments.on]:
            found = undisturbed
            if carrier != UNDISTURBED:
                found = study(Path(place, carrier), carrier)
            apart = sum(a != b for a, b in zip(found.rows, undisturbed.rows, strict=False))
            apart += abs(len(found.rows) - len(undisturbed.rows))
            same = found.table == undisturbed.table
            kills = ", ".join(map(str, found.there)) or "–"
            said = "same" if same else "OTHER"
            print(f"{carrier:<12} {len(found.rows):>5} {kills:>13} {found.left_behind:>12} "
                  f"{apart:>7} {said:>6} {found.seconds:>6.0f}", flush=True)  # fmt: skip
            wrong |= bool(apart) or not same or found.left_behind > 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
