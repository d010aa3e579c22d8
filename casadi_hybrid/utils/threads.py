"""Work shared by threads, with Ctrl-C."""

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
    """Give each item to the first free worker; the first worker runs in the calling thread.

    The first exception of a worker, or Ctrl-C, is raised after the end of all threads. Workers may
    poll ``ended`` to end sooner.
    """
    waiting, raised = iter(items), list[BaseException]()
    halt = threading.Event() if ended is None else ended

    def catch(act: Callable[..., Any], *arguments: Any) -> None:
        try:
            act(*arguments)
        except BaseException as error:  # noqa: BLE001 (raised again below)
            raised.append(error)
            halt.set()

    def work(worker: Callable[[Item], None]) -> None:
        # Iterators of lists and ranges are safe between threads, generators are not.
        while not halt.is_set() and (item := next(waiting, None)) is not None:
            worker(item)

    others = [threading.Thread(target=catch, args=(work, worker)) for worker in workers[1:]]
    with on_interrupt(catch):
        for thread in others:
            catch(thread.start)
        catch(work, workers[0])
        for thread in others:
            catch(thread.join)
            while thread.is_alive():  # a signal handler raised during the join
                catch(thread.join)
    if raised:
        raise raised[0]


@contextmanager
def on_interrupt(hear: Callable[[Callable[[], None]], Any]) -> Iterator[None]:
    """In the main thread, let Ctrl-C call ``hear`` with the previous handler."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: hear(partial(before, number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
