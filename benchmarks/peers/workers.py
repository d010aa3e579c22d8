"""Solvers in processes of their own: some plugins abort the process, some never return."""

from __future__ import annotations

import ctypes
import os
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
from peers.solvers import NOT_COUNTED, SOLVERS, claim


@dataclass(frozen=True)
class Answer:
    """What a solver returned.

    Attributes:
        end: "returned", "raised", "crashed" or "timeout".
        claim: what it says of its point, see :func:`peers.solvers.claim`.
        status: its own words.
        iterations: None where the plugin does not tell.
        seconds: processor time of the calling thread, the least of the repeats.
        times: the same of every repeat.
        written: characters that reached the file descriptors of output and error, from the making
            of the solver to its answer, whatever library wrote them.
        error: the first of those on error.
    """

    end: str
    claim: str = "failed"
    status: str = ""
    x: Sequence[float] = ()
    lam_g: Sequence[float] = ()
    lam_x: Sequence[float] = ()
    iterations: int | None = None
    seconds: float = 0.0
    times: Sequence[float] = ()
    written: tuple[int, int] = (0, 0)
    error: str = ""


def solve(
    solver: str,
    group: str,
    name: str,
    x0: Sequence[float],
    repeat: int,
    built: Callable[[], None] = lambda: None,
) -> Answer:
    """Solve one case in this process; ``built`` is called when the solver is made."""
    data = case_named(group, name).build()
    try:
        run = SOLVERS[solver]({key: data[key] for key in ("x", "f", "g")})
        bounds = {key: data[key] for key in ("lbx", "ubx", "lbg", "ubg")}
        start, times = list(x0) or data["x0"], []
        built()
        for _ in range(repeat):
            began = time.thread_time()
            found = run(x0=start, **bounds)
            # The kernel's count can stand still over a short call.
            times.append(max(time.thread_time() - began, 1e-4))
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises is its answer
        return Answer("raised", status=str(error).strip().splitlines()[-1][:200])
    stats = run.stats()
    count = stats.get("iter_count")
    x, lam_g, lam_x = (found[key].full().ravel().tolist() for key in ("x", "lam_g", "lam_x"))
    status = str(stats.get("return_status"))
    iterations = None if count is None or solver in NOT_COUNTED else int(count)
    return Answer("returned", claim(stats), status, x, lam_g, lam_x, iterations, min(times), times)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)


def _serve(solver: str, repeat: int, pipe: Connection, files: Sequence[str]) -> None:
    for descriptor, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), descriptor)
    os.chdir(os.path.dirname(files[0]))  # CasADi leaves what it compiles where it works
    solve(
        solver, "hs", "HS35", (0.5, 0.5, 0.5), 1
    )  # loads libraries, which no answer shall pay for
    _flush()
    pipe.send("ready")
    while True:
        group, name, x0 = pipe.recv()
        answer = solve(solver, group, name, x0, repeat, lambda: pipe.send("built"))
        _flush()
        pipe.send(answer)


class Worker:
    """A process that solves with one solver, started anew after a crash or a time-out.

    The limit is in seconds of the clock, without the start of the process: SLEQP's threads spin
    between solves, so that the processor time of a process says nothing of a solve. The making of
    the solver has the same limit to itself.
    """

    def __init__(self, solver: str, limit: float, repeat: int = 1) -> None:
        self._solver, self._limit, self._repeat = solver, limit, repeat
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
        at: TracebackType | None,
    ) -> None:
        self._stop()
        self._folder.cleanup()

    def solve(self, case: Case) -> Answer:
        """The answer, or that there is none within the limit."""
        if self._process is None:
            self._start()
        self._written()  # by the start of the process
        answer = self._answer(case)
        texts = self._written()
        written = (len(texts[0]), len(texts[1]))
        return replace(answer, written=written, error=texts[1][:500])

    def _answer(self, case: Case) -> Answer:
        try:
            self._pipe.send((case.group, case.name, case.x0))
            while self._pipe.poll(self._limit * self._repeat):
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
        arguments = (self._solver, self._repeat, child, self._files)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        self._process = process
        child.close()
        try:
            self._pipe.recv()
        except EOFError as error:
            self._stop()
            raise RuntimeError(
                f"the process for {self._solver} ended before its first problem."
            ) from error

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None
