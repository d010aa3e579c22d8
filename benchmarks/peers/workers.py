"""Solvers in processes of their own: some plugins abort the process, some never return."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
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
    """

    end: str
    claim: str = "failed"
    status: str = ""
    x: Sequence[float] = ()
    lam_g: Sequence[float] = ()
    lam_x: Sequence[float] = ()
    iterations: int | None = None
    seconds: float = 0.0


def solve(solver: str, group: str, name: str, x0: Sequence[float], repeat: int) -> Answer:
    """Solve one case in this process."""
    data = case_named(group, name).build()
    try:
        run = SOLVERS[solver]({key: data[key] for key in ("x", "f", "g")})
        bounds = {key: data[key] for key in ("lbx", "ubx", "lbg", "ubg")}
        times = []
        for _ in range(repeat):
            began = time.thread_time()
            found = run(x0=list(x0), **bounds)
            # The kernel's count can stand still over a short call.
            times.append(max(time.thread_time() - began, 1e-4))
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises is its answer
        return Answer("raised", status=str(error).strip().splitlines()[-1][:200])
    stats = run.stats()
    count = stats.get("iter_count")
    x, lam_g, lam_x = (found[key].full().ravel().tolist() for key in ("x", "lam_g", "lam_x"))
    status = str(stats.get("return_status"))
    iterations = None if count is None or solver in NOT_COUNTED else int(count)
    return Answer("returned", claim(stats), status, x, lam_g, lam_x, iterations, min(times))


def _serve(solver: str, repeat: int, pipe: Connection) -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    solve(
        solver, "hs", "HS35", (0.5, 0.5, 0.5), 1
    )  # loads libraries, which no answer shall pay for
    pipe.send("ready")
    while True:
        group, name, x0 = pipe.recv()
        pipe.send(solve(solver, group, name, x0, repeat))


class Worker:
    """A process that solves with one solver, started anew after a crash or a time-out.

    The limit is in seconds of the clock, without the start of the process: SLEQP's threads spin
    between solves, so that the processor time of a process says nothing of a solve.
    """

    def __init__(self, solver: str, limit: float, repeat: int = 1) -> None:
        self._solver, self._limit, self._repeat = solver, limit, repeat
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stop()

    def solve(self, case: Case) -> Answer:
        """The answer, or that there is none within the limit."""
        if self._process is None:
            self._start()
        try:
            self._pipe.send((case.group, case.name, case.x0))
            if self._pipe.poll(self._limit * self._repeat):
                return self._pipe.recv()
        except (EOFError, ConnectionError):
            self._stop()
            return Answer("crashed")
        self._stop()
        return Answer("timeout")

    def _start(self) -> None:
        context = get_context("spawn")
        self._pipe, child = context.Pipe()
        arguments = (self._solver, self._repeat, child)
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
