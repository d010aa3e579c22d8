"""A lock for what is made once a process."""

from __future__ import annotations

import os
import threading


class Lock:
    """A lock that is another one, and free, in a forked child.

    A child forked off while another thread makes something would wait for that thread for ever.

    Attributes:
        held: what a ``with`` takes: the lock of this process.
    """

    held: threading.Lock

    def __init__(self) -> None:
        self._anew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._anew)

    def _anew(self) -> None:
        self.held = threading.Lock()
