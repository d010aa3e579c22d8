"""What carries pieces of work elsewhere: processes of the standard library, joblib's, Dask's.

A carrier's ``stream(piece, pairs, ahead)`` yields what ``piece(number, item)`` returns, in no
particular order, with at most ``ahead`` pairs taken that have not come back. An exception of the
work is raised by it; so is one of ``deaths`` where a worker's process ended.
``close(at_once=True)`` ends what is under way. ``tries`` is how often an item that is run alone may
end its process before it is given up.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext, suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any, Protocol

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.many.worker import deaf_children, end_with, started_deaf

Pairs = Iterator[tuple[int, Any]]
Piece = Callable[[int, Any], tuple[int, Any, str]]
Stream = Generator[tuple[int, Any, str], None, None]
LOCAL = "local"
_WAIT = 20  # seconds for a cluster to be there
_BACK = 120  # seconds for a worker to be there, or to come back after its death


class Carrier(Protocol):
    """See the module's docstring."""

    deaths: tuple[type[Exception], ...]
    workers: int
    tries: int

    def stream(self, piece: Piece, pairs: Pairs, ahead: int) -> Stream:
        """Yield the results as they come."""
        ...

    def close(self, *, at_once: bool) -> None:
        """Give back what it holds."""
        ...


class Processes:
    """Fresh processes of the standard library: a forked copy of CasADi's threads is not safe."""

    tries = 2

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.deaths: tuple[type[Exception], ...] = (BrokenProcessPool,)

    def stream(self, piece: Piece, pairs: Pairs, ahead: int) -> Stream:
        """Yield the results as they come."""
        context = multiprocessing.get_context("spawn")
        before = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(
            min(self.workers, ahead), context, initializer=end_with, initargs=(os.getpid(),)
        )
        pending: set[Future[tuple[int, Any, str]]] = set()
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
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - before:
                process.kill()
            raise
        pool.shutdown()

    def close(self, *, at_once: bool) -> None:
        """Nothing is held between two streams."""


class Joblib:
    """Processes of joblib (loky): lambdas and functions of a notebook travel, too.

    The processes stay for the next call, and end by themselves after five idle minutes.
    """

    tries = 2

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._joblib = import_module("joblib")
        loky = import_module("joblib.externals.loky.process_executor")
        self.deaths: tuple[type[Exception], ...] = (loky.BrokenProcessPool,)

    def stream(self, piece: Piece, pairs: Pairs, ahead: int) -> Stream:
        """Yield the results as they come."""
        options = {"initializer": end_with, "initargs": (os.getpid(),), "max_nbytes": None}
        return _joblib_stream(
            self._joblib, self.workers, "loky", piece, pairs, ahead, options
        )  # fmt: skip

    def close(self, *, at_once: bool) -> None:
        """End the workers, where that is wanted at once."""
        if at_once:
            loky = import_module("joblib.externals.loky")
            loky.get_reusable_executor().shutdown(wait=False, kill_workers=True)


class Cluster:
    """A Dask cluster through joblib.

    Args:
        cluster: ``"local"`` for one on this machine, the address of a scheduler, or a
            ``distributed.Client``.
        workers: processes of a local one.
    """

    def __init__(self, cluster: Any, workers: int) -> None:
        missing = [name for name in ("joblib", "distributed") if find_spec(name) is None]
        if missing:
            raise InputError(
                f"cluster needs {' and '.join(missing)}, which is not installed; "
                "pip install 'casadi_hybrid[cluster]'"
            )
        self._joblib, distributed = import_module("joblib"), import_module("distributed")
        self.deaths: tuple[type[Exception], ...] = (distributed.scheduler.KilledWorker,)
        self._own: list[Any] = []
        self._nannies: Callable[[], list[Any]] = list
        self._patient: Any = nullcontext()
        self.tries = 1  # after those of the scheduler, three by default
        if isinstance(cluster, distributed.Client):
            self._client = cluster
        else:
            self._client = started_deaf(lambda: self._connect(distributed, cluster, workers))
        self.workers = max(sum(self._client.ncores().values()), 1)

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

    def stream(self, piece: Piece, pairs: Pairs, ahead: int) -> Stream:
        """Yield the results as they come.

        Raises:
            InputError: where no worker is there, or comes back.
        """
        try:
            self._client.wait_for_workers(1, timeout=_BACK)
        except TimeoutError:
            raise InputError(
                f"the Dask cluster has had no worker for {_BACK} seconds; start some with dask "
                "worker ADDRESS, or take 'local'"
            ) from None
        backend = _telling(self._client)
        with self._joblib.parallel_config(backend=backend):
            yield from _joblib_stream(self._joblib, self.workers, None, piece, pairs, ahead, {})

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


def _telling(client: Any) -> Any:
    """joblib's backend for Dask, which also tells when the cluster gives a task up.

    By itself it calls back for answers only, and whoever waits for a task whose worker died time
    after time waits for ever. And a cluster of which one worker is there it takes for no cluster:
    joblib would do the work in this process, which an item may end.
    """
    base: Any = import_module("joblib._dask").DaskDistributedBackend

    class Telling(base):  # type: ignore[misc]
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(int(super().effective_n_jobs(n_jobs)), 2)

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)

            def told(done: Any) -> None:
                error = None if done.cancelled() else done.exception()
                if error is not None and callback is not None:
                    callback(error)

            future.add_done_callback(told)
            return future

    return Telling(client=client, wait_for_workers_timeout=_BACK)


def _joblib_stream(
    joblib: Any, workers: int, backend: str | None, piece: Piece, pairs: Pairs, ahead: int,
    options: dict[str, Any],
) -> Stream:  # fmt: skip
    """One call of ``joblib.Parallel``, whose results are taken as they come."""
    parallel = joblib.Parallel(
        n_jobs=workers, backend=backend, return_as="generator_unordered", batch_size=1,
        pre_dispatch=ahead, **options,
    )  # fmt: skip
    with deaf_children():
        found = parallel(joblib.delayed(piece)(number, item) for number, item in pairs)
    try:
        yield from found
    finally:
        found.close()


def carrier(cluster: Any, workers: int) -> Carrier:
    """Return a cluster where one is named, else joblib's processes, else the library's own."""
    if cluster is not None:
        return Cluster(cluster, workers)
    return Joblib(workers) if has_joblib() else Processes(workers)


def has_joblib() -> bool:
    """Whether joblib is installed."""
    return find_spec("joblib") is not None
