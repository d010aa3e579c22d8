"""The collections with one mechanism of the default method switched off at a time.

    python benchmarks/ablation.py FOLDER [WORD ...] [--sets NAME ...] [--constants] [--list]

Each mechanism is switched off by one exact change of the core's C (``ablation.toml``) in a copy of
the package, in FOLDER, where the core is built and ``before_after.py`` solves the collections.
``--constants`` doubles and halves every number of ``constants.h`` instead. An interrupted study
goes on: runs that FOLDER has are not repeated, and ``FOLDER/ablation.txt`` is the table of all that
it has. With words, only mechanisms (or constants) whose name contains one of them.

Columns: problems with a solution or a right verdict with and without it, those lost and gained
without it (a verdict in place of a solution is a loss); of both, the iterations without it relative
to those with it (geometric mean), and the processor time. Scatter: in ``noise``, the standard
deviation of the number lost less gained over its four seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from before_after import GROUPS, SEEDS
from breaks import PACKAGE, ROOT, Break, copied
from peers.judge import GOOD
from peers.report import mean_ratio, table

CORE = "core/src"


def change(name: str, file: str, old: str, new: str) -> Break:
    """One change of the core: what is switched off, or which constant is changed how."""
    return Break(name, f"{CORE}/{file}", old, new, ())


def mechanisms() -> list[Break]:
    """The mechanisms of ``ablation.toml``, switched off."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return [change(**entry) for entry in tomllib.loads(text)["mechanism"]]


def constants() -> Iterator[Break]:
    """Every number of the core but lengths, doubled and halved; whole numbers stay whole."""
    text = (PACKAGE / CORE / "constants.h").read_text(encoding="utf-8")
    for line, name, number in re.findall(r"^(#define (HYBRID_\w+) ([\d.e+-]+))$", text, re.M):
        for factor in (2.0, 0.5):
            value = float(number) * factor
            whole = number.isdigit()
            new = str(max(1, int(value))) if whole else repr(value)
            if new != number and not (name.endswith("GROWTH") and value <= 1):  # no growth, no end
                yield change(f"{name} x {factor:g}", "constants.h", line + "\n",
                             f"#define {name} {new}\n")  # fmt: skip


def solve(folder: Path, one: Break | None, sets: Sequence[str]) -> Path:
    """The file of a run of the collections with a change, made where it is missing."""
    name = "unchanged" if one is None else re.sub(r"\W+", "-", one.name)
    file = folder / f"{name}.json"
    if file.exists():
        return file
    copy, made = folder / "copy", folder / "made.json"
    shutil.rmtree(copy, ignore_errors=True)
    copied(copy)
    for part in ("hatch_build.py", "README.md"):
        shutil.copy(ROOT / part, copy)
    if one is not None:
        (copy / "casadi_hybrid" / one.file).write_text(one.applied(one.source), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(copy)}
    subprocess.run([sys.executable, "hatch_build.py"], cwd=copy, env=environment, check=True)
    command = [sys.executable, "benchmarks/before_after.py", "run", str(made), "--sets", *sets]
    subprocess.run(command, cwd=copy, env=environment, check=True, stderr=subprocess.DEVNULL)
    return made.rename(file)


def line(name: str, before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[str]:
    """A change as cells of the table."""
    old = {(row["set"], row["problem"]): row for row in before}
    new = {(row["set"], row["problem"]): row for row in after}
    good = [{key for key in old if rows[key]["kind"] in GOOD} for rows in (old, new)]
    # A local minimum of the violation is no answer where there is a solution.
    solved = [{key for key in old if rows[key]["kind"] == GOOD[0]} for rows in (old, new)]
    lost, gained = (good[k] - good[1 - k] | solved[k] & good[1] - solved[1 - k] for k in (0, 1))
    both = good[0] & good[1]
    its = [(max(new[key]["iterations"], 1), max(old[key]["iterations"], 1)) for key in both]
    seconds = [(new[key]["seconds"], old[key]["seconds"]) for key in both]
    net = [
        sum(key[0] == "noise" and key[1].endswith(f"#{seed}") for key in lost)
        - sum(key[0] == "noise" and key[1].endswith(f"#{seed}") for key in gained)
        for seed in range(SEEDS)
    ]
    return [
        name, str(len(good[0])), str(len(good[1])), str(len(lost)), str(len(gained)),
        mean_ratio(its), mean_ratio(seconds), f"{float(np.std(net)):.1f}",
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("words", nargs="*", metavar="WORD", help="parts of names")
    parser.add_argument("--sets", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--constants", action="store_true", help="constants, not mechanisms")
    parser.add_argument("--list", action="store_true", help="print the names and run nothing")
    chosen = parser.parse_args(arguments)
    words = [word.lower() for word in chosen.words]
    changes = list(constants()) if chosen.constants else mechanisms()
    changes = [c for c in changes if not words or any(word in c.name.lower() for word in words)]
    for one in changes:
        one.applied(one.source)
    if chosen.list:
        print("\n".join(one.name for one in changes))
        return
    folder = chosen.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    before = json.loads(solve(folder, None, chosen.sets).read_text())
    head = ["without", "solved with", "without", "lost", "gained", "it. (both)", "time", "scatter"]
    rows = [head]
    for one in changes:
        after = json.loads(solve(folder, one, chosen.sets).read_text())
        rows.append(line(one.name, before, after))
        text = table(rows)
        (folder / "ablation.txt").write_text(text + "\n", encoding="utf-8")
        print(text.splitlines()[-1], flush=True)
    print("\n" + table(rows))


if __name__ == "__main__":
    main()
