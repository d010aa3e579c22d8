"""The gallery of the site, from runs of the scenarios: python scenarios/gallery.py [NAME ...].

Each named scenario, or each of all, is run in an empty folder. Its printed text and its figures, in
64 colours, are kept in ``docs/gallery``; the page ``docs/gallery.md`` is made from these files and
the docstrings. The exit code is 1 if a scenario fails; its kept files then stay as they were.
"""

import argparse
import ast
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

Control problems from end to end. Each is one file that imports this package, CasADi, NumPy and
matplotlib: copy it and change it (`casadi-hybrid new mine --from NAME`). `verify` recomputes the
residuals from the problem's own functions, and starts IPOPT at the answer and at the guess. Text
and pictures are made by `python scenarios/gallery.py`.

| scenario | what it is |
|---|---|
"""


def renew(name: str) -> bool:
    """Run a scenario and keep its text and figures; return True if it was accepted."""
    with tempfile.TemporaryDirectory() as folder:
        if run_file(SCENARIOS / f"{name}.py", Path(folder)):
            return False
        PICTURES.mkdir(exist_ok=True)
        names = [*scenario_summaries(SCENARIOS)]
        for old in PICTURES.glob("*.png"):
            if owner(old, names) == name:
                old.unlink()
        text = Path(folder, "report.txt").read_text(encoding="utf-8")
        (PICTURES / f"{name}.txt").write_text(text, encoding="utf-8")
        for figure in Path(folder).glob("*.png"):
            Image.open(figure).convert("RGB").quantize(64).save(
                PICTURES / figure.name, optimize=True
            )
    return True


def owner(file: Path, names: Iterable[str]) -> str:
    """Return the scenario of a kept file: the longest name that the file's name begins with."""
    return max((name for name in names if file.stem.startswith(name)), key=len, default="")


def page() -> str:
    """Return the page in Markdown."""
    summaries = scenario_summaries(SCENARIOS)
    text = HEAD + "".join(
        f"| [{name}](#{name}) | {summary} |\n" for name, summary in summaries.items()
    )
    pictures = sorted(PICTURES.glob("*.png"))
    for name in summaries:
        source = ast.parse((SCENARIOS / f"{name}.py").read_text(encoding="utf-8"))
        printed = (PICTURES / f"{name}.txt").read_text(encoding="utf-8").strip()
        text += f"\n## {name}\n\n`casadi-hybrid run {name}` · [source](../scenarios/{name}.py)\n\n"
        text += f"{ast.get_docstring(source)}\n\n```text\n{printed}\n```\n"
        for figure in pictures:
            if owner(figure, summaries) == name:
                text += f"\n![{figure.stem.replace('_', ' ')}](gallery/{figure.name})\n"
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
