"""CasADi's calling convention of a solver, and callbacks in it."""

from __future__ import annotations

import casadi as ca

INPUTS = ("x0", "p", "lbx", "ubx", "lbg", "ubg", "lam_x0", "lam_g0")
OUTPUTS = ("x", "f", "g", "lam_x", "lam_g", "lam_p")
STARTS = ("x0", "lam_x0", "lam_g0")
"""A solution does not depend on them while they lead to it."""


class Columns(ca.Callback):  # type: ignore[misc]
    """A callback from columns to columns with directional derivatives, which a subclass gives."""

    def __init__(self, name: str, rows_in: tuple[int, ...], rows_out: tuple[int, ...]) -> None:
        ca.Callback.__init__(self)
        self._rows_in, self._rows_out = rows_in, rows_out
        self.construct(name, {})

    def get_n_in(self) -> int:
        """Number of inputs."""
        return len(self._rows_in)

    def get_n_out(self) -> int:
        """Number of outputs."""
        return len(self._rows_out)

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """A dense column."""
        return ca.Sparsity.dense(self._rows_in[i], 1)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        """A dense column."""
        return ca.Sparsity.dense(self._rows_out[i], 1)

    def has_forward(self, _directions: int) -> bool:
        """There is one."""
        return True

    def has_reverse(self, _directions: int) -> bool:
        """There is one."""
        return True

    def get_jac_sparsity(self, output: int, wrt: int, _symmetric: bool) -> ca.Sparsity:
        """Nothing: asked for only where the output does not depend on the input."""
        return ca.Sparsity(self._rows_out[output], self._rows_in[wrt])
