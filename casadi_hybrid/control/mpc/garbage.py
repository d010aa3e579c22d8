"""Postponed garbage collection while a step is under way."""

from __future__ import annotations

import gc
from typing import Any

from casadi_hybrid.utils.lock import Lock

_lock = Lock()
# For each step under way, in any thread: true if collection was enabled before all of them.
_was_enabled: list[bool] = []


class PostponedCollection:
    """Context without garbage collection, which may take longer than a deadline."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def __enter__(self) -> None:
        if self.wanted:
            with _lock.held:
                # Steps of threads overlap: the last to end restores the state before the first.
                _was_enabled.append(_was_enabled[0] if _was_enabled else gc.isenabled())
                gc.disable()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.wanted:
            # The end of a `with` allocates, so that a due collection would begin within the step.
            mutex = _lock.held
            mutex.acquire()
            if _was_enabled.pop() and not _was_enabled:
                gc.enable()
            mutex.release()
