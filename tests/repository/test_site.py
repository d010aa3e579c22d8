"""The pages: blocks run, commands exist, links lead somewhere, every status is explained."""

import importlib
import importlib.util
import re
import shlex
import sys
import tomllib
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.paths import ROOT

import casadi_hybrid
from casadi_hybrid import control
from casadi_hybrid.cli.parser import make_parser
from casadi_hybrid.solver.nlpsol import stats
from casadi_hybrid.utils.status import PointStatus, StopReason

PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "scenarios" / "README.md",
        ROOT / "notebooks" / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
}
# Their Python is run by other tests: this file's neighbours, and test_engine_export.
ELSEWHERE = {
    "README.md", "scenarios/README.md", "docs/clients.md", "docs/do_mpc.md", "docs/embedded.md",
}  # fmt: skip
WRITTEN = {
    "docs/control.md": ["swing.npz", "swing.pdf"],
    "docs/studies.md": ["bend"],
    "docs/troubleshooting.md": ["nlpsol.html", "residuals.svg", "solve.html"],
}
"""What the Python of a page leaves in its folder."""
NOT_PRINTED = {"docs/maintainers.md", "docs/studies.md"}
"""Pages whose texts are a tree of folders and what a command says."""
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MADE = {
    "index.md", "changelog.md", "scenarios.md", "notebooks.md",
    *(f"notebooks/{path.stem}.md" for path in NOTEBOOKS),
}  # fmt: skip
"""Pages that the site makes from files elsewhere (docs/building/hooks.py)."""
SEARCH = tomllib.loads((ROOT / "docs/building/search.toml").read_text(encoding="utf-8"))
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TROUBLE = PAGES["docs/troubleshooting.md"]


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page, language and text."""
    return FENCE.findall(PAGES[page])


def prose(page: str) -> str:
    return FENCE.sub("", PAGES[page])


WITH_PYTHON = [page for page in PAGES if any(kind == "python" for kind, _ in blocks(page))]


def words(text: str) -> list[str]:
    """What is printed, lines without what the last bit may change: numbers, the largest of many."""
    changes = re.compile(r";? largest at [^\s);,]+|[-+]?\d[\d.]*(e[-+]\d+)?")
    return [" ".join(changes.sub("", line).split()) for line in text.splitlines()]


@pytest.mark.parametrize("page", [page for page in WITH_PYTHON if page not in ELSEWHERE])
def test_blocks_run_and_print_what_stands_below(page, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    printed = ""
    for number, (kind, text) in enumerate(blocks(page), start=1):
        if kind == "python":
            exec(compile(text, f"{page}, block {number}", "exec"), names)
            printed = capsys.readouterr().out
        elif kind == "text" and page not in NOT_PRINTED:
            assert words(printed) == words(text), f"{page}, block {number}"
    assert sorted(path.name for path in tmp_path.iterdir()) == WRITTEN.get(page, [])


def test_every_block_names_its_language():
    assert set(WITH_PYTHON) >= ELSEWHERE
    kinds = {kind for page in PAGES for kind, _ in blocks(page)}
    assert kinds <= {"python", "sh", "bash", "text", "algorithm", "c", "bibtex"}


EXTRAS = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
)


def commands(page: str) -> list[list[str]]:
    """The commands of a page's shell blocks, as words, without variables set before them."""
    found = []
    for kind, text in blocks(page):
        if kind in ("sh", "bash"):
            for line in text.replace("\\\n", " ").splitlines():
                for part in line.split("&&"):
                    command = shlex.split(part, comments=True)
                    while command and re.fullmatch(r"[A-Z_]+=.*", command[0]):
                        command.pop(0)
                    found += [command] if command else []
    return found


def of_this_package(command: list[str]) -> None:
    """Refuse a command line that casadi-hybrid would refuse."""
    arguments, rest = make_parser().parse_known_args(command)
    if arguments.command != "run":
        assert not rest, command
        return
    if arguments.scenario:
        assert (ROOT / "scenarios" / f"{arguments.scenario}.py").is_file(), command


def of_python(command: list[str], page: str) -> None:
    """A script that exists, or that the page has made, and options that stand in it."""
    script = command[0]
    if script == "-m":
        assert importlib.util.find_spec(command[1]), command
    elif (ROOT / script).is_file():
        text = (ROOT / script).read_text(encoding="utf-8")
        for word in command[1:]:
            assert not word.startswith("--") or f'"{word}"' in text, command
    else:
        assert f"new {script.removesuffix('.py')} " in PAGES[page], command


def of_pip(command: list[str]) -> None:
    """An installation, whose extras of this package exist."""
    assert command[0] == "install", command
    for word in command[1:]:
        own = re.fullmatch(r"(?:\.|casadi[-_]hybrid)\[([\w,]+)\]", word)
        assert own is None or set(own[1].split(",")) <= EXTRAS, command


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_shell_commands_exist(page):
    for command in commands(page):
        program, rest = Path(command[0]).name, command[1:]
        if program == "casadi-hybrid":
            of_this_package(rest)
        elif program in ("python", "python3"):
            of_python(rest, page)
        elif program == "pip":
            of_pip(rest)
        else:
            assert program in ("pytest", "mkdocs", "git", "cd", "source"), command


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_sentences_exist(page):
    commands_known = make_parser().commands.choices
    for text in re.findall(r"`casadi-hybrid ([^`]+)`", prose(page)):
        command, *rest = text.split()
        assert command in commands_known or not command.islower(), text
        if command in commands_known and command != "run":
            options = {word for word in rest if word.startswith("--")}
            shown = set(re.findall(r"--[\w-]+", commands_known[command].format_help()))
            assert options <= shown, text


def test_every_command_has_its_row():
    listed = re.findall(r"^\| `([a-z]+)` \|", PAGES["docs/command_line.md"], re.MULTILINE)
    assert sorted(listed) == sorted(make_parser().commands.choices)


def slug(heading: str) -> str:
    """The anchor of a heading, as mkdocs makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(page: str) -> set[str]:
    """What a link may go to on a page: headings, and what the reference describes."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {slug(heading) for heading in headings} | set(described(page))


def described(page: str) -> list[str]:
    """What a page of the reference takes from docstrings."""
    return re.findall(r"^::: (\S+)$", PAGES[page], re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^()\s]+)\)", prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.is_file(), f"{page}: {link}"
        name = str(target.resolve().relative_to(ROOT))
        assert not anchor or anchor in anchors(name), f"{page}: {link}"


def test_navigation_lists_every_page_once():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", text.partition("\nnav:\n")[2], re.MULTILINE)
    pages = [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")]
    assert sorted(listed) == sorted([*pages, *MADE])


def test_search_knows_pages_that_exist():
    for page in (*SEARCH["keywords"], *SEARCH["boost"]):
        assert page in MADE or f"docs/{page}" in PAGES, page


def test_reference_has_every_public_name():
    names = [name for page in PAGES for name in described(page)]
    assert len(set(names)) == len(names)
    for name in names:
        module, _, last = name.rpartition(".")
        found = importlib.util.find_spec(module)
        has = hasattr(importlib.import_module(module), last) if found else False
        assert has or importlib.util.find_spec(name), name
    shown = {name.rpartition(".")[2] for name in names}
    assert set(casadi_hybrid.__all__) - shown - {"Report", "verify"} == set()
    assert set(control.__all__) - shown == set()
    assert {"Report", "verify"} <= shown


def rows(section: str) -> list[list[str]]:
    """The rows of the first table of a section, as cells."""
    text = TROUBLE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_status_is_explained():
    for section, statuses in (("Why it stopped", StopReason), ("What the point is", PointStatus)):
        said = {cells[0].strip("`"): cells[1] for cells in rows(section)}
        assert said == {status.name: status.value for status in statuses}


def test_every_word_of_return_status_is_explained():
    explained = {cells[0].strip("`"): cells[2] for cells in rows("Words of return_status")}
    for reason in set(StopReason) - {StopReason.CONVERGED}:
        word = stats.return_status(SimpleNamespace(success=False, stop=reason, point=None))
        assert f"`{reason.name}`" in explained[word]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_notebook_becomes_page_with_its_pictures(path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "building")
    stored = importlib.import_module("stored")
    monkeypatch.delitem(sys.modules, "stored")
    text, pictures = stored.notebook(path)
    assert re.findall(r"^!\[[^\]]+\]\(([^)]+)\)$", text, re.MULTILINE) == list(pictures)
    assert all(content.startswith(b"\x89PNG") for content in pictures.values())
    assert len(pictures) == path.read_text(encoding="utf-8").count('"image/png"') > 0
