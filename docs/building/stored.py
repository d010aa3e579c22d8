"""A stored notebook as a page of the site."""

from __future__ import annotations

import base64
from pathlib import Path

import nbformat


def notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook in Markdown, what a cell gave below it, and its pictures by name."""
    parts, pictures = [], {}
    for cell in nbformat.read(path, as_version=4).cells:
        parts.append(
            cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```"
        )
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}_{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![Figure {len(pictures)}, drawn by the cell above]({name})")
            else:
                text = output.get("text") or data["text/plain"]
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts), pictures
