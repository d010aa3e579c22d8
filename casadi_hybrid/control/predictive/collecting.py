"""Python's collection of garbage, put off until a step has answered."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from casadi_hybrid.engine.building.lock import Lock

_lock = Lock()
_off: list[bool] = []
"""For each step that is under way, in any thread: whether collection was on before all of them."""


@contextmanager
def collecting_later(wanted: bool) -> Iterator[None]:
    """Let no collection of garbage begin inside, which may take longer than a deadline.

    What is due is done after it, by whoever needs memory next. Where it was off it stays so.

    Args:
        wanted: whether there is a deadline at all.
    """
    if not wanted:
        yield
        return
    with _lock.held:
        _off.append(_off[0] if _off else gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _lock.held:
            if _off.pop() and not _off:
                gc.enable()
