"""Functions of Python's in a problem, and processes, which do what a test asks for."""

import subprocess

import casadi as ca
import numpy as np


def ended(words, **options):
    """A process at its end, with what it printed; whether it went well is for the test to ask."""
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


class Watched(ca.Callback):
    """A factor of 1 that runs what it is given whenever it is evaluated."""

    def __init__(self, act):
        ca.Callback.__init__(self)
        self.act = act
        self.construct("watched", {"is_diff_in": [False]})

    def eval(self, arguments):
        self.act()
        return [ca.DM(1.0)]

    def has_jacobian(self):
        return True

    def get_jacobian(self, name, inames, onames, options):
        x, y = ca.SX.sym("x"), ca.SX.sym("y")
        return ca.Function(name, [x, y], [ca.SX.zeros(1, 1)], inames, onames)


class PythonFunction(ca.Callback):
    """A function of one vector, with differences for derivatives."""

    def __init__(self, value, size=1, name="model", *, enable_fd=True):
        ca.Callback.__init__(self)
        self.value, self.size = value, size
        self.construct(name, {"enable_fd": enable_fd})

    def get_sparsity_in(self, i):
        return ca.Sparsity.dense(self.size, 1)

    def eval(self, arguments):
        return [self.value(arguments[0])]


class Distance(ca.Callback):
    """(x, p) → (‖x − p‖², x₀) in Python, with the options of a callback."""

    def __init__(self, options):
        ca.Callback.__init__(self)
        self.construct("distance", options)

    def get_n_in(self):
        return 2

    def get_n_out(self):
        return 2

    def get_name_in(self, i):
        return "xp"[i]

    def get_name_out(self, i):
        return "fg"[i]

    def get_sparsity_in(self, i):
        return ca.Sparsity.dense(2, 1)

    def eval(self, arguments):
        x, p = arguments
        return [ca.sumsqr(x - p), x[0]]


def interrupted_square(calls):
    """The square of a number, interrupted at the sixtieth call; all are listed."""

    def square(value):
        calls.append(value)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return value**2

    return square


class BufferedFunction(PythonFunction):
    """The same by CasADi's other way to call Python."""

    def has_eval_buffer(self):
        return True

    def eval_buffer(self, arguments, results):
        np.frombuffer(results[0])[:] = self.value(np.frombuffer(arguments[0]))
        return 0
