"""Independent pieces of work in parallel processes, with one line of progress."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_parallel(
    work: Callable[[Item], Value],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    label: str = "",
) -> Iterator[tuple[Item, Value]]:
    """Yield (item, work(item)) as each is done, in no particular order.

    Args:
        work: a function at module level (it travels to other processes).
        items: its arguments.
        workers: processes; all available cores by default. One runs in this process.
        label: what the progress line on stderr says; empty for none.
    """
    workers = min(workers or available_cores(), max(len(items), 1))
    progress = Progress(len(items), label)
    if workers == 1:
        for item in items:
            yield item, work(item)
            progress.advance()
        return
    # One process a core is enough: threads of BLAS on small matrices would only fight each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Fresh processes: a forked copy of CasADi's threads and locks is not safe.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = {pool.submit(work, item): item for item in items}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
                progress.advance()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class Progress:
    """Rewrites one line on a terminal; elsewhere prints a line at every tenth of the way.

    Args:
        total: number of pieces.
        label: what the line says; empty for no line.
    """

    def __init__(self, total: int, label: str) -> None:
        self.total = total
        self.label = label
        self.done = 0
        self.began = time.monotonic()
        self.live = sys.stderr.isatty()

    def advance(self) -> None:
        """Say that one more piece is done."""
        self.done += 1
        if not self.label:
            return
        last = self.done == self.total
        if not self.live and not last and self.done % max(self.total // 10, 1):
            return
        elapsed = time.monotonic() - self.began
        left = elapsed / self.done * (self.total - self.done)
        text = f"{self.label}: {self.done}/{self.total}, {elapsed:.0f} s, about {left:.0f} s left"
        end = "\n" if last or not self.live else ""
        lead = "\r" if self.live else ""
        print(f"{lead}{text:<70}", end=end, file=sys.stderr, flush=True)
