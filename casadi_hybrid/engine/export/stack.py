"""The deepest chain of calls, from what gcc lists of calls and frames."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

_FRAME = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes \(([\w,]+)')
_CALL = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
_INDIRECT = "__indirect_call"


def deepest(texts: Sequence[str], entry: str, pointed: Sequence[str]) -> int | None:
    """Bytes of stack at most below a function; None where they have no bound.

    Args:
        texts: what ``-fcallgraph-info=su`` wrote.
        entry: the function.
        pointed: the titles of what is called through pointers.
    """
    frames: dict[str, int] = {}
    calls: dict[str, set[str]] = defaultdict(set)
    for text in texts:
        for title, size, kind in _FRAME.findall(text):
            frames[title] = int(size)
            if kind == "dynamic":  # as of an array of variable length
                return None
        for source, target in _CALL.findall(text):
            calls[source].add(target)
    calls[_INDIRECT] = set(pointed)
    return _depth(entry, frames, calls, {}, ())


def _depth(
    title: str,
    frames: dict[str, int],
    calls: dict[str, set[str]],
    known: dict[str, int | None],
    above: tuple[str, ...],
) -> int | None:
    if title in above:  # a function that calls itself
        return None
    if title not in known:
        below = [_depth(each, frames, calls, known, (*above, title)) for each in calls[title]]
        bounded = [each for each in below if each is not None]
        complete = len(bounded) == len(below)
        known[title] = frames.get(title, 0) + max(bounded, default=0) if complete else None
    return known[title]
