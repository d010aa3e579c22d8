"""Work that threads share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def share_out(items: Iterable[Item], workers: Sequence[Callable[[Item], None]]) -> None:
    """Give each item to the worker that is free first; each has a thread, the first the asking one.

    Raises:
        BaseException: the first that a worker raised, or Ctrl-C; what others are at ends before.
    """
    waiting, ended, raised = iter(items), threading.Event(), list[BaseException]()

    def work(worker: Callable[[Item], None]) -> None:
        try:
            while not ended.is_set() and (item := next(waiting, None)) is not None:
                worker(item)
        except BaseException as error:  # noqa: BLE001 (raised again below)
            raised.append(error)
            ended.set()

    others = [threading.Thread(target=work, args=(worker,)) for worker in workers[1:]]
    for thread in others:
        thread.start()
    work(workers[0])
    for thread in others:
        thread.join()
    if raised:
        raise raised[0]
