"""The Dolan–Moré profile, the times of every program, and time against horizon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from casadi_hybrid.utils.output.plotting import figure, legend_below, line_style
from warm.measure import Call
from warm.peers import OURS
from warm.summary import Summary, best, exponent
from warm.table import label

_FURTHEST = 1000.0
"""Right end of the profile at most."""


def profile(calls: Sequence[Call], summary: Summary, clock: str = "seconds") -> Figure:
    """Share of steps that a solver does within τ times the fastest (Dolan and Moré, 2002).

    Every step of every program counts once; each solver has its best setting on a program; a step
    that is not solved is never done.
    """
    stars = {(p, cell.setting): peer for p, c in summary.items() for peer, cell in best(c).items()}
    times: dict[Any, dict[str, float]] = {}
    for call in calls:
        peer = stars.get((call.place, call.setting))
        if peer is not None:
            seconds = getattr(call, clock) if call.solved else np.inf
            times.setdefault(call.instant, {})[peer] = seconds
    least = {key: min(row.values()) for key, row in times.items()}
    peers = list(dict.fromkeys(peer for row in times.values() for peer in row))
    fig, axes = figure(1, 1, height=3.4)
    ax = axes[0, 0]
    furthest = 10.0
    for i, peer in enumerate(peers):
        own = [row.get(peer, np.inf) / least[k] for k, row in times.items() if least[k] < np.inf]
        done = np.sort([ratio for ratio in own if ratio < np.inf])
        share = np.arange(1, done.size + 1) / max(1, len(own))
        across = np.concatenate(([1.0], done, [_FURTHEST]))
        up = np.concatenate(([0.0], share, [share[-1] if done.size else 0.0]))
        ax.step(across, up, where="post", label=peer, **line_style(i, across.size))
        furthest = max(furthest, float(done[-1]) if done.size else 0.0)
    ax.set_xscale("log")
    ax.set_xlim(1.0, min(_FURTHEST, 1.1 * furthest))
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel(r"within $\tau$ times the fastest solver of the step")
    ax.set_ylabel("share of steps solved")
    legend_below(fig, ax, columns=6)
    return fig


def spreads(summary: Summary) -> Figure:
    """The median of each solver's best setting, with a line to p99.9, program by program."""
    places = list(summary)
    peers = list(dict.fromkeys(peer for cells in summary.values() for peer in best(cells)))
    fig, axes = figure(1, 1, height=3.4)
    ax = axes[0, 0]
    for i, peer in enumerate(peers):
        style = line_style(i, 1)
        shift = 0.8 * ((i + 0.5) / len(peers) - 0.5)
        found = [best(summary[place]).get(peer) for place in places]
        rows = [(k + shift, cell) for k, cell in enumerate(found) if cell and cell.solved]
        if not rows:
            continue
        across = [x for x, _ in rows]
        middle = 1e3 * np.array([cell.median for _, cell in rows])
        above = np.maximum(0.0, 1e3 * np.array([cell.p999 for _, cell in rows]) - middle)
        ax.errorbar(
            across, middle, yerr=np.stack((np.zeros_like(middle), above)), label=peer,
            color=style["color"], marker=style["marker"], markersize=5, linestyle="",
            elinewidth=1.2, capsize=2,
        )  # fmt: skip
    ax.set_yscale("log")
    ax.set_xticks(range(len(places)), [label(place).replace(" ", "\n") for place in places])
    ax.grid(visible=False, axis="x")
    ax.set_ylabel("one call (ms): median, line to p99.9")
    legend_below(fig, ax, columns=6)
    return fig


def horizons(summary: Summary) -> Figure:
    """Time an iteration and iterations against N, a row for each family."""
    families = list(dict.fromkeys(place[0] for place in summary))
    fig, axes = figure(len(families), 2, height=2.6, sharex="row")
    names = list(dict.fromkeys(name for cells in summary.values() for name in cells))
    for row, family in zip(axes, families, strict=True):
        sizes = np.array([place[1] for place in summary if place[0] == family])
        for i, name in enumerate(names):
            cells = [summary[family, N].get(name) for N in sizes]
            counts = np.array([cell.iterations if cell else np.nan for cell in cells])
            times = np.array([cell.median if cell else np.nan for cell in cells])
            each = 1e3 * times / np.maximum(counts, 1.0)
            style = {**line_style(i, sizes.size), "markevery": 1}
            row[0].plot(sizes, each, label=name, **style)
            row[1].plot(sizes, counts, **style)
            if name == OURS:
                fit = exponent(list(sizes), list(each))
                row[0].set_title(f"{family}; ours grows as $N^{{{fit:.2f}}}$", fontsize=10)
        row[0].set_yscale("log")
        row[0].set_ylabel("ms an iteration")
        row[1].set_ylabel("iterations")
        row[1].set_ylim(bottom=0)
        for ax in row:
            ax.set_xscale("log")
            ax.set_xlabel("intervals $N$")
    legend_below(fig, axes[0, 0], columns=3)
    return fig
