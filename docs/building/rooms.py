"""A drawing of the rooms of the package: a box each, in their order, and what imports what.

The order is that of ``tests/test_rooms.py``, what is imported is read from the modules. An arrow is
left out where a longer way of arrows leads to the same room.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "casadi_hybrid"
IMPORT = re.compile(
    r"^[ ]*(?:from|import) (casadi_hybrid[\w.]*)(?: import (\([^)]*\)|[^\n]*))?", re.MULTILINE
)
WIDTH, BOX, ROW, GAP = 860, 26, 62, 16


def order() -> tuple[str, ...]:
    """The rooms, each after those that it may import."""
    tree = ast.parse((ROOT / "tests" / "test_rooms.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ROOMS":
            return tuple(ast.literal_eval(node.value))
    raise LookupError("tests/test_rooms.py has no ROOMS")


def imported(room: str, rooms: tuple[str, ...]) -> set[str]:
    """The rooms that the modules of a room import."""
    folder = PACKAGE / room
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    names: set[str] = set()
    for file in files:
        text = file.read_text(encoding="utf-8")
        for module, listed in IMPORT.findall(text):
            inside = re.findall(r"\w+", listed) if module == "casadi_hybrid" else []
            names |= {f"casadi_hybrid.{name}" for name in inside} or {module}
    parts = [name.split(".") for name in names]
    ours = {part[1] for part in parts if part[0] == "casadi_hybrid" and len(part) > 1}
    return (ours & set(rooms)) - {room}


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without arrows that a longer way replaces; its keys are in order."""
    reach: dict[str, set[str]] = {}
    for room, direct in graph.items():
        reach[room] = set(direct).union(*(reach[other] for other in direct))
    return {
        room: {o for o in direct if not any(o in reach[other] for other in direct - {o})}
        for room, direct in graph.items()
    }


def drawing() -> str:
    """The text of an SVG."""
    rooms = order()
    graph = {room: imported(room, rooms) for room in rooms}
    levels: dict[str, int] = {}
    for room in rooms:
        levels[room] = 1 + max((levels[other] for other in graph[room]), default=-1)
    arrows = reduced(graph)
    rows = [[r for r in rooms if levels[r] == k] for k in range(max(levels.values()) + 1)]
    places = _places(rows, arrows)
    height = ROW * len(rows) + GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="13" role="img">',
        "<title>The rooms of casadi_hybrid and what they import</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for room, others in arrows.items():
        x, y = places[room]
        for other in sorted(others):
            u, v = places[other]
            top, bottom = y - BOX / 2, v + BOX / 2
            bend = (top - bottom) / 2
            lines.append(
                f'<path d="M{x:.0f} {top:.0f}C{x:.0f} {top - bend:.0f} {u:.0f} '
                f'{bottom + bend:.0f} {u:.0f} {bottom:.0f}" fill="none" stroke="#7f8c99" '
                'stroke-width="1.2"/>'
            )
    for room, (x, y) in places.items():
        wide = _wide(room)
        colour = "#d9edd9" if room == "verify" else "#dde8f3"
        lines.append(
            f'<rect x="{x - wide / 2:.0f}" y="{y - BOX / 2:.0f}" width="{wide}" height="{BOX}" '
            f'rx="4" fill="{colour}" stroke="#4a6f93"/>'
        )
        lines.append(
            f'<text x="{x:.0f}" y="{y + 4.5:.0f}" text-anchor="middle" fill="#111111">{room}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _wide(room: str) -> int:
    return 20 + 8 * len(room)


def _places(rows: list[list[str]], arrows: dict[str, set[str]]) -> dict[str, tuple[float, float]]:
    """The middle of each box: rows from above, each box near the middle of what it imports."""
    places: dict[str, tuple[float, float]] = {}
    for k, unordered in enumerate(rows):
        middle = {
            room: sum(places[o][0] for o in arrows[room]) / len(arrows[room])
            if arrows[room]
            else WIDTH / 2
            for room in unordered
        }
        row = sorted(unordered, key=lambda room: (round(middle[room]), room))
        space = (WIDTH - sum(_wide(room) for room in row)) / (len(row) + 1)
        x = 0.0
        for room in row:
            x += space + _wide(room) / 2
            places[room] = (x, GAP + BOX / 2 + ROW * k)
            x += _wide(room) / 2
    return places
