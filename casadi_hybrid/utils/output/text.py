"""Tables of plain text, at the width of the terminal, and a clock during long work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from textwrap import TextWrapper
from threading import Event, Thread
from typing import Any

from casadi_hybrid.utils.late import LateModule

progress = LateModule("tqdm")


def aligned(rows: Sequence[Sequence[str]], sides: str = "<") -> list[str]:
    """Return rows of cells as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    # < (left) or > (right) for each column; the last one holds for the rest.
    sides += sides[-1] * len(widths)
    columns = zip(sides, widths, strict=False)
    form = "  ".join(f"{{:{side}{width}}}" for side, width in columns)
    return [form.format(*row).rstrip() for row in rows]


def show(text: Any, data: Any = None) -> None:
    """Print data as JSON, or without data a text that fits the terminal, past a clock."""
    with progress.tqdm.external_write_mode():
        print(fitted(str(text)) if data is None else json.dumps(data), flush=True)


def fitted(text: str) -> str:
    """Return a text with lines that fit the terminal, or 80 columns without one.

    A table with a rule becomes several, each with some of its columns. Another line goes on below
    the last of its columns that leaves enough room.
    """
    width, lines = get_terminal_size().columns, list[str]()
    for block in re.split("(?<=\n)\n", text):
        rows = block.split("\n")
        rule = next((k for k, row in enumerate(rows) if re.fullmatch("-{3,}", row)), 0)
        if rule and len(rows[rule]) > width:
            rows[rule - 1 :] = _in_parts(rows[rule - 1 :], width)
        for row in rows:
            starts = (match.end() for match in re.finditer("^ *(- )?| {2,}", row))
            filler = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
            filler.subsequent_indent = " " * max(k for k in starts if k <= 0.6 * width)
            lines += filler.wrap(row) or [""]
    return "\n".join(lines)


def _in_parts(rows: Sequence[str], width: int) -> list[str]:
    """Return a ruled table of right-aligned columns as several, each with the first column."""
    size, cells = max(map(len, rows)), [row for row in rows if row.strip("-")]
    used = "".join(" x"[any(row[k : k + 1].strip() for row in cells)] for k in range(size))
    begin, *ends = [*(gap.start() for gap in re.finditer("(?<=x)  +", used)), size]
    first, lines = begin, list[str]()
    while ends:
        end = max([end for end in ends if first + end - begin <= width], default=ends[0])
        lines += [f"{row[:first]:{first}}{row[begin:end]}".rstrip() for row in rows] + [""]
        begin, ends = end, [later for later in ends if later > end]
    return lines[:-1]


@contextmanager
def clock(label: str) -> Iterator[None]:
    """Show the seconds of work of more than one on a terminal; no clock without a label."""
    ended = Event()

    def tick() -> None:
        if label and not ended.wait(1.0):
            look = {"bar_format": "{desc}: {elapsed}", "leave": False, "disable": None}
            with progress.tqdm(desc=label, **look) as bar:
                while not ended.wait(1.0):
                    bar.refresh()

    thread = Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
