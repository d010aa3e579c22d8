"""A function of Python's in a problem, which does what a test asks for."""

import casadi as ca


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
