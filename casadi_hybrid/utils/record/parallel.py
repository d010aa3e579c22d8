"""Independent work in parallel: joblib's processes or a Dask cluster, with a progress bar."""

from __future__ import annotations

import logging
import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any, TypeVar

from casadi_hybrid.utils.errors import InputError, warn
from casadi_hybrid.utils.output.text import progress
from casadi_hybrid.utils.record.software import software
from casadi_hybrid.utils.threads import on_interrupt

Item = TypeVar("Item")
Value = TypeVar("Value")
Numbered = Generator[tuple[int, Value], None, None]
LOCAL = "local"
_ENDED = "the process it ran in ended without an answer, also when it was run alone"
_CONNECT_SECONDS = 20
_WORKER_SECONDS = 120
_PARENT_SECONDS = 0.3


def available_cores() -> int:
    """Return the number of cores this process may use."""
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

    The values equal those of a plain loop, bit for bit. ``cluster`` is ``"local"`` for Dask on this
    machine, the address of a scheduler, or a client. ``lost``: (item, sentence) → value of an item
    that ends its process also when run alone.

    Raises:
        InputError: for an unreachable cluster, workers with other software, or a function that
            cannot be pickled.
        RuntimeError: for an item that ends its process, without ``lost``.
    """
    if not items:
        return
    workers = min(workers or available_cores(), len(items))
    if cluster is None and workers > 1 and find_spec("joblib") is None:
        warn("joblib is not installed: one process does all; pip install 'casadi_hybrid[study]'")
        workers = 1
    if cluster is None and workers == 1:
        stream = _serial(work, items)
    else:
        backend = _processes(workers) if cluster is None else _cluster(cluster, workers)
        stream = _parallel(backend, work, items, lost)
    bar = progress.tqdm(total=len(items), desc=label, disable=None if label else True)
    with bar, closing(stream):
        for number, value in stream:
            yield items[number], value
            bar.update()


def _serial(work: Callable[[Item], Value], items: Sequence[Item]) -> Numbered[Value]:
    """Yield numbered values, computed in this process."""
    # CasADi loses a KeyboardInterrupt that arrives while it converts an argument, so the signal is
    # remembered and raised after the item.
    interrupts: list[int] = []

    def remember(handle: Callable[[], None]) -> None:
        interrupts.append(1)
        handle()

    with on_interrupt(remember):
        for number, item in enumerate(items):
            value = work(item)
            if interrupts:
                raise KeyboardInterrupt
            yield number, value


@dataclass(frozen=True)
class _Backend:
    """A pool of processes."""

    executor: Callable[[], Any]  # a new one after a death
    workers: int
    death: type[Exception]  # of a future whose process ended


def _parallel(
    context: AbstractContextManager[_Backend],
    work: Callable[[Item], Value],
    items: Sequence[Item],
    lost: Callable[[Item, str], Value] | None,
) -> Numbered[Value]:
    """Yield numbered values; after a death the suspects run first, one at a time."""
    task = partial(_checked, work, software())
    missing = dict(enumerate(items))
    # After a death nobody knows which item was the cause: all that were under way are suspects.
    suspects: list[int] = []
    with context as backend:
        _check_pickles(task)
        while missing:
            alone = bool(suspects)
            numbers = [suspects.pop()] if alone else list(missing)
            for number, future in _completed(backend, task, items, numbers):
                try:
                    value = future.result()
                except backend.death:
                    if not alone:
                        suspects.append(number)
                        continue
                    if lost is None:
                        raise RuntimeError(f"{items[number]!r}: {_ENDED}") from None
                    value = lost(items[number], _ENDED)
                del missing[number]
                yield number, value


def _completed(
    backend: _Backend, task: Callable[[Item], Value], items: Sequence[Item], numbers: Sequence[int]
) -> Iterator[tuple[int, Future[Value]]]:
    """Yield futures as they complete; after a death nothing more is submitted."""
    executor = backend.executor()
    queue = iter(numbers)
    pending: dict[Future[Value], int] = {}
    died = False
    try:
        while True:
            # Two items a worker keep all busy, and few become suspects.
            room = 0 if died else 2 * backend.workers - len(pending)
            try:
                with _sigint_blocked():  # submitting may start a process
                    for number in islice(queue, room):
                        pending[executor.submit(task, items[number])] = number
            except backend.death:
                died = True
            if not pending:
                return
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                died = died or isinstance(future.exception(), backend.death)
                yield pending.pop(future), future
    finally:
        for future in pending:
            future.cancel()


def _checked(work: Callable[[Item], Value], expected: str, item: Item) -> Value:
    """Return ``work(item)``, in a worker with the software of the asking process."""
    if software() != expected:
        raise InputError(
            f"a worker runs {software()}, and this process {expected}: the numbers of the two are "
            "not mixed"
        )
    return work(item)


def _check_pickles(task: Any) -> None:
    try:
        import_module("joblib.externals.loky.backend.reduction").dumps(task)
    except Exception as error:  # noqa: BLE001, objects raise errors of their own
        raise InputError(
            "the function cannot be sent to other processes; make what it uses, such as a "
            f"controller and a plant, inside of it ({str(error).partition('. ')[0]})"
        ) from None


@contextmanager
def _processes(workers: int) -> Iterator[_Backend]:
    """Processes of joblib (loky); they stay for the next call and end after idle seconds."""
    loky = import_module("joblib.externals.loky")
    import_module("joblib.externals.loky.backend.resource_tracker").ensure_running()

    def executor() -> Any:
        # Threads of BLAS on small matrices would only compete with the other processes.
        return loky.get_reusable_executor(
            workers,
            env={"OPENBLAS_NUM_THREADS": "1"},
            initializer=_end_with_parent,
            initargs=(os.getpid(),),
        )

    try:
        yield _Backend(executor, workers, loky.BrokenProcessPool)
    except BaseException:
        executor().shutdown(wait=False, kill_workers=True)
        raise


def _end_with_parent(parent: int) -> None:
    """Start a thread that ends this process when its parent has ended, also by ``kill -9``."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_SECONDS)
        # sys.exit would end this thread alone.
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent watch").start()


@contextmanager
def _cluster(cluster: Any, workers: int) -> Iterator[_Backend]:
    """A Dask cluster: a local one, one at an address, or that of a client."""
    if find_spec("distributed") is None:
        raise InputError(
            "cluster needs distributed, which is not installed; "
            "pip install 'casadi_hybrid[cluster]'"
        )
    distributed = import_module("distributed")
    with ExitStack() as stack:
        client = cluster
        if not isinstance(cluster, distributed.Client):
            # Dask gives up a worker that takes longer than 15 seconds to start again.
            patience = {"distributed.deploy.lost-worker-timeout": "1 day"}
            stack.enter_context(import_module("dask").config.set(patience))
            client = stack.enter_context(_client(cluster, workers))

        def executor() -> Any:
            # joblib's own backend for Dask waits for ever after the death of a worker.
            client.wait_for_workers(1, timeout=_WORKER_SECONDS)
            return client.get_executor(pure=False)

        cores = sum(client.ncores().values())
        yield _Backend(executor, max(cores, 1), distributed.scheduler.KilledWorker)


def _client(cluster: Any, workers: int) -> Any:
    options: dict[str, Any] = {"address": cluster}
    if cluster == LOCAL:
        options = {
            "n_workers": workers,
            "threads_per_worker": 1,
            "processes": True,
            "dashboard_address": ":0",
            "silence_logs": logging.CRITICAL,
            # A killed task is not tried again here: _parallel runs suspects alone.
            "scheduler_kwargs": {"allowed_failures": 0},
        }
    try:
        with _sigint_blocked():
            return import_module("distributed").Client(
                **options, timeout=_CONNECT_SECONDS, set_as_default=False
            )
    except (OSError, TypeError, ValueError) as error:
        raise InputError(
            f"there is no Dask scheduler at {cluster!r} ({error}); start one with dask scheduler, "
            "or take 'local'"
        ) from None


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT for the processes and threads started inside, which inherit the mask."""
    if sys.platform == "win32":
        yield
        return
    # The tracker unblocks SIGINT when it starts, so it starts before.
    multiprocessing.resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
