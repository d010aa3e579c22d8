"""The gallery of the site, from runs of the scenarios: python scenarios/gallery.py [NAME ...].

Each named scenario, or every one, is run in an empty folder. Its figures, in 64 colours, and the
numbers of its printed text are stored in ``docs/gallery``. ``docs/gallery.md`` is made from both
and the docstrings. The exit code is 1 if a scenario fails; its stored files then stay.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from PIL import Image

from casadi_hybrid.cli.running import run_file, scenario_summaries

SCENARIOS = Path(__file__).resolve().parent
DOCS = SCENARIOS.parent / "docs"
PICTURES = DOCS / "gallery"
HEAD = """# Gallery

Which control problem is near yours? Each scenario is one file of at most 100 lines that imports
this package, CasADi, NumPy and matplotlib.

- `casadi-hybrid run NAME` solves a scenario, draws it and checks each answer.
  [`verify`](checking.md) accepts all of them. One case of `robot_arm` is infeasible on purpose.
- `casadi-hybrid new mine --from NAME` copies a scenario for your changes.

"IPOPT" is the number of its iterations from the same guess. Pictures and numbers are written by
`python scenarios/gallery.py`.
"""
OWN = r"Solved in (\d+) iterations", "{} iterations"
IPOPT = r"IPOPT from x0 .*?(\d+) iterations", "IPOPT {}"
STEPS = r"(\d+) steps from time .*: (\d+) solved", "{1} of {0} steps solved"
RESIDUAL = r"stationarity residual: (\S+)", "largest residual {:.1e}"
NUMBERS: dict[str, tuple[tuple[str, str], ...]] = {
    "cartpole": (OWN, IPOPT, (r"effort (\S+)\)", "effort {:.4g}")),
    "chain": (OWN, IPOPT, (r"cost (\S+)\)", "cost {:.4g}")),
    "crane": (
        (r"told all: cost (\S+),", "closed-loop cost {:.4g} with state, mass and wind known"),
        (r"MHE: cost (\S+),", "{:.4g} with MHE"),
        (r"EKF: cost (\S+),", "{:.4g} with EKF"),
    ),
    "feedback_controller": (
        (r"designed +std of the noisy voltage (\S+)", "standard deviation of a voltage {:.2g} %"),
        (r"memory +std of the noisy voltage (\S+)", "{:.2g} % by integral action alone"),
        (r"designed .* without noise (\S+)", "{:.0e} Mvar from the optimum without noise"),
    ),
    "hydraulic_servo": (
        (r"in 1e\+06 Pa: local gap (\S+) by", "local gap {:.0e} by a scalar penalty in MPa"),
        (r"in 1 Pa: local gap (\S+) by", "{:.0e} in Pa"),
        (r"in 1 Pa: .*cI, (\S+) by M", "{:.0e} by a matrix in any unit"),
    ),
    "lane_change": (OWN, IPOPT, (r"lowest speed (\S+)", "lowest speed {:.4g} m/s")),
    "launcher": (OWN, IPOPT, (r"mass in orbit (\S+)", "{:.4g} kg in orbit")),
    "mpc_cartpole": (STEPS, RESIDUAL, (r"track is (\S+)", "track limit exceeded by {:.2g} m")),
    "mpc_quadrotor": (STEPS, RESIDUAL, (r"tilt is (\S+)", "tilt limit exceeded by {:.2g} rad")),
    "parking": (
        OWN,
        (IPOPT[0], "IPOPT {}, to a higher objective"),
        (r"duration (\S+),", "parked after {:.3g} s"),
        (r"front\[1\] is (\S+) m below", "{:.2g} m too near a car between grid points"),
    ),
    "pendulum": (
        (r"least effort, .*\(effort (\S+),", "least effort {:.4g}"),
        (r"least time (\S+) s", "least time {:.4g} s"),
        (r"(\d+)% of it", "full torque for {} % of the time"),
    ),
    "quadrotor": (OWN, IPOPT, (r"effort (\S+)\)", "effort {:.4g}")),
    "race_car": (
        OWN, IPOPT,
        (r"\(time (\S+),", "lap in {:.4g} s"),
        (r"offset is (\S+) m above", "{:.2g} m off the track between grid points"),
    ),
    "reactor": (OWN, IPOPT, (r"highest temperature (\S+)", "{:.6g} K at most, limit 353 K")),
    "robot_arm": (
        (r"regular: .* (\d+) iterations", "{} iterations to a regular pose"),
        (r"stretched wrist: .* (\d+) iterations", "{} with a stretched wrist"),
        (r"noisy: LOCALLY_INFEASIBLE.* (\d+) iterations", "{} to find noisy sensors infeasible"),
    ),
    "robust_reactor": (
        (r"nominal: (\d+) of 9", "{} of 9 plants too hot with nominal MPC"),
        (r"robust: (\d+) of 9", "{} of 9 with robust MPC"),
        (r"nominal: .*?(\d+) of 360 steps", "{} of 360 nominal steps not solved"),
    ),
    "tank_estimation": (
        (r"level sensors (\S+) mm", "error of the level sensors {:.3g} mm"),
        (r"of the estimate (\S+) mm", "error of the estimate {:.3g} mm"),
        (r"estimated (\S+) mm²", "leak of 25 mm² estimated as {:.3g} mm²"),
    ),
    "van_der_pol": (OWN, IPOPT, (r"cost (\S+)\)", "cost {:.4g}")),
}  # fmt: skip
"""Numbers by scenario: a pattern for the printed text, and the words around what it finds."""


def numbers(name: str, text: str) -> list[str]:
    """Return the numbers of a scenario, with words; raise ValueError if its text lacks one."""
    found = []
    for pattern, words in NUMBERS[name]:
        match = re.search(pattern, text)
        if match is None:
            raise ValueError(f"{name} printed nothing like {pattern!r}")
        found.append(words.format(*(int(g) if g.isdigit() else float(g) for g in match.groups())))
    return found


def renew(name: str) -> bool:
    """Run a scenario and store its numbers and figures; return True if it was accepted."""
    with tempfile.TemporaryDirectory() as folder:
        if run_file(SCENARIOS / f"{name}.py", Path(folder)):
            return False
        PICTURES.mkdir(exist_ok=True)
        stored = stored_numbers()
        stored[name] = numbers(name, Path(folder, "report.txt").read_text(encoding="utf-8"))
        text = json.dumps(dict(sorted(stored.items())), ensure_ascii=False, indent=2)
        (PICTURES / "numbers.json").write_text(text + "\n", encoding="utf-8")
        names = [*scenario_summaries(SCENARIOS)]
        for old in PICTURES.glob("*.png"):
            if owner(old, names) == name:
                old.unlink()
        for figure in Path(folder).glob("*.png"):
            Image.open(figure).convert("RGB").quantize(64).save(
                PICTURES / figure.name, optimize=True
            )
    return True


def stored_numbers() -> dict[str, list[str]]:
    """Return the stored numbers by scenario."""
    file = PICTURES / "numbers.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def owner(file: Path, names: Iterable[str]) -> str:
    """Return the scenario of a stored file: the longest name that the file's name begins with."""
    return max((name for name in names if file.stem.startswith(name)), key=len, default="")


def thumbnail(picture: Path) -> str:
    """Return a small picture that links to itself; all of them have the same area."""
    with Image.open(picture) as image:
        width = round((7e4 * image.width / image.height) ** 0.5)
    link = f"gallery/{picture.name}"
    alt = picture.stem.replace("_", " ")
    return f'[<img src="{link}" alt="{alt}" width="{width}">]({link})'


def page() -> str:
    """Return the page in Markdown."""
    summaries, stored = scenario_summaries(SCENARIOS), stored_numbers()
    text = HEAD
    for name, summary in summaries.items():
        *others, last = sorted(p for p in PICTURES.glob("*.png") if owner(p, summaries) == name)
        links = [f"[source](../scenarios/{name}.py)"]
        links += [f"[{p.stem.replace('_', ' ')}](gallery/{p.name})" for p in others]
        text += f"\n## {name}\n\n{thumbnail(last)}\n\n{summary}\n\n"
        line = "; ".join(stored[name])
        text += f"{line[0].upper()}{line[1:]}. ({', '.join(links)})\n"
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named scenarios, or all, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = list(scenario_summaries(SCENARIOS))
    parser.add_argument("names", nargs="*", choices=[*known, []], metavar="NAME")
    accepted = [renew(name) for name in parser.parse_args(argv).names or known]
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")
    return 0 if all(accepted) else 1


if __name__ == "__main__":
    sys.exit(main())
