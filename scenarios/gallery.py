"""Run the scenarios and write the gallery: one page with their tables and pictures.

    python scenarios/gallery.py            all scenarios, into docs/
    python scenarios/gallery.py cartpole   renew one of them
    python scenarios/gallery.py --check    run all, write nothing, say what has drifted
    python scenarios/gallery.py --short    renew what the tests compare the short forms with

What a scenario wrote is kept under ``docs/gallery/<name>/``; the page is made from what is there.
The exit code is 1 when a scenario failed, and the page then says so, or when something has drifted.
"""

import argparse
import ast
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reporting import fact

from casadi_hybrid.cli.running import scenario_summaries

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
FIRST = {"method": 0, "verdict": 1, "iter": 2, "time (s)": 3, "stopped": 9}
"""Where columns of a table stand on the page; others come between."""

SHORT = "short.json"
"""What our solver came to in the short form of every scenario."""
SCATTER = {
    "iterations": (0.25, 3.0), "mean_iterations": (0.15, 0.5),
    "objective": (1e-5, 1e-6), "cost": (1e-2, 1e-6),
}  # fmt: skip
"""By how much a number may change from machine to machine, relative to its size and at least."""
WORDS = "verdict", "solved"

Outcome = Mapping[str, Mapping[str, Any]]


def outcome(data: Mapping[str, Any]) -> Outcome:
    """Return what our solver came to in a report, by method that was accepted.

    How many plans of a loop beside the table are solved is not kept: where a controller runs into
    states without a solution, that differs from machine to machine.
    """
    found = {
        row["method"]: {key: row[key] for key in (*WORDS, *SCATTER) if key in row}
        for row in data["methods"]
        if "hybrid" in row["method"] and row.get("accepted", True)
    }
    for row in data.get("facts", {}).get("loops", ()):  # loops beside the table, all of ours
        found[f"loop: {row['method']}"] = {key: row[key] for key in SCATTER if key in row}
    return found


def drift(known: Outcome, now: Outcome) -> list[str]:
    """Return in sentences what has changed by more than it may."""
    said = [f"{method} is missing or new" for method in sorted({*known} ^ {*now})]
    for method, numbers in known.items():
        for key, before in numbers.items() if method in now else ():
            after = now[method].get(key)
            near = before == after
            if key in SCATTER and None not in (before, after):
                share, least = SCATTER[key]
                near = abs(after - before) <= max(share * abs(before), least)
            if not near:
                said.append(f"{method}: {key} was {before}, is {after}")
    return said


def scenarios() -> list[str]:
    return list(scenario_summaries(HERE))


def run(name: str, folder: Path, *options: str) -> bool:
    """Run a scenario; return whether it was accepted."""
    command = [sys.executable, str(HERE / f"{name}.py"), "--json", "--output", str(folder / name)]
    command += options
    began = time.perf_counter()
    # Small matrices: more BLAS threads only wait for each other on a busy machine.
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    done = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=False)
    report = folder / name / "report.json"
    if report.exists():
        # The verifier's long reports stay out of the repository.
        data = json.loads(report.read_text(encoding="utf-8"))
        data.pop("reports", None)
        report.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(f"{name}: exit code {done.returncode}, {time.perf_counter() - began:.0f} s", flush=True)
    return done.returncode == 0


def page(names: Sequence[str], folder: Path) -> str:
    """Return the page in Markdown."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    packages = ", ".join(f"{name} {version(name)}" for name in ("casadi", "numpy", "scipy"))
    lines = [
        "# Gallery",
        "",
        "Made by `python scenarios/gallery.py` from what each scenario wrote. Every row of a table "
        "is judged in the same way, from the problem's own functions, at its grid points (between "
        "them `verify(ocp, found)` does); *rejected* rows are shown "
        "as they are, and *undecided* is a KKT point whose second order could be neither proved "
        "nor refuted. `iter` are iterations; `time` is the wall clock of a cold solve, of the "
        "hybrid solver its second call from the same start; `first` is the first call, in which "
        "that solver builds what the others build before it, in `build`. All are of one run on one "
        f"machine ({machine}, {packages}) with interpreted functions. What our solver came to is "
        "kept in `docs/gallery`, and `python scenarios/gallery.py --check` is red where "
        "iterations, verdicts or costs drift.",
        "",
        "Of n unknowns and m constraints:",
        "",
        "| scenario | what it is | n | m |",
        "|---|---|--:|--:|",
    ]
    reports = {name: _report(folder / name) for name in names}
    summaries = scenario_summaries(HERE)
    for name, data in reports.items():
        size = (data["problem"]["n"], data["problem"]["m"]) if data else ("", "")
        lines.append(f"| [{_broken(name)}](#{name}) | {summaries[name]} | {size[0]} | {size[1]} |")
    for name, data in reports.items():
        lines += ["", *_section(name, data, folder)]
    return "\n".join(lines) + "\n"


def _section(name: str, data: dict[str, Any] | None, folder: Path) -> list[str]:
    source = ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))
    first = (ast.get_docstring(source) or "").split("\n\n")[0].replace("\n", " ")
    lines = [f"## {name}", "", first, "", f"`casadi-hybrid run {name}` · "
             f"[source](../scenarios/{name}.py)", ""]  # fmt: skip
    if data is None:
        return [*lines, "Not run yet."]
    if not data["accepted"]:
        lines += ["**This run failed.**", ""]
    for title, text in data["tables"].items():
        lines += [f"{title}:", ""] if title else []
        lines += ['<div class="runs" markdown>', "", *_columns(text), "", "</div>", ""]
    lines += [f"- {fact(key, value)}" for key, value in data["facts"].items()
              if not isinstance(value, list | dict)]  # fmt: skip
    for check in data["checks"]:
        value = "none" if check["value"] is None else f"{check['value']:.3g}"
        passed = "" if check["passed"] else " **failed**"
        lines.append(f"- {check['name']}: {value} (limit {check['limit']:g}){passed}")
    lines.append("")
    for file in map(Path, data["files"]):
        if file.suffix != ".json" and (folder / name / file.name).exists():
            title = f"{name}: {file.stem.replace('_', ' ')}"
            lines.append(f"![{title}](gallery/{name}/{file.name})")
    return lines


def _broken(text: str) -> str:
    """Words that may break at their underscores, in Markdown."""
    return text.replace("_", "\\_<wbr>")


def _columns(text: str) -> list[str]:
    """A table of :func:`reporting.table` in Markdown; what a phone shows first stands first."""
    head, rule, *rows = text.splitlines()
    spans = [dash.span() for dash in re.finditer("-+", rule)]
    columns = [[line[start:end] for line in (head, *rows)] for start, end in spans]
    columns.sort(key=lambda column: FIRST.get(column[0].strip(), len(FIRST)))
    shown = []
    for column in columns:
        name, *cells = (_broken(cell.strip().replace("|", "\\|")) for cell in column)
        numbers = any(cell.startswith(" ") for cell in column)
        numbers |= all(cell[:1] in "+-.0123456789" for cell in cells)
        shown.append([name, "--:" if numbers else "---", *cells])
    return [f"| {' | '.join(line)} |" for line in zip(*shown, strict=True)]


def _report(folder: Path) -> dict[str, Any] | None:
    path = folder / "report.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def fresh(names: Sequence[str], *options: str) -> Iterator[tuple[str, bool, Any]]:
    """Run scenarios beside what is kept of them: name, whether accepted, report."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            yield name, run(name, Path(scratch), *options), _report(Path(scratch) / name)


def check(names: Sequence[str], folder: Path) -> int:
    """Run scenarios; 1 where one fails or has drifted."""
    wrong = 0
    for name, accepted, now in fresh(names):
        known, said = _report(folder / name), [] if accepted else ["not accepted"]
        said += drift(outcome(known), outcome(now)) if known and now else ["no report"]
        for sentence in said:
            print(f"  {name}: {sentence}")
        wrong += len(said)
    return 1 if wrong else 0


def renew_short(names: Sequence[str], path: Path) -> int:
    """Run the short forms and keep what our solver came to."""
    kept, wrong = json.loads(path.read_text(encoding="utf-8")), 0
    for name, accepted, report in fresh(names, "--short"):
        kept[name] = outcome(report) if report else {}
        wrong += not accepted
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 1 if wrong else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named scenarios, or all, and write the page."""
    parser = argparse.ArgumentParser(prog="gallery", description="Run scenarios, write the page.")
    parser.add_argument("names", nargs="*", help="scenarios to run; all by default")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--check", action="store_true", help="write nothing, say what has drifted")
    kind.add_argument("--short", action="store_true", help=f"write {SHORT} alone")
    arguments = parser.parse_args(argv)
    names = scenarios()
    unknown = sorted(set(arguments.names) - set(names))
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(names)}")
    # Relative, so that no report that goes into the repository names a folder of this machine.
    folder = Path(os.path.relpath(DOCS / "gallery"))
    chosen = arguments.names or names
    if arguments.check:
        return check(chosen, folder)
    if arguments.short:
        return renew_short(chosen, folder / SHORT)
    accepted = [run(name, folder) for name in chosen]
    (DOCS / "gallery.md").write_text(page(names, folder), encoding="utf-8")
    return 0 if all(accepted) else 1


if __name__ == "__main__":
    sys.exit(main())
