"""Figures of a closed loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.reading.drawing import labelled, listed, stacked_axes
from casadi_hybrid.control.signals import Array, known
from casadi_hybrid.plotting import DASHES, PALETTE, figure, legend_below


def draw_run(run: Any, names: Sequence[str] | None, title: str) -> Any:
    """Return the figure of a run; see :meth:`Run.plot`."""
    tables = {name: table for table in reversed(run.tables) for name in table}
    chosen = [*run.states, *run.controls] if names is None else listed(names)
    for name in chosen:
        known(name, tables, "trajectory")
    if not chosen:
        raise InputError("names is empty; name at least one trajectory")
    fig, axes = stacked_axes(len(chosen), labelled("time", run.time_unit), height=1.7)
    for ax, name in zip(axes, chosen, strict=True):
        _panel(ax, run, name, tables[name])
    if len({label for ax in axes for label in ax.get_legend_handles_labels()[1]}) > 1:
        legend_below(fig, *axes, columns=5)
    if title or run.stopped:
        fig.suptitle(title or run.stopped, fontsize=10)
    return fig


def draw_shares(columns: Mapping[str, Array], title: str) -> Any:
    """Return the figure of a summary; see :meth:`Summary.plot`."""
    fig, axes = figure(1, len(columns), height=2.8, sharey=True)
    for ax, (label, values) in zip(axes[0], columns.items(), strict=True):
        kept = np.sort(values[np.isfinite(values)])
        # Runs without the number keep the curve below one: they are not hidden.
        share = np.arange(1, kept.size + 1) / values.size
        ax.step(kept, share, where="post", color=PALETTE[0], marker="o", markersize=3.0)
        ax.set_xlabel(label)
        if kept.size and not kept.any():
            ax.set_xlim(-0.05, 1.0)
        ax.set_ylim(0.0, 1.05)
        axes[0, 0].set_ylabel(f"share of {values.size} runs")
    if title:
        fig.suptitle(title, fontsize=10)
    return fig


def _panel(ax: Any, run: Any, name: str, table: Any) -> None:
    values = table.rows(name)
    several = values.shape[0] > 1
    for i, row in enumerate(values):
        tail = f" [{i}]" if several else ""
        style = {"color": PALETTE[i % len(PALETTE)], "linestyle": DASHES[i % len(DASHES)]}
        seen = style["color"] if several else PALETTE[5]
        if table is run.controls:
            # The last step lasts until the end of the run.
            held = np.append(row, row[-1:])
            style["color"] = PALETTE[(i + 3) % len(PALETTE)]
            ax.step(run.times[: held.size], held, where="post", label=f"applied{tail}", **style)
        elif table is not run.estimates or name in run.parameters:
            true = run.parameters if table is run.estimates else table
            ax.plot(true.times, true.rows(name)[i], label=f"true{tail}", **style)
        if name in run.measured:
            ax.plot(run.measured.times, run.measured.rows(name)[i], linestyle="none", marker=".",
                    markersize=3.5, color=seen, zorder=1.5, label="measured")  # fmt: skip
        if name in run.estimates and (table is run.states or table is run.estimates):
            ax.plot(run.estimates.times, run.estimates.rows(name)[i], color=PALETTE[7],
                    linestyle=":", linewidth=1.3, label="estimate")  # fmt: skip
    ax.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4))
    ax.set_ylabel(labelled(name, run.unit(name)))
    if name in run.limits:
        _limits(ax, run.limits[name], values, table.times)


def _limits(ax: Any, limit: Any, values: Any, times: Array) -> None:
    """Draw limits that are near the curve; a far one would make it flat."""
    least, most = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    room = 1.5 * max(most - least, 1e-9 * max(abs(most), abs(least), 1.0))
    for bound in np.unique(np.vstack((limit.lower, limit.upper)), axis=0):
        near = (least - room <= bound) & (bound <= most + room)
        if near.any():
            held = np.broadcast_to(np.where(near, bound, np.nan)[: times.size], times.shape)
            ax.step(times, held, where="post", color=PALETTE[6], linestyle="--", linewidth=1.0,
                    label="limit")  # fmt: skip
