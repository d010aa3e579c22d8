"""AC optimal power flow in polar form, read from a grid of MATPOWER's format as PGLib has them.

    min Σ c₂ P² + c₁ P + c₀   subject to, in per unit,
    the balance of active and reactive power at every bus,
    |S| ≤ rate A at both ends of every branch, angmin ≤ θ_f − θ_t ≤ angmax,
    bounds of |V|, P and Q; θ = 0 at the reference bus.

Sources: R. D. Zimmerman, C. E. Murillo-Sánchez, R. J. Thomas, MATPOWER, IEEE Transactions on Power
Systems 26, 2011 (format and branch model); S. Babaeinejadsarookolaee et al., The Power Grid Library
for Benchmarking AC Optimal Power Flow Algorithms, arXiv:1908.02788 (problem, and the costs that
``BASELINE.md`` publishes beside the grids).
"""

from __future__ import annotations

import re
from math import inf, pi
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from problems.control_base import Program

Matrix = NDArray[np.float64]
MATRICES = ("bus", "gen", "branch", "gencost")


def read_case(path: Path) -> tuple[float, dict[str, Matrix]]:
    """Return baseMVA and the matrices bus, gen, branch and gencost of a file.

    Raises:
        ValueError: for a file that lacks one of them.
    """
    text = re.sub(r"%.*", "", path.read_text(encoding="utf-8"))
    base = re.search(r"mpc\.baseMVA\s*=\s*([\d.eE+-]+)", text)
    blocks = dict(re.findall(r"mpc\.(\w+)\s*=\s*\[(.*?)\]", text, re.DOTALL))
    missing = [name for name in MATRICES if name not in blocks]
    if base is None or missing:
        raise ValueError(f"{path} has no {', '.join(missing) or 'baseMVA'}")
    matrices = {}
    for name in MATRICES:
        rows = [row.split() for row in re.split(r"[;\n]", blocks[name]) if row.strip()]
        width = max(map(len, rows))
        matrices[name] = np.array([[*map(float, row), *[0.0] * (width - len(row))] for row in rows])
    return float(base[1]), matrices


def read_grid(path: Path) -> dict[str, Any]:
    """Return the problem of a file as ``nlpsol`` takes it, with its bounds and a flat start.

    Raises:
        ValueError: for costs that are not polynomials, or a file that lacks a matrix.
    """
    base, data = read_case(Path(path))
    bus = data["bus"][data["bus"][:, 1] != 4]  # isolated ones
    on = data["gen"][:, 7] > 0
    gen, cost = data["gen"][on], data["gencost"][: len(on)][on]
    branch = data["branch"][data["branch"][:, 10] > 0]
    if (cost[:, 0] != 2).any():
        raise ValueError(f"{path} has costs that are not polynomials")
    row = {number: k for k, number in enumerate(bus[:, 0])}
    start, end = ([row[number] for number in branch[:, k]] for k in (0, 1))

    program = Program()
    fixed = np.where(bus[:, 1] == 3, 0.0, inf)
    theta = program.variable("theta", len(bus), lower=-fixed, upper=fixed)
    V = program.variable("V", len(bus), lower=bus[:, 12], upper=bus[:, 11], start=1.0)
    P = _power(program, "P", gen[:, 9] / base, gen[:, 8] / base)
    Q = _power(program, "Q", gen[:, 4] / base, gen[:, 3] / base)

    flows = _flows(branch, V[start], V[end], theta[start] - theta[end])
    at_start, at_end = _incidence(start, len(bus)), _incidence(end, len(bus))
    at_bus = _incidence([row[number] for number in gen[:, 0]], len(bus))
    shunt, demand = bus[:, 4:6] / base, bus[:, 2:4] / base
    for k, (injected, sign) in enumerate(((P, -1.0), (Q, 1.0))):
        out = ca.mtimes(at_start, flows[k]) + ca.mtimes(at_end, flows[2 + k])
        taken = demand[:, k] - sign * shunt[:, k] * V**2
        program.rows(ca.mtimes(at_bus, injected) - taken - out)

    limited = np.flatnonzero(branch[:, 5] > 0).tolist()
    for active, reactive in (flows[:2], flows[2:]):
        limit = (branch[limited, 5] / base) ** 2
        program.rows(active[limited] ** 2 + reactive[limited] ** 2, -inf, limit)
    low, high = np.radians(branch[:, 11]), np.radians(branch[:, 12])
    free = (branch[:, 11:13] == 0).all(axis=1)
    low, high = (
        np.where((low <= -2 * pi) | free, -inf, low),
        np.where((high >= 2 * pi) | free, inf, high),
    )
    between = np.flatnonzero(np.isfinite(low) | np.isfinite(high)).tolist()
    program.rows((theta[start] - theta[end])[between], low[between], high[between])
    program.cost(_cost(cost, base * P))
    return program.build()


def _power(program: Program, name: str, low: Matrix, high: Matrix) -> Any:
    middle = np.nan_to_num((low + high) / 2, nan=0.0, posinf=0.0, neginf=0.0)
    return program.variable(name, low.size, lower=low, upper=high, start=middle)


def _flows(branch: Matrix, Vf: Any, Vt: Any, angle: Any) -> tuple[Any, Any, Any, Any]:
    """Active and reactive power into every branch at its start, then at its end."""
    admittance = 1 / (branch[:, 2] + 1j * branch[:, 3])
    g, b = admittance.real, admittance.imag
    charging = b + branch[:, 4] / 2
    ratio = np.where(branch[:, 8] == 0, 1.0, branch[:, 8])
    delta = angle - np.radians(branch[:, 9])
    c, s = ca.cos(delta), ca.sin(delta)
    VfVt, Vf2, Vt2 = Vf * Vt / ratio, Vf**2 / ratio**2, Vt**2
    return (
        g * Vf2 - VfVt * (g * c + b * s),
        -charging * Vf2 + VfVt * (b * c - g * s),
        g * Vt2 - VfVt * (g * c - b * s),
        -charging * Vt2 + VfVt * (b * c + g * s),
    )


def _incidence(rows: list[int], size: int) -> Any:
    """The 0-1 matrix that adds the entries of a column into these rows."""
    columns = list(range(len(rows)))
    return ca.DM(ca.Sparsity.triplet(size, len(rows), rows, columns), 1.0)


def _cost(cost: Matrix, power: Any) -> Any:
    """Σ of the polynomials; a row has the number of coefficients, the highest first."""
    total: Any = 0
    for k, (count, *coefficients) in enumerate(cost[:, 3:]):
        value: Any = 0
        for c in coefficients[: int(count)]:
            value = value * power[k] + c
        total += value
    return total


def published_costs(folder: Path) -> dict[str, float]:
    """Costs in $/h by name of the grid, from PGLib's ``BASELINE.md`` where the folder has it."""
    path = folder / "BASELINE.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    cells = [line.split("|") for line in text.splitlines() if line.startswith("| pglib")]
    found = {row[1].strip(): row[5].strip() for row in cells}
    return {name: float(cost) for name, cost in found.items() if re.fullmatch(r"[\d.e+-]+", cost)}
