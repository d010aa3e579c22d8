"""Predicted trajectory (plan): a point of the program with its times, moved on in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.control.joint.joint import JointSolution
from casadi_hybrid.control.model.signals import Array, between
from casadi_hybrid.control.mpc.problem import Problem
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.solution.solution import Solution
from casadi_hybrid.control.transcription.program import Block, Program, common
from casadi_hybrid.control.transcription.terms import SAME
from casadi_hybrid.solver.nlpsol.stats import return_status
from casadi_hybrid.utils.status import PointStatus, StopReason


class Ended(NamedTuple):
    """Ending of a solve: attributes of the solver's result."""

    success: bool
    stop: StopReason
    point: PointStatus
    iterations: int
    engine: str
    kernel: str


@dataclass(frozen=True)
class Plan:
    """Predicted trajectory for one measurement, in the program's scaled unknowns."""

    problem: Problem
    program: Program
    x: Array
    lam_x: Array
    lam_g: Array
    time: float  # of the start
    objective: float = np.nan  # NaN without a solve, as ended is None
    ended: Any = None

    @cached_property
    def ocp(self) -> OptimalControl:
        """The problem, of scenarios the nominal one."""
        return self.problem.nominal

    @cached_property
    def duration(self) -> float:
        """Duration of the horizon."""
        block = self.program.variables.get("duration")
        return self.ocp.length if block is None else float(block.read(self.x)[0, 0])

    @cached_property
    def times(self) -> Array:
        """Times of the grid points."""
        return np.asarray(self.time + self.duration * self.ocp.fractions)

    def solution(self) -> Solution | JointSolution:
        """Return the plan by name."""
        point = {"x": self.x, "lam_x": self.lam_x, "lam_g": self.lam_g, "f": self.objective}
        stats, end = {}, self.ended
        if end is not None:
            stats = {key: getattr(end, key) for key in ("success", "engine", "kernel")}
            stats |= {"iter_count": end.iterations, "return_status": return_status(end)}
            stats |= {"stop_reason": end.stop.name, "point_status": end.point.name}
        return self.problem.solution(self.program, point, stats)

    def begun(self, x: Array, state: Array) -> Array:
        """Return a point of the program with these states at the start of every part."""
        begin, slices = x.copy(), self.ocp.model.places("state")
        for prefix in self.problem.prefixed:
            for name, where in slices.items():
                block = self.program.variables[prefix + name]
                begin[block.where[: block.shape[0]]] = state[where] / block.scale[:, 0]
        return begin

    def state(self, time: float) -> Array:
        """Return all states with which the plan, moved on to a later time, begins."""
        x, prefix = self.moved(time)["x0"], next(iter(self.problem.prefixed))
        blocks = (self.program.variables[prefix + n] for n in self.ocp.model.signals["state"])
        return np.concatenate([block.read(x)[:, 0] for block in blocks])

    def covers(self, time: float) -> bool:
        """True if the plan has a control for a time."""
        times = self.times
        slack = SAME * (times[1] - times[0])
        return bool(times[0] - slack <= time < times[-1] - slack)

    def control(self, time: float) -> Array | None:
        """Return all controls at a time, one below the other; None after the end."""
        if not self.covers(time):
            return None
        times = self.times
        # A time just before a grid point, by rounding, counts as at it.
        k = int(times.searchsorted(time + SAME * (times[1] - times[0]), side="right")) - 1
        # The nominal scenario's, which all share as long as controls are common.
        rows, prefix = [], next(iter(self.problem.prefixed))
        for name, signal in self.ocp.model.signals["control"].items():
            values = self.program.variables[prefix + name].read(self.x)
            if signal.linear:
                rows.append(np.array([np.interp(time, times, row) for row in values]))
            else:
                rows.append(values[:, k])
        return np.concatenate(rows)

    def moved(self, time: float) -> dict[str, Array]:
        """Return ``x0, lam_x0, lam_g0`` of the same horizon from a later time on."""
        passed, ocp = time - self.time, self.ocp
        start = {"x0": self.x, "lam_x0": self.lam_x, "lam_g0": self.lam_g}
        step = self.duration * float(ocp.fractions[1])
        if abs(passed) <= SAME * step:
            return start
        whole = round(passed / step)
        # On an even grid of a fixed duration whole intervals are an exact shift.
        even = ocp.free_duration is None and ocp.even
        if even and whole >= 1 and abs(passed - whole * step) <= SAME * step:
            shift = min(whole, ocp.intervals)
            return self.program.shifted(self.x, self.lam_x, self.lam_g, shift)
        return self._resampled(time)

    def _resampled(self, time: float) -> dict[str, Array]:
        program, free = self.program, self.ocp.free_duration
        length = self.ocp.length
        if free is not None:
            # A free duration is shortened by the time that has passed.
            length = max(free.lower, min(free.upper, self.duration - (time - self.time)))
        # Beyond the end of the plan np.interp and clip keep its last values.
        old, new = self.times, time + length * self.ocp.fractions
        N = self.ocp.intervals

        def read(stacked: Array, blocks: Mapping[str, Block], smooth: bool) -> Array:
            moved = stacked.copy()
            for block in blocks.values():
                stride, columns = block.stride, block.shape[1]
                if stride == 0 or columns == 1 or columns not in (N + 1, N * stride):
                    continue
                values = stacked[block.where].reshape(block.shape, order="F")
                if columns == N and stride == 1:  # one for each interval
                    # A held value is that of the old interval around the middle of the new one.
                    k = np.searchsorted(old, (new[:-1] + new[1:]) / 2, side="right") - 1
                    values = values[:, np.clip(k, 0, old.size - 2)]
                else:
                    source, target = old, new
                    if stride > 1:
                        taus = self.ocp.method.nodes[:stride]
                        source, target = between(old, taus), between(new, taus)
                    if smooth:
                        values = np.stack([np.interp(target, source, row) for row in values])
                    else:
                        # Multipliers jump with the active set: take the nearest point's.
                        edges = (source[:-1] + source[1:]) / 2
                        values = values[:, np.searchsorted(edges, target, side="right")]
                moved[block.where] = values.ravel(order="F")
            return moved

        start = {
            "x0": read(self.x, program.variables, True),
            "lam_x0": read(self.lam_x, program.variables, False),
            "lam_g0": read(self.lam_g, program.constraints, False),
        }
        if free is not None:
            block = program.variables["duration"]
            start["x0"][block.where] = length / block.scale.ravel()
        return start


def initial_plan(
    problem: Problem, x: Any = None, time: float = 0.0, parameters: Mapping[str, Any] | None = None
) -> Plan:
    """Return the start of a solve without a plan, as a plan."""
    program = problem.numbers(x, time=time, **(parameters or {}))
    return Plan(problem, program, program.x0, np.zeros(program.n), np.zeros(program.m), time)


def transferred(plan: Plan, problem: Problem) -> Plan:
    """Return the plan as one of the softened problem, or back, by the names that both have."""
    if plan.problem is problem:
        return plan
    source, target = plan.program, problem.program
    x, lam_x, lam_g = target.x0.copy(), np.zeros(target.n), np.zeros(target.m)
    # Violations and the rows of softened limits have no twin: they start at x0 and zero.
    of_x, into_x = common(source.variables, target.variables)
    of_g, into_g = common(source.constraints, target.constraints)
    x[into_x], lam_x[into_x], lam_g[into_g] = plan.x[of_x], plan.lam_x[of_x], plan.lam_g[of_g]
    return Plan(problem, target, x, lam_x, lam_g, plan.time)
