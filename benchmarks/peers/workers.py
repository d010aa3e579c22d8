"""One way to run a peer: in a process of its own, since some plugins abort it or never return."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from peers.cases import Case, case_named
from peers.solvers import PEERS, claim

REFUSED = "Not_Enough_Degrees_Of_Freedom"
"""Where IPOPT refuses a problem its count of iterations is memory that it has not set."""
CLOCKS = {
    "thread": time.thread_time, "processor": time.process_time, "wall": time.perf_counter,
}  # fmt: skip
"""Seconds of the calling thread, of all threads, of the wall. SLEQP's threads spin when idle."""


@dataclass(frozen=True)
class Answer:
    """What a solver returned.

    Attributes:
        end: "returned", "raised", "crashed" or "timeout".
        claim: what it says of its point, see :func:`peers.solvers.claim`.
        status: its own words.
        iterations: None where the plugin does not tell.
        built: seconds of building the solver.
        seconds: the least of ``times``.
        times: seconds of each call, all from the same start.
        memory: MiB by which building and solving raised the most that the process had.
        written: characters that reached standard output and standard error.
        error: the first of those on standard error.
    """

    end: str
    claim: str = "failed"
    status: str = ""
    x: Sequence[float] = ()
    lam_g: Sequence[float] = ()
    lam_x: Sequence[float] = ()
    iterations: int | None = None
    built: float = 0.0
    seconds: float = 0.0
    times: Sequence[float] = ()
    memory: float = 0.0
    written: tuple[int, int] = (0, 0)
    error: str = ""


@dataclass(frozen=True)
class Run:
    """How a peer is run.

    Attributes:
        solver: name of one of ``PEERS``.
        limit: seconds of the wall for one call; building has as many.
        repeat: calls of each solver.
        compiled: whether functions are compiled.
        clock: one of ``CLOCKS``.
        alone: whether every problem has a new process, so that its memory is its own.
    """

    solver: str
    limit: float = 30.0
    repeat: int = 1
    compiled: bool = False
    clock: str = "thread"
    alone: bool = False


def solve(run: Run, case: Case, built: Callable[[], None] = lambda: None) -> Answer:
    """Solve one case in this process; ``built`` is called when the solver is made."""
    data, now = case.build(), CLOCKS[run.clock]
    nlp = {key: data[key] for key in ("x", "f", "g")}
    bounds = {key: data[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        began, times = now(), []
        solver = PEERS[run.solver].make(nlp, run.compiled)
        building = now() - began
        built()
        for _ in range(run.repeat):
            began = now()
            found = solver(x0=list(case.x0) or data["x0"], **bounds)
            times.append(max(now() - began, 1e-4))  # the kernel's count can stand still
        stats = solver.stats()
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises is its answer
        return Answer("raised", status=str(error).strip().splitlines()[-1][:200])
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    status, count = str(stats.get("return_status")), stats.get("iter_count")
    told = PEERS[run.solver].counts and count is not None and status != REFUSED
    x, lam_g, lam_x = (found[key].full().ravel().tolist() for key in ("x", "lam_g", "lam_x"))
    return Answer(
        "returned", claim(stats), status, x, lam_g, lam_x, int(count) if told else None,
        building, min(times), times, memory,
    )  # fmt: skip


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)


def _serve(run: Run, pipe: Connection, files: Sequence[str]) -> None:
    for descriptor, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), descriptor)
    os.chdir(os.path.dirname(files[0]))  # CasADi leaves what it compiles where it works
    # Loading the libraries is no problem's cost.
    solve(replace(run, repeat=1, compiled=False), case_named("hs", "HS35"))
    _flush()
    pipe.send("ready")
    while True:
        group, name, folder, x0 = pipe.recv()
        case = replace(case_named(group, name, folder), x0=x0)
        answer = solve(run, case, lambda: pipe.send("built"))
        _flush()
        pipe.send(answer)


class Worker:
    """A process that solves with one peer, started anew after a crash or a time-out."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._process: Any = None
        self._pipe: Any = None
        self._folder = TemporaryDirectory()
        self._files = [os.path.join(self._folder.name, name) for name in ("output", "error")]
        self._read = [0, 0]

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._folder.cleanup()

    def solve(self, case: Case) -> Answer:
        """The answer, or that there is none within the limit."""
        if self._process is None:
            self._start()
        self._written()  # by the start of the process
        answer = self._answer(case)
        output, error = self._written()
        if self._run.alone:
            self._stop()
        return replace(answer, written=(len(output), len(error)), error=error[:500])

    def _answer(self, case: Case) -> Answer:
        try:
            self._pipe.send((case.group, case.name, case.folder, case.x0))
            while self._pipe.poll(self._run.limit * self._run.repeat):
                answer = self._pipe.recv()
                if isinstance(answer, Answer):
                    return answer
        except (EOFError, ConnectionError):
            self._stop()
            return Answer("crashed")
        self._stop()
        return Answer("timeout")

    def _written(self) -> list[str]:
        """What has come to output and to error since the last call."""
        texts = []
        for k, name in enumerate(self._files):
            with open(name, "rb") as file:
                file.seek(self._read[k])
                content = file.read()
            self._read[k] += len(content)
            texts.append(content.decode("utf-8", errors="replace"))
        return texts

    def _start(self) -> None:
        context = get_context("spawn")
        self._pipe, child = context.Pipe()
        arguments = (self._run, child, self._files)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        self._process = process
        child.close()
        try:
            self._pipe.recv()
        except EOFError as error:
            self._stop()
            raise RuntimeError(
                f"the process for {self._run.solver} ended before its first problem."
            ) from error

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None
