"""What a controller's step comes to: by its problem, or by the softened one."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from casadi_hybrid.control.predictive import step as words
from casadi_hybrid.control.predictive.limits import Limits
from casadi_hybrid.control.predictive.problem import Problem, prices, said, softened, violated
from casadi_hybrid.control.predictive.search import Found, Question, Search
from casadi_hybrid.control.terms import Soft


class Answers:
    """Solves a problem, and the softened one where limits cannot be kept.

    The softened one is first where the state is outside its limits, or where limits could not be
    kept a step before, for to find that out again may take all the time there is. What exceeds no
    limit there is where the solve of the problem itself begins.
    """

    def __init__(self, ocp: Problem, soft: Soft | None, tolerance: float) -> None:
        self.limits = Limits(ocp.nominal, ocp.prefixed)
        self.search = Search(ocp, tolerance, self.limits)
        self._soft = soft
        self.reset()

    def reset(self) -> None:
        """Forget what the steps before have come to."""
        self._strained = False

    @cached_property
    def aid(self) -> Search | None:
        """For the softened problem, made when first asked for; None where there is none."""
        if self._soft is None:
            return None
        other = softened(self.search.problem, self._soft)
        return Search(other, self.search.tolerance, self.limits)

    def to(self, question: Question) -> list[Found]:
        """What the solves of a step come to; the last one's is the answer to its question."""
        relaxed: list[Found] = []
        if self._soft is not None and (question.far or self._strained):
            why = "a step before no plan was found that keeps all limits"
            if question.far:
                far = said(question.far, self.search.problem.nominal)
                why = f"the state is outside its limits ({far})"
            relaxed = [self._softened(question, why)]
            over = relaxed[0].violated.keys() - prices(self.search.problem)
            if over or question.far:
                if relaxed[0].status:
                    self._strained = not over <= question.far.keys()
                return relaxed
        return self._kept(question, relaxed)

    def _kept(self, question: Question, relaxed: list[Found]) -> list[Found]:
        """By a plan that keeps all limits; else the softened answer, which may be there."""
        softly = any(found.status for found in relaxed)
        near = relaxed[0].plan if softly else question.before
        found = self.search.run(replace(question, before=near))
        # Where there is no feasible point one within the tolerance is any, the best of none.
        given_up = found.infeasible and self._soft is not None
        if found.usable and not given_up:
            self._strained = False
            status = words.SOLVED if found.solved else words.FEASIBLE
            return [*relaxed, replace(found, status=status)]
        # A few iterations say nothing. Where neither problem has come to a plan they take turns.
        in_vain = bool(relaxed) and not softly
        self._strained = not in_vain and (found.infeasible or question.iterations is None)
        if given_up and not relaxed:
            relaxed = [self._softened(question, found.reason)]
        if any(one.status for one in relaxed):
            return [found, *relaxed]
        status = words.FEASIBLE if found.usable else ""
        reason = relaxed[0].reason if relaxed else found.reason
        return [*relaxed, replace(found, status=status, reason=reason)]

    def _softened(self, question: Question, why: str) -> Found:
        """By a plan that may exceed limits, and says by how much."""
        aid = self.aid
        assert aid is not None
        program = aid.numbers(question.state, question.at, question.parameters)
        found = aid.run(replace(question, program=program))
        why += f"; the softened problem: {found.reason}" if found.reason else ""
        if not found.usable or found.plan is None:
            return replace(found, reason=why)
        over = violated(aid.problem, program, found.plan.x, aid.tolerance)
        why += f"; limits exceeded: {said(over, aid.problem.nominal)}" if over else ""
        return replace(found, status=words.SOFTENED, reason=why, violated=over)
