"""What the documentation site has beside the pages of docs/: called by mkdocs.

The README, the changelog, the guide to scenarios and the notebooks stand elsewhere in the
repository and become pages; files that a page links to, such as a scenario's source, come along;
formulas between dollars become MathML, which browsers set without a script.
"""

from __future__ import annotations

import os
import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files
from stored import notebook

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "scenarios/README.md": "scenarios.md",
    "notebooks/README.md": "notebooks.md",
    **{
        f"notebooks/{path.name}": f"notebooks/{path.stem}.md"
        for path in (ROOT / "notebooks").glob("*.ipynb")
    },
}
SEARCH = tomllib.loads(Path(__file__).with_name("search.toml").read_text(encoding="utf-8"))
LINK = re.compile(r"(\]\()([^()\s]+)(\))")
NORM = re.compile(r"(?<=[‖|])_(?=[∞₂F])")
OPTION = re.compile(r'(?<=<span class="w"> </span>)(-[\w-]+)')
OPTION_IN_TEXT = re.compile(r"<code>(?=-[^\s<]+</code>)")
CELL = re.compile(r"<td.*?</td>", re.DOTALL)
LONG = re.compile(r"(?<=<code>)[^<]{20,}(?=</code>)")
JOINTS = re.compile(r"(?<=\w)(?:/|::)(?=\w)"), re.compile(r"(?<=\w)(?:/|::|_)(?=\w)")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$([^$\n]+?)\$(?![\d$])", re.DOTALL)


def origin_of(page: str) -> str:
    """The file of the repository that a page is made from."""
    known = {page: origin for origin, page in PAGES.items()}
    return known.get(page, f"docs/{page}")


def place_of(target: str) -> str | None:
    """Where a file of the repository is on the site; None where there is no such file."""
    if target in PAGES:
        return PAGES[target]
    if not (ROOT / target).is_file():
        return None
    return target.removeprefix("docs/") if target.startswith("docs/") else f"files/{target}"


def outside(text: str, change: Any) -> str:
    """The text with what is outside of fenced code changed."""
    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def targets(page: str, text: str) -> dict[str, tuple[str, str]]:
    """The links of a page to files: as written, the file in the repository, its place."""
    found = {}
    for _, link, _ in LINK.findall(text):
        path = link.partition("#")[0]
        if not path or "://" in path:
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin_of(page)), path))
        place = place_of(target)
        if place is not None:
            found[path] = target, place
    return found


def formulas(text: str) -> str:
    """The text with its formulas as MathML."""

    def set_in(found: re.Match[str]) -> str:
        if found[1]:
            text = convert(" ".join(found[1].split()), display="block")
            return f'<div class="formula" tabindex="0">{text}</div>'
        # A line that began with <math> would be a paragraph of its own.
        return f"<span>{convert(found[2], display='inline')}</span>"

    code = re.compile(r"(`+[^`]*`+)")
    parts = code.split(NORM.sub(r"\\_", text))
    return "".join(part if part.startswith("`") else FORMULA.sub(set_in, part) for part in parts)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from elsewhere, and the files that any page links to."""
    for origin, page in PAGES.items():
        if origin.endswith(".ipynb"):
            text, pictures = notebook(ROOT / origin)
            files.append(File.generated(config, page, content=text))
            for name, content in pictures.items():
                files.append(File.generated(config, f"notebooks/{name}", content=content))
        else:
            files.append(File.generated(config, page, abs_src_path=str(ROOT / origin)))
    here = {file.src_uri for file in files}
    for file in list(files.documentation_pages()):
        for target, place in targets(file.src_uri, file.content_string).values():
            if place.startswith("files/") and place not in here:
                here.add(place)
                files.append(File.generated(config, place, abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links into those of the site, formulas into MathML; tell the search its keywords."""
    name = page.file.src_uri
    page.meta["tags"] = SEARCH["keywords"].get(name, [])
    page.meta["search"] = {"boost": SEARCH["boost"].get(name, 1.0)}
    known = targets(name, markdown)
    folder = posixpath.dirname(name) or "."

    def link(found: re.Match[str]) -> str:
        path, mark, anchor = found[2].partition("#")
        if path not in known:
            return found[0]
        return f"{found[1]}{posixpath.relpath(known[path][1], folder)}{mark}{anchor}{found[3]}"

    return outside(markdown, lambda text: formulas(LINK.sub(link, text)))


def on_page_content(html: str, **_: Any) -> str:
    """Keep options whole where lines break; let long names in tables break at their joints.

    Tables can be reached by keys, since a narrow window scrolls them.
    """

    def breaking(cell: re.Match[str]) -> str:
        return LONG.sub(lambda name: JOINTS[len(name[0]) > 30].sub(r"\g<0><wbr>", name[0]), cell[0])

    html = OPTION.sub(r'<span class="option">\1</span>', html)
    html = OPTION_IN_TEXT.sub('<code class="option">', html)
    return CELL.sub(breaking, html).replace("<table>", '<table tabindex="0">')


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialog of the search, which the theme leaves without a name."""
    return output.replace('"md-search" data', '"md-search" aria-label="Search" data')


def on_startup(**_: Any) -> None:
    """Let relative paths of the configuration mean those of the repository."""
    os.chdir(ROOT)
