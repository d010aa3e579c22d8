"""The docstrings of the package as Markdown: called by mkdocstrings.

They are written for ``help()`` in a terminal, with the roles of reStructuredText for names.
"""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

ROLE = re.compile(r":(?:py:)?(?:class|func|meth|mod|data|attr|exc):`~?([^`<]+)`")
MATH = re.compile(r"^([ ]*)\.\. math::[ ]*(.*)\n((?:[ ]*\n|\1[ ]{2,}\S.*\n?)*)", re.MULTILINE)
TABLE = re.compile(
    r"^([ ]*)(=+(?: +=+)+)\n(.*?\n\1=[= ]*\n.*?)^\1=[= ]+$", re.MULTILINE | re.DOTALL
)
OPTIONS = re.compile(
    r"^([ ]+)\w+  \S+  \S.*\n(?:\1[ ]{4,}\S.*\n|\1\w+  \S+  \S.*\n)+", re.MULTILINE
)
NAMES = re.compile(r"^[ ]+\w+(?:, \w+)+(?=: )", re.MULTILINE)
NORM = re.compile(r"(?<=[‖|])_(?=[∞₂F])")
STAR = re.compile(r"(?<![\w*])([a-zπμ])\*(?![\w*])")
EXAMPLE = re.compile(r"^([ ]*)Example:$", re.MULTILINE)
LITERAL = re.compile(r"(?<!:)::$", re.MULTILINE)


def name_of(found: re.Match[str]) -> str:
    """A name as code, by its last part, or its last two for a member of the package."""
    full = found[1].strip()
    shown = full.rpartition(".")[2]
    return f"`{shown}`" if not full.startswith(".") else f"`{full.lstrip('.')}`"


def formula(found: re.Match[str]) -> str:
    """A displayed formula as MathML; where lines are aligned, as LaTeX's ``align`` has them."""
    text = " ".join(f"{found[2]} {found[3]}".split())
    if "&" in text:
        text = rf"\begin{{align*}}{text}\end{{align*}}"
    shown = convert(text, display="block")
    return f"\n{found[1]}<div class='formula' tabindex='0'>{shown}</div>\n\n"


def table(found: re.Match[str]) -> str:
    """A simple table as one of Markdown; a row goes on where its first cell is empty."""
    indent, rule = found[1], found[2]
    starts = [mark.start() for mark in re.finditer(r"=+", rule)]
    ends = [*starts[1:], None]
    rows: list[list[str]] = []
    for indented in found[3].splitlines():
        line = indented[len(indent) :]
        if not line.strip() or set(line.strip()) <= {"=", " "}:
            continue
        cells = [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]
        if cells[0]:
            rows.append(cells)
        else:
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    rows.insert(1, ["---"] * len(starts))
    cells = ("|".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    return "\n" + "\n".join(f"{indent}|{row}|" for row in cells) + "\n"


def options(found: re.Match[str]) -> str:
    """Lines of name, default and effect, two spaces between them, as a table of Markdown."""
    indent = found[1]
    rows = [["option", "default", "effect"], ["---"] * 3]
    for line in found[0].splitlines():
        if line.startswith(f"{indent} "):
            rows[-1][-1] += f" {line.strip()}"
        else:
            name, default, effect = line.strip().split("  ", 2)
            rows.append([f"`{name}`", f"`{default}`", effect])
    cells = ("|".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    return "".join(f"{indent}|{row}|\n" for row in cells)


def as_markdown(text: str) -> str:
    """One docstring."""
    text = OPTIONS.sub(options, TABLE.sub(table, text))
    # Several attributes of one line stay one name: after a space griffe reads a type.
    text = NAMES.sub(lambda names: names[0].replace(", ", ",\N{NO-BREAK SPACE}"), text)
    text = MATH.sub(formula, text + "\n").rstrip("\n")
    text = ROLE.sub(name_of, text)
    text = NORM.sub(r"\\_", text)
    text = STAR.sub(r"\1\\*", text)
    text = EXAMPLE.sub(r"\1Examples:", text)
    return LITERAL.sub(":", text)


class Markdown(griffe.Extension):
    """Converts every docstring when it has been read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Convert the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
