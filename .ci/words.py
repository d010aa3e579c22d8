"""Refuse docstrings whose first word is no noun and no verb: python .ci/words.py FOLDER..."""

import ast
import sys
from pathlib import Path

REFUSED = {"what", "whether", "that", "those", "of", "where", "none", "who", "which", "as", "it"}


def main(folders: list[str]) -> int:
    """Print the place of every docstring that begins with a refused word."""
    places = []
    for path in (path for folder in folders for path in sorted(Path(folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                words = (ast.get_docstring(node) or "").split()
                if words and words[0].strip(".,:;").lower() in REFUSED:
                    places.append(f"{path}:{getattr(node, 'lineno', 1)}: {' '.join(words[:6])}")
    print(*places, sep="\n")
    return bool(places)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
