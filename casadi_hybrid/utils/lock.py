"""A lock for objects created once in a process."""

from __future__ import annotations

import os
import threading


class Lock:
    """A lock that a forked child replaces by a new, free one."""

    # Else a child forked while another thread holds the lock would wait for ever.
    held: threading.Lock

    def __init__(self) -> None:
        self._anew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._anew)

    def _anew(self) -> None:
        self.held = threading.Lock()
