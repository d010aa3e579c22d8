"""Hanging chains of rigid links, over the ground or around a disc."""

from __future__ import annotations

from math import inf
from typing import Any

import casadi as ca
import numpy as np

from problems.control_base import Program


def _links(N: int, length: float) -> tuple[Program, Any]:
    """The least potential energy of N rigid links between (0, 0) and (2, 0): program and nodes.

    Source: the chain of links of equal length (R. J. Vanderbei, catenary.mod of his collection in
    AMPL; the hanging chain of COPS 3.0, E. D. Dolan, J. J. Moré, T. S. Munson, Argonne National
    Laboratory ANL/MCS-TM-273, 2004, is its limit). Start: a plumb line from the first end, its last
    node far from the other.
    """
    program = Program()
    t = np.linspace(0.0, 1.0, N + 1)
    nodes = program.variable("nodes", 2, N + 1, start=np.array([0.0 * t, -t]))
    program.rows(ca.sum1((nodes[:, 1:] - nodes[:, :-1]) ** 2).T - (length / N) ** 2)
    program.rows(nodes[:, 0])
    program.rows(nodes[:, N] - ca.DM([2.0, 0.0]))
    heights = nodes[1, :]
    program.cost(ca.sum2(heights[:-1] + heights[1:]) / (2 * N))
    return program, nodes


def chain_ground(N: int) -> dict[str, Any]:
    """A chain of length 3 over the ground y ≥ −0.8, see :func:`_links`."""
    program, nodes = _links(N, 3.0)
    program.rows(nodes[1, :], -0.8, inf)
    return program.build()


def chain_disc(N: int) -> dict[str, Any]:
    """A chain of length 4 around a disc of radius 0.3 at (1, −1), see :func:`_links`."""
    program, nodes = _links(N, 4.0)
    program.rows(ca.sum1((nodes - ca.DM([1.0, -1.0])) ** 2).T, 0.3**2, inf)
    return program.build()
