"""Work that threads share, and Ctrl-C meanwhile."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

Item = TypeVar("Item")


def share_out(
    items: Iterable[Item],
    workers: Sequence[Callable[[Item], None]],
    ended: threading.Event | None = None,
) -> None:
    """Give each item to the worker that is free first; each has a thread, the first the asking one.

    Args:
        items, workers: as said.
        ended: set as soon as one raises, or by Ctrl-C: for workers that look at it.

    Raises:
        BaseException: the first that a worker raised, or Ctrl-C; all threads have ended before.
    """
    waiting, raised = iter(items), list[BaseException]()
    halt = threading.Event() if ended is None else ended

    def keep(act: Callable[..., Any], *arguments: Any) -> None:
        try:
            act(*arguments)
        except BaseException as error:  # noqa: BLE001 (raised again below)
            raised.append(error)
            halt.set()

    def work(worker: Callable[[Item], None]) -> None:
        while not halt.is_set() and (item := next(waiting, None)) is not None:
            worker(item)

    others = [threading.Thread(target=keep, args=(work, worker)) for worker in workers[1:]]
    with on_interrupt(keep):
        for thread in others:
            keep(thread.start)
        keep(work, workers[0])
        for thread in others:
            keep(thread.join)
            while thread.is_alive():  # a signal's handler has raised
                keep(thread.join)
    if raised:
        raise raised[0]


@contextmanager
def on_interrupt(hear: Callable[[Callable[[], None]], Any]) -> Iterator[None]:
    """Have Ctrl-C call ``hear`` with the handler that there was, in the main thread."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: hear(partial(before, number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
