"""Run the scenarios and write the gallery: one page with their tables and pictures.

    python scenarios/gallery.py            all scenarios, into docs/
    python scenarios/gallery.py cartpole   renew one of them

What a scenario wrote is kept under ``docs/gallery/<name>/``; the page is made from what is there.
The exit code is 1 when a scenario failed, and the page then says so.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from casadi_hybrid.scripts.running import scenario_summaries

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
ORDER = (
    "cartpole",
    "pendulum_limits",
    "quadrotor",
    "chain",
    "lane_change",
    "parking",
    "minimum_time",
    "race_car",
    "launcher",
    "van_der_pol",
    "reactor",
    "mpc_cartpole",
    "mpc_chain",
    "mpc_quadrotor",
    "robust_reactor",
    "tank_estimation",
    "crane",
    "robot_arm",
    "pendulum",
    "noisy_sensors",
    "feedback_controller",
    "hydraulic_servo",
)
"""The page's order; others follow by name."""


def scenarios() -> list[str]:
    """Return the names of all scenarios in the page's order."""
    found = scenario_summaries(HERE)
    return [name for name in ORDER if name in found] + sorted(found.keys() - set(ORDER))


def run(name: str, folder: Path) -> bool:
    """Run a scenario in full; return whether it was accepted."""
    command = [sys.executable, str(HERE / f"{name}.py"), "--json", "--output", str(folder / name)]
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
    lines = [
        "# Gallery",
        "",
        "Made by `python scenarios/gallery.py` from what each scenario wrote. Every row of a table "
        "is judged in the same way, from the problem's own functions; *rejected* rows are shown "
        "as they are, and *undecided* is a KKT point whose second order could be neither proved "
        "nor refuted. `iter` are iterations, times are wall clock of one solve in one run on one "
        f"machine ({_machine()}), interpreted functions, without building them.",
        "",
        "| scenario | what it is | unknowns | constraints |",
        "|---|---|---|---|",
    ]
    reports = {name: _report(folder / name) for name in names}
    summaries = scenario_summaries(HERE)
    for name, data in reports.items():
        size = (data["problem"]["n"], data["problem"]["m"]) if data else ("", "")
        lines.append(f"| [{name}](#{name}) | {summaries[name]} | {size[0]} | {size[1]} |")
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
        lines += ["```text", text, "```", ""]
    lines += [f"- {_fact(key, value)}" for key, value in data["facts"].items()
              if not isinstance(value, list | dict)]  # fmt: skip
    for check in data["checks"]:
        value = "none" if check["value"] is None else f"{check['value']:.3g}"
        passed = "" if check["passed"] else " **failed**"
        lines.append(f"- {check['name']}: {value} (limit {check['limit']:g}){passed}")
    lines.append("")
    pictures = [Path(file).name for file in data["files"] if not file.endswith(".json")]
    for file in pictures:
        if (folder / name / file).exists():
            title = f"{name}: {Path(file).stem.replace('_', ' ')}"
            lines.append(f"![{title}](gallery/{name}/{file})")
    return lines


def _fact(key: str, value: Any) -> str:
    return f"{key}: {value:.6g}" if isinstance(value, float) else f"{key}: {value}"


def _report(folder: Path) -> dict[str, Any] | None:
    path = folder / "report.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("casadi", "numpy", "scipy"))
    cores = os.cpu_count()
    return f"{platform.machine()}, {cores} cores, Python {platform.python_version()}, {packages}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named scenarios, or all, and write the page."""
    parser = argparse.ArgumentParser(prog="gallery", description="Run scenarios, write the page.")
    parser.add_argument("names", nargs="*", help="scenarios to run; all by default")
    parser.add_argument("--output", type=Path, default=DOCS, metavar="DIR")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    arguments = parser.parse_args(argv)
    names = scenarios()
    unknown = sorted(set(arguments.names) - set(names))
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(names)}")
    # Relative, so that no report that goes into the repository names a folder of this machine.
    folder = Path(os.path.relpath(arguments.output / "gallery"))
    chosen = [] if arguments.page_only else arguments.names or names
    accepted = [run(name, folder) for name in chosen]
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "gallery.md").write_text(page(names, folder), encoding="utf-8")
    return 0 if all(accepted) else 1


if __name__ == "__main__":
    sys.exit(main())
