"""The page as a whole, and the file it is written to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.result.answer import Answer
from casadi_hybrid.result.report import tables
from casadi_hybrid.result.report.course import of_active_set, of_course
from casadi_hybrid.result.report.pattern import picture
from casadi_hybrid.result.report.style import CSS
from casadi_hybrid.result.report.text import count, missing, number, prose, safe

_SUFFIXES = (".html", ".htm")


def write_page(answer: Answer, explain: Callable[[], str], path: str | os.PathLike[str]) -> Path:
    """Write the page of a solve, with its explanation in lines, and return its path.

    Raises:
        InputError: where ``path`` is no path, has another suffix, or its folder is missing;
            before anything is computed.
        OSError: where the file cannot be written.
    """
    target = _checked(path)
    target.write_text(page(answer, explain()), encoding="utf-8")
    return target


def page(answer: Answer, said: str) -> str:
    """The page as text; ``said`` is the explanation, in lines."""
    name = safe(answer.problem)
    sizes = f"{count(answer.x.size, 'variable')}, {count(answer.g.size, 'constraint')}"
    sections = (
        ("Residuals", tables.of_residuals(answer)),
        ("What there is to say", f'<pre class="said">{prose(said)}</pre>'),
        ("Course of the solve", of_course(answer)),
        ("Active set", of_active_set(answer)),
        ("Constraints and their multipliers", _SIGN + tables.of_bounds(answer, "g")),
        ("Variables and the multipliers of their bounds", tables.of_bounds(answer, "x")),
        ("Structure of the KKT matrix", _structure(answer)),
    )
    beside = (
        ("Work", tables.of_work(answer)),
        ("Options", tables.of_options(answer)),
        ("Versions", tables.of_versions()),
    )
    body = f'{_joined(sections)}\n<div class="columns">{_joined(beside)}</div>'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}: {safe(answer.stop.name)}</title>\n<style>{CSS}</style></head>\n"
        f'<body><main>\n<p class="sub">a solve by casadi_hybrid</p>\n<h1>{name}</h1>\n'
        f'<p class="sub">{sizes}; method {safe(answer.method)}</p>\n{_cards(answer)}\n'
        f"{body}\n</main></body></html>\n"
    )


def _joined(sections: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"<section><h2>{head}</h2>\n{text}\n</section>" for head, text in sections)


_SIGN = (
    '<p class="note">L = f + λ_gᵀg + λ_xᵀx: a multiplier is positive at an active upper bound and '
    "negative at an active lower one; of an equation it has either sign. Numbers are in the "
    "problem's own units, multipliers in units of f per unit of g or x.</p>"
)


def _cards(answer: Answer) -> str:
    kind = "good" if answer.success else "bad"
    cards = (
        (kind, "why it stopped", answer.stop.value, answer.stop.name),
        (kind, "what the point is", answer.point.value, answer.point.name),
        ("", "objective f(x)", number(answer.f, ".10g"), ""),
    )
    made = "".join(
        f'<div class="card {kind}"><span>{what}</span><b>{safe(text)}</b>'
        + (f"<span><code>{code}</code></span>" if code else "")
        + "</div>"
        for kind, what, text, code in cards
    )
    return f'<div class="cards">{made}</div>'


def _structure(answer: Answer) -> str:
    if answer.patterns is None:
        return missing("The structure of the problem's derivatives was not kept with this result.")
    J, H = answer.patterns
    if not sum(J.shape):
        return "<p>The matrix is empty.</p>"
    drawn, entries, each = picture(J, H)
    size = sum(J.shape)
    scale = f" A cell stands for {each} × {each} entries." if each > 1 else ""
    learned = "" if H is not None else " There are no second derivatives: no block ∇²L is drawn."
    return (
        f'<div class="figures"><figure>{drawn}<figcaption>[∇²L + D, J_gᵀ; J_g, −E] in the order '
        f"(x, λ_g): {size:,} rows, {entries:,} entries that may be nonzero "
        f"({number(100.0 * entries / size**2, '.3g')} %).{scale}{learned} Blue: ∇²L; orange: J_g; "
        "green: the diagonals D and E, where nothing else is. Slacks of inequalities, and what a "
        "factorization permutes or fills in, are not shown.</figcaption></figure></div>"
    )


def _checked(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputError(f"path must be the name of a file to write, got {type(path).__name__}")
    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        raise InputError(f"the report is an HTML page: path must end in .html, got {str(path)!r}")
    if target.is_dir():
        raise InputError(f"path {str(path)!r} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise InputError(f"the folder {str(target.parent)!r} is not there; make it first")
    return target
