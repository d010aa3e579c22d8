"""The pages of the repository: their texts, the code in them, and their sentences."""

import re

from support.paths import ROOT

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        *(ROOT / "README.md", ROOT / "CHANGELOG.md"),
        *(ROOT / "scenarios/README.md", ROOT / "notebooks/README.md"),
        *sorted((ROOT / "docs").rglob("*.md")),
    )
}
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page, language and text."""
    return FENCE.findall(PAGES[page])


def python_of(page: str) -> list[str]:
    return [text for kind, text in blocks(page) if kind == "python"]


def prose(page: str) -> str:
    return FENCE.sub("", PAGES[page])


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its first two rows."""
    section = PAGES[page].partition(f"## {heading}\n")[2]
    rows = section[section.index("\n|") :].strip().partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
