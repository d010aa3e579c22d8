"""What carries pieces of work elsewhere: processes of the standard library, joblib's, Dask's."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from multiprocessing import resource_tracker
from typing import Any, Generic, TypeVar

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.record.software import software

Item = TypeVar("Item")
Value = TypeVar("Value")
Pairs = Iterator[tuple[int, Any]]
Stream = Generator[tuple[int, Any, str], None, None]
LOCAL = "local"
_WAIT = 20  # seconds for a cluster to be there
_BACK = 120  # seconds for a worker to be there, or to come back after its death
_IDLE = 300  # seconds after which joblib's processes end
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
    started: Future[Value] = Future()

    def run() -> None:
        try:
            started.set_result(start())
        except BaseException as error:  # noqa: BLE001, raised below
            started.set_exception(error)

    with deaf_children():
        threading.Thread(target=run, daemon=True, name="start of a cluster").start()
    return started.result()


class Processes:
    """Fresh processes of the standard library: a forked copy of CasADi's threads is not safe.

    Attributes:
        workers: how many.
        deaths: what the work raises where a worker's process ended.
        tries: how often an item that is run alone may end its process before it is given up.
    """

    deaths: tuple[type[Exception], ...] = (BrokenProcessPool,)
    tries = 2
    _packed: Any = staticmethod(pickle.dumps)

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def stream(self, piece: Piece[Any, Any], pairs: Pairs, ahead: int) -> Stream:
        """Yield what ``piece(number, item)`` returns, in no particular order, or raise its error.

        At most ``ahead`` pairs are taken that have not come back.
        """
        try:
            self._packed(piece)
        except Exception as error:  # noqa: BLE001, each library raises its own
            raise InputError(
                "the function cannot be sent to other processes; make what it uses, such as a "
                f"controller and a plant, inside of it ({str(error).partition('. ')[0]})"
            ) from None
        pending: set[Future[tuple[int, Any, str]]] = set()
        with deaf_children():
            pool = self._executor(min(self.workers, ahead))
        try:
            while True:
                with deaf_children():  # a call of submit may start a process
                    for pair in islice(pairs, ahead - len(pending)):
                        pending.add(pool.submit(piece, *pair))
                if not pending:
                    break
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BaseException:
            for future in pending:
                future.cancel()
            self._end(pool, at_once=True)
            raise
        self._end(pool, at_once=False)

    def close(self, *, at_once: bool) -> None:
        """Give back what is kept between two streams; ``at_once`` ends what is under way."""

    def _executor(self, workers: int) -> Any:
        self._before = set(multiprocessing.active_children())
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(workers, context, initializer=end_with, initargs=(os.getpid(),))

    def _end(self, pool: Any, *, at_once: bool) -> None:
        pool.shutdown(wait=not at_once)
        for process in set(multiprocessing.active_children()) - self._before if at_once else ():
            process.kill()


class Joblib(Processes):
    """Processes of joblib (loky): lambdas and functions of a notebook travel, too.

    The processes stay for the next call, and end by themselves after five idle minutes.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self._loky = import_module("joblib.externals.loky")
        self.deaths = (self._loky.BrokenProcessPool,)
        self._packed = import_module("joblib.externals.loky.backend.reduction").dumps

    def _executor(self, workers: int) -> Any:
        return self._loky.get_reusable_executor(
            self.workers, timeout=_IDLE, initializer=end_with, initargs=(os.getpid(),)
        )

    def _end(self, pool: Any, *, at_once: bool) -> None:
        pass

    def close(self, *, at_once: bool) -> None:
        """End the workers, where that is wanted at once."""
        if at_once:
            self._loky.get_reusable_executor().shutdown(wait=False, kill_workers=True)


class Cluster(Processes):
    """A Dask cluster.

    Args:
        cluster: ``"local"`` for one on this machine, the address of a scheduler, or a
            ``distributed.Client``.
        workers: processes of a local one.
    """

    tries = 1  # after those of the scheduler, three by default

    def __init__(self, cluster: Any, workers: int) -> None:
        if find_spec("distributed") is None:
            raise InputError(
                "cluster needs distributed, which is not installed; "
                "pip install 'casadi_hybrid[cluster]'"
            )
        distributed = import_module("distributed")
        self.deaths = (distributed.scheduler.KilledWorker,)
        self._own: list[Any] = []
        self._nannies: Callable[[], list[Any]] = list
        self._patient: Any = nullcontext()
        if isinstance(cluster, distributed.Client):
            self._client = cluster
        else:
            self._client = started_deaf(lambda: self._connect(distributed, cluster, workers))
        super().__init__(max(sum(self._client.ncores().values()), 1))
        self._packed = import_module("distributed.protocol.pickle").dumps

    def _connect(self, distributed: Any, cluster: Any, workers: int) -> Any:
        if not isinstance(cluster, str) or not cluster:
            raise InputError(
                f"cluster must be 'local', the address of a Dask scheduler or a client, got "
                f"{cluster!r}"
            )
        if cluster == LOCAL:
            # By itself Dask gives a worker up for good that is not there 15 seconds after one of
            # its deaths, even if it is being started again; and it tries a task four times.
            self._patient = import_module("dask").config.set(
                {"distributed.deploy.lost-worker-timeout": "1 day"}
            )
            self.tries = 2
            own = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0",
                silence_logs=logging.CRITICAL, scheduler_kwargs={"allowed_failures": 0},
            )  # fmt: skip
            self._own, self._nannies = [own], lambda: list(own.workers.values())
            cluster = own.scheduler_address
        try:
            client = distributed.Client(cluster, timeout=_WAIT, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"there is no Dask scheduler at {cluster!r} ({error}); start one with dask "
                "scheduler, or take 'local'"
            ) from None
        self._own.insert(0, client)
        return client

    def _executor(self, workers: int) -> Any:
        try:
            self._client.wait_for_workers(1, timeout=_BACK)
        except TimeoutError:
            raise InputError(
                f"the Dask cluster has had no worker for {_BACK} seconds; start some with dask "
                "worker ADDRESS, or take 'local'"
            ) from None
        return self._client.get_executor(pure=False)

    def _end(self, pool: Any, *, at_once: bool) -> None:
        pass

    def close(self, *, at_once: bool) -> None:
        """Close what was opened here.

        A local worker has nothing left to do, or is not to do it, and would take seconds to say
        so: it is ended.
        """
        for nanny in self._nannies():
            nanny.auto_restart = False
            if nanny.pid:
                with suppress(ProcessLookupError):
                    os.kill(nanny.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        for part in self._own:
            with suppress(Exception):
                part.close(timeout=1)
        self._patient.__exit__(None, None, None)


def carrier(cluster: Any, workers: int) -> Processes:
    """Return a cluster where one is named, else joblib's processes, else the library's own."""
    if cluster is not None:
        return Cluster(cluster, workers)
    return Joblib(workers) if has_joblib() else Processes(workers)


def has_joblib() -> bool:
    """Whether joblib is installed."""
    return find_spec("joblib") is not None
