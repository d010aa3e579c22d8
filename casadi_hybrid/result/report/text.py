"""Text, numbers and tables of the page: whatever a user has named is escaped here."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_LONGEST = 120
_SMALL, _LARGE, _DIGITS = 1e-4, 1e6, 6


def safe(text: object, longest: int = _LONGEST) -> str:
    """The text for HTML: escaped, cut, and with what cannot be printed written as its code."""
    plain = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in str(text))
    return html.escape(cut(plain, longest))


def cut(text: str, longest: int) -> str:
    """The text, its middle left out where it is longer than that: names differ at their ends."""
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def prose(text: str) -> str:
    """Sentences in lines, for HTML, of any length."""
    return "\n".join(safe(line, 2000) for line in text.splitlines())


def number(value: float, form: str = ".6g") -> str:
    """A number with a minus sign, words for what is not finite."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return format(value, form).replace("-", "−")


def size(value: float) -> str:
    """A number of which the order of magnitude matters."""
    return number(value, ".2e")


def seconds(value: float) -> str:
    """A time in s or ms."""
    return f"{number(value, '.3g')} s" if value >= 1.0 else f"{number(1e3 * value, '.3g')} ms"


def column(values: NDArray[np.float64]) -> list[str]:
    """Numbers below each other with as many digits each, so that their points are aligned."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0.0)])
    if sizes.size and (sizes.min() < _SMALL or sizes.max() >= _LARGE):
        return [number(v, ".6e") for v in values]
    digits = 0
    while digits < _DIGITS and (np.abs(sizes - np.round(sizes, digits)) > 1e-9 * sizes).any():
        digits += 1
    return [number(v, f".{digits}f") for v in values]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[int] = (0,)) -> str:
    """A table of cells in HTML: numbers to the right, the columns ``texts`` to the left."""
    kinds = ["" if k in texts else ' class="n"' for k in range(len(heads))]

    def line(cells: Sequence[str], tag: str) -> str:
        name = tag.split(maxsplit=1)[0]
        made = (f"<{tag}{kind}>{one}</{name}>" for one, kind in zip(cells, kinds, strict=True))
        return f"<tr>{''.join(made)}</tr>"

    head, body = line(heads, 'th scope="col"'), "\n".join(line(row, "td") for row in rows)
    return (
        f'<div class="scroll"><table><thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>'
    )


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """A table of two columns without a head: what, and how much; both are HTML already."""
    body = "\n".join(f'<tr><th scope="row">{what}</th><td>{text}</td></tr>' for what, text in rows)
    return f'<div class="scroll"><table class="pairs"><tbody>\n{body}\n</tbody></table></div>'


def missing(text: str) -> str:
    """A paragraph that says what the page lacks and how to have it; HTML already."""
    return f'<p class="missing">{text}</p>'


def count(many: int, one: str) -> str:
    """``3 rows``, ``1 row``."""
    return f"{many:,} {one}{'' if many == 1 else 's'}"
