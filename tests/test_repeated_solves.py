"""What is kept from one solve to the next, bounds and buffers, never shows in an answer."""

import casadi as ca
import numpy as np
import pytest
from watched import PythonFunction

from casadi_hybrid import Problem, Solver
from casadi_hybrid.problem.functions import Fused, Packing


def _nlp():
    x = ca.SX.sym("x", 3)
    return {"x": x, "f": ca.sumsqr(x - ca.DM([1, 2, 3])), "g": ca.vertcat(ca.sum1(x), x[0] * x[1])}


def test_bounds_of_a_result_are_shared_by_equal_calls_and_cannot_be_written_to():
    solver, lower = Solver(Problem.from_nlp(_nlp())), np.zeros(3)
    first = solver.solve(0.1, lbx=lower, ubg=5)
    lower[0] = 0.5  # the caller's own array
    second = solver.solve(0.1, lbx=np.zeros(3), ubg=5)
    third = solver.solve(0.1, lbx=lower, ubg=5)
    assert second.bounds is first.bounds
    assert third.bounds.lbx[0] == 0.5
    assert first.bounds.lbx[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        first.bounds.lbx[0] = 7.0
    lower[0] = 0.6
    assert third.bounds.lbx[0] == 0.5


def test_a_function_called_within_its_own_call_has_buffers_of_its_own():
    def square(at):
        """At 5 it evaluates the function that it is part of at 1."""
        return fused(np.array([1.0, 7.0]))[0] if at == 5.0 else at**2

    inner, x = PythonFunction(square), ca.MX.sym("x", 2)
    outer = ca.Function("outer", [x], [inner(x[0]) + 10 * x[1]], ["x"], ["f"])

    class Names:
        @staticmethod
        def packing(function):
            return Packing(function)

    fused = Fused(outer, Names())
    # 1 + 10·7 from within, and the outer call's own 10·3.
    assert fused(np.array([5.0, 3.0])).tolist() == [101.0]
    assert fused(np.array([2.0, 1.0])).tolist() == [14.0]
