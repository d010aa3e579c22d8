"""Figures of a closed loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array, known
from casadi_hybrid.control.solution import drawing as common
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.output.plotting import PALETTE, figure, legend_below

# Styles by word of the legend, in addition to the entry's colour.
_LOOKS: dict[str, dict[str, Any]] = {
    "true": {},
    # Behind the curves and paler, since they may be many.
    "measured": {"linestyle": "", "marker": ".", "markersize": 3.5, "alpha": 0.5, "zorder": 1.5},
    "estimate": {"color": PALETTE[7], "linestyle": ":", "linewidth": 1.3},
    "limit": common.LIMIT,
}


def draw_run(run: Any, names: Sequence[str] | None, title: str) -> Any:
    """Return the figure of a run; see :meth:`Run.plot`."""
    tables = {name: table for table in reversed(run.tables) for name in table}
    chosen = [*run.states, *run.controls] if names is None else common.listed(names)
    for name in chosen:
        known(name, tables, "trajectory")
    if not chosen:
        raise InputError("names is empty; name at least one trajectory")
    fig, axes = common.stacked_axes(len(chosen), common.labelled("time", run.time_unit), height=1.7)
    for ax, name in zip(axes, chosen, strict=True):
        _panel(ax, run, name, tables[name])
    drawn = {line.get_label() for ax in axes for line in ax.lines}
    kinds = [kind for kind in _LOOKS if f"_{kind}" in drawn]
    for kind in kinds:
        look = common.entry_style(0) | {"color": common.GREY, "label": kind} | _LOOKS[kind]
        axes[0].plot([], [], **look)
    if len(kinds) > 1:
        legend_below(fig, axes[0], columns=5)
    if title or run.stopped:
        fig.suptitle(title or run.stopped, fontsize=10)
    return fig


def draw_shares(columns: Mapping[str, Array], title: str) -> Any:
    """Return the figure of a summary; see :meth:`Summary.plot`."""
    fig, axes = figure(1, len(columns), height=2.8, sharey=True)
    for ax, (label, values) in zip(axes[0], columns.items(), strict=True):
        finite = np.sort(values[np.isfinite(values)])
        # Runs without the number keep the curve below one: they are not hidden.
        share = np.arange(1, finite.size + 1) / values.size
        ax.step(finite, share, where="post", color=PALETTE[0], marker="o", markersize=3.0)
        ax.set_xlabel(label)
        if finite.size and not finite.any():
            ax.set_xlim(-0.05, 1.0)
        ax.set_ylim(0.0, 1.05)
        axes[0, 0].set_ylabel(f"share of {values.size} runs")
    if title:
        fig.suptitle(title, fontsize=10)
    return fig


def _panel(ax: Any, run: Any, name: str, table: Any) -> None:
    """Draw the true, measured and estimated values of a quantity, each entry in its colour."""
    held, true = table is run.controls, run.parameters if table is run.estimates else table
    sources = {"true": true, "measured": run.measured}
    if table is run.states or table is run.estimates:
        sources["estimate"] = run.estimates
    for kind, source in sources.items():
        rows, times = source.rows(name) if name in source else np.zeros((0, 0)), source.times
        if held and kind == "true":  # the last step lasts until the end of the run
            rows, times = np.hstack((rows, rows[:, -1:])), run.times
        look = {"drawstyle": "steps-post" if held else "default", "label": f"_{kind}"}
        curves = []
        for i, row in enumerate(rows):
            curves += ax.plot(times, row, **common.entry_style(i) | look | _LOOKS[kind])
        if kind == "true":
            common.number_entries(ax, curves)
    ax.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4))
    common.name_axis(ax, name, run.unit(name))
    if name in run.limits:
        _limits(ax, run.limits[name], table.rows(name), run.times if held else table.times)


def _limits(ax: Any, limit: Any, values: Any, times: Array) -> None:
    """Draw limits that are near the curve; a far one would make it flat."""
    least, most = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    # A constant curve has no range of its own: its size stands in.
    room = 1.5 * max(most - least, 1e-9 * max(abs(most), abs(least), 1.0))
    pairs = np.stack((limit.lower, limit.upper), axis=1)
    for bound in np.unique(np.concatenate(pairs), axis=0):
        near = (least - room <= bound) & (bound <= most + room)
        if near.any():
            held = np.broadcast_to(np.where(near, bound, np.nan)[: times.size], times.shape)
            look = common.limit_style((pairs == bound).all(axis=2).any(axis=1))
            ax.step(times, held, where="post", **look, label="_limit")
