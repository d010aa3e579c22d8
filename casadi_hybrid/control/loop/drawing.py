"""Figures of a closed loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.signals import Array, known
from casadi_hybrid.plotting import DASHES, PALETTE, figure

LABELS = ("true", "estimate", "measured", "applied", "limit")
"""Order of the legend."""
ACROSS = 4
"""With more panels than this they stand in two columns."""


def draw_run(run: Any, names: Sequence[str] | None, title: str) -> Any:
    """Return the figure of a run; see :meth:`Run.plot`."""
    tables = {name: table for table in (run.outputs, run.controls, run.states) for name in table}
    if isinstance(names, str):
        raise InputError(f"names must be a list of names, got the text {names!r}")
    chosen = [*run.states, *run.controls] if names is None else list(names)
    for name in chosen:
        known(name, tables, "trajectory")
    if not chosen:
        raise InputError("names is empty; name at least one trajectory")
    columns = 2 if len(chosen) > ACROSS else 1
    rows = -(-len(chosen) // columns)
    fig, axes = figure(rows, columns, height=1.7, sharex=True)
    for ax, name in zip(axes.T.flat, chosen, strict=False):
        _panel(ax, run, name, tables[name])
    for ax in axes.T.flat[len(chosen) :]:
        ax.set_visible(False)
    for column in axes.T:
        last = [ax for ax in column if ax.get_visible()][-1]
        last.set_xlabel(f"time ({run.time_unit})" if run.time_unit else "time")
        last.tick_params(labelbottom=True)
    fig.align_ylabels(axes)
    _legend(fig, axes)
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
        else:
            ax.plot(run.times, row, label=f"true{tail}", **style)
        if name in run.measured:
            ax.plot(run.measured.times, run.measured.rows(name)[i], linestyle="none", marker=".",
                    markersize=3.5, color=seen, zorder=1.5, label="measured")  # fmt: skip
        if name in run.estimates and table is run.states:
            ax.plot(run.estimates.times, run.estimates.rows(name)[i], color=PALETTE[7],
                    linestyle=":", linewidth=1.3, label="estimate")  # fmt: skip
    ax.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4))
    unit = run.unit(name)
    ax.set_ylabel(f"{name} ({unit})" if unit else name)
    if name in run.limits:
        _limits(ax, run.limits[name], values)


def _limits(ax: Any, limit: Any, values: Any) -> None:
    """Draw limits that are near the curve; a far one would make it flat."""
    least, most = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    room = 1.5 * max(most - least, 1e-9 * max(abs(most), abs(least), 1.0))
    for bound in sorted({*limit.lower.tolist(), *limit.upper.tolist()}):
        if least - room <= bound <= most + room:
            ax.axhline(bound, color=PALETTE[6], linestyle="--", linewidth=1.0, label="limit")


def _legend(fig: Any, axes: Any) -> None:
    """One legend for all panels, each label once, and only those of several meanings."""
    found: dict[str, Any] = {}
    for ax in axes.T.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if len(found) > 1:
        order = sorted(found, key=lambda label: [label.startswith(word) for word in LABELS],
                       reverse=True)  # fmt: skip
        fig.legend([found[label] for label in order], order, loc="outside lower center",
                   ncols=min(5, len(order)), fontsize=9, frameon=False)  # fmt: skip
