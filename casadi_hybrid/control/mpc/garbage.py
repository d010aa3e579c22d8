"""Python's collection of garbage, put off until a step has answered."""

from __future__ import annotations

import gc
from typing import Any

from casadi_hybrid.utils.lock import Lock

_lock = Lock()
_off: list[bool] = []
"""For each step that is under way, in any thread: whether collection was on before all of them."""


class CollectingLater:
    """Lets no collection of garbage begin inside, which may take longer than a deadline.

    What is due is done afterwards, when memory is next asked for. Where collection was off it stays
    so, and without a deadline nothing is put off.
    """

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def __enter__(self) -> None:
        if self.wanted:
            with _lock.held:
                _off.append(_off[0] if _off else gc.isenabled())
                gc.disable()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.wanted:
            # Nothing after it takes memory that would begin what is due before the step is over:
            # the end of a `with` does.
            held = _lock.held
            held.acquire()
            if _off.pop() and not _off:
                gc.enable()
            held.release()
