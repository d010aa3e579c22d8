"""Independent pieces of work in parallel, with one line of progress; workers may die on the way."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from casadi_hybrid.basics.carriers import Piece, Processes, carrier, has_joblib
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.record.software import software
from casadi_hybrid.basics.threads import on_interrupt

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
    cluster: Any = None,
    label: str = "",
    lost: Callable[[Item, str], Value] | None = None,
) -> Generator[tuple[Item, Value], None, None]:
    """Yield (item, work(item)) as each is done, in no particular order.

    The values are those of a plain loop, bit for bit, whatever carries the work. Processes are
    joblib's where it is installed, else the standard library's. They end with this one, however
    that ends, and do not hear Ctrl-C. Where one of them dies, what it was at is run again, one
    by one, so that an item that ends its process is found out.

    Args:
        work: a function; without joblib, one at module level (it travels to other processes).
        items: its arguments.
        workers: processes; all available cores by default. One runs in this process.
        cluster: ``"local"`` for a Dask cluster on this machine, the address of a Dask scheduler,
            or a ``distributed.Client``: its workers take the place of processes.
        label: what the progress line on stderr says; empty for none.
        lost: (item, sentence) → value of an item that ends the process it runs in, also alone.

    Raises:
        InputError: for a cluster that is not there or that runs other software than this process.
        RuntimeError: for an item that ends its process, where there is no ``lost``.
    """
    workers = min(workers or available_cores(), max(len(items), 1))
    progress = Progress(len(items), label)
    if not items:
        return
    if workers == 1 and cluster is None:
        heard: list[int] = []

        def hear(handle: Callable[[], None]) -> None:
            heard.append(1)
            handle()

        # CasADi loses a KeyboardInterrupt that comes while it tries to convert an argument: what it
        # says then is that there is no such overload, and the work goes on, or fails.
        with on_interrupt(hear):
            for item in items:
                value = work(item)
                if heard:
                    raise KeyboardInterrupt
                yield item, value
                progress.advance()
        return
    # One process a core is enough: threads of BLAS on small matrices would only fight each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if label and cluster is None and not has_joblib():
        print(f"{label}: joblib is not installed, so with the standard library's processes",
              file=sys.stderr)  # fmt: skip
    carried = carrier(cluster, workers)
    whole = False
    try:
        for number, value in _survive(carried, work, items, lost):
            yield items[number], value
            progress.advance()
        whole = True
    finally:
        carried.close(at_once=not whole)


def _survive(
    carried: Processes, work: Callable[[Item], Value], items: Sequence[Item],
    lost: Callable[[Item, str], Value] | None,
) -> Iterator[tuple[int, Value]]:  # fmt: skip
    """Yield (number, value); after a death what was under way comes first, one by one."""
    waiting = dict(enumerate(items))
    suspects: list[int] = []
    deaths: Counter[int] = Counter()
    piece = Piece(work)
    while waiting:
        alone = bool(suspects)
        out: list[int] = []
        numbers = suspects if alone else list(waiting)
        stream = carried.stream(
            piece, _taken(numbers, waiting, out), 1 if alone else 2 * carried.workers
        )
        try:
            for number, value, theirs in stream:
                if theirs != software():
                    raise InputError(
                        f"a worker runs {theirs}, and this process {software()}: the numbers of "
                        "the two are not mixed"
                    )
                out.remove(number)
                del waiting[number]
                yield number, value
            suspects = []
        except carried.deaths:
            suspects = [number for number in numbers if number in waiting] if alone else out
            if alone and out:
                deaths[out[0]] += 1
            for number in [number for number in suspects if deaths[number] >= carried.tries]:
                suspects.remove(number)
                yield number, _given_up(waiting.pop(number), lost)
        finally:
            stream.close()


def _taken(
    numbers: Iterable[int], waiting: dict[int, Item], out: list[int]
) -> Iterator[tuple[int, Item]]:
    for number in list(numbers):
        out.append(number)
        yield number, waiting[number]


def _given_up(item: Item, lost: Callable[[Item, str], Value] | None) -> Value:
    sentence = "the process it ran in ended without an answer, also when it was run alone"
    if lost is None:
        raise RuntimeError(f"{item!r}: {sentence}")
    return lost(item, sentence)


class Progress:
    """Rewrites one line on a terminal; elsewhere prints a line at every tenth of the way."""

    def __init__(self, total: int, label: str) -> None:
        self.total = total
        self.label = label
        self.done, self.first = 0, 0.0
        self.began = time.monotonic()
        self.live = sys.stderr.isatty()

    def advance(self) -> None:
        """Say that one more piece is done."""
        self.done += 1
        self.first = self.first or time.monotonic() - self.began
        if not self.label:
            return
        last = self.done == self.total
        if not self.live and not last and self.done % max(self.total // 10, 1):
            return
        elapsed = time.monotonic() - self.began
        # Processes take a while to start: the pace is that since the first piece was done.
        paced = (elapsed - self.first) / (self.done - 1) if self.done > 1 else elapsed
        left = paced * (self.total - self.done)
        text = f"{self.label}: {self.done}/{self.total}, {elapsed:.0f} s, about {left:.0f} s left"
        end = "\n" if last or not self.live else ""
        lead = "\r" if self.live else ""
        print(f"{lead}{text:<70}", end=end, file=sys.stderr, flush=True)
