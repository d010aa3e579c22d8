"""What runs in a worker process: one piece of work, and the end of the worker with its parent."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any, Generic, TypeVar

from casadi_hybrid.basics.record.software import software

Item = TypeVar("Item")
Value = TypeVar("Value")
_LOOK = 0.3  # seconds between two looks at whether the parent lives


@dataclass(frozen=True, slots=True)
class Piece(Generic[Item, Value]):
    """The work on one numbered item, and the software that has done it."""

    work: Callable[[Item], Value]

    def __call__(self, number: int, item: Item) -> tuple[int, Value, str]:
        """Return the number, what the work made of the item, and the versions here."""
        return number, self.work(item), software()


def end_with(parent: int) -> None:
    """Have this process end when its parent does, however that ends: after ``kill -9`` too.

    A thread looks; it gets its turn between two instructions of Python, so a call into compiled
    code that is under way ends first.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True, name="parent watch").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes and threads that are started inside never hear Ctrl-C.

    It is this process's to answer: what reaches it meanwhile waits until the end. Children inherit
    the mask, from their first instruction on.
    """
    if sys.platform == "win32":
        yield
        return
    # These set the mask themselves, and open it, where they start with the first child.
    resource_tracker.ensure_running()
    loky: Any = sys.modules.get("joblib.externals.loky.backend.resource_tracker")
    if loky is not None:
        loky.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def started_deaf(start: Callable[[], Value]) -> Value:
    """Return ``start()``, whose processes and threads never hear Ctrl-C.

    It may take its time: it runs in a thread of its own, and this one answers Ctrl-C meanwhile.
    """
    box: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            box.put((start(), None))
        except BaseException as error:  # noqa: BLE001, raised below
            box.put((None, error))

    with deaf_children():
        threading.Thread(target=run, daemon=True, name="start of a cluster").start()
    value, error = box.get()
    if error is not None:
        raise error
    started: Value = value
    return started
