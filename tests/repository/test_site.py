"""Names on the pages exist: links, commands, modules, tests, and each status in its table."""

import importlib
import importlib.util
import re
import shlex
import sys
import tomllib
import unicodedata
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.cases.pages import PAGES, blocks, prose, table
from support.newer_casadi import NEEDS_3_8
from support.paths import DOCS, ROOT, TESTS

import casadi_hybrid
from casadi_hybrid import control
from casadi_hybrid.cli.parser import make_parser
from casadi_hybrid.solver.nlpsol import stats
from casadi_hybrid.solver.options import foreign
from casadi_hybrid.solver.options.options import NlpOptions
from casadi_hybrid.utils.status import PointStatus, StopReason

PACKAGE = ROOT / "casadi_hybrid"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MADE = {"index.md", "changelog.md", "scenarios.md", "notebooks.md"}
MADE |= {f"notebooks/{path.stem}.md" for path in NOTEBOOKS}
"""Pages that the site makes from files elsewhere (docs/building/hooks.py)."""


def test_each_option_of_nlpsol_has_its_row():
    rows = {row[0].strip("`"): row[1:] for row in table("docs/from_ipopt.md", "Options")}
    defaults = {field.name: f"`{field.default}`" for field in fields(NlpOptions)}
    assert {name: row[0] for name, row in rows.items()} == defaults
    same = {name for name, row in rows.items() if row[2].startswith("same")}
    for theirs, own in foreign.IPOPT_NAMES.items():
        assert f"`{theirs}`" in rows[own][2] or (theirs == own and own in same)
    assert same <= set(foreign.IPOPT_NAMES)


# Commands.


def commands(page: str) -> list[list[str]]:
    """The commands of a page's shell blocks, as words, without variables set before them."""
    text = "\n".join(text for kind, text in blocks(page) if kind in ("sh", "bash"))
    lines = re.split(r"\n|&&", text.replace("\\\n", " "))
    split = (shlex.split(re.sub(r"^\s*([A-Z_]+=\S* )+", "", line), comments=True) for line in lines)
    return [words for words in split if words]


def accepts_own(words: list[str]) -> bool:
    """Accept a line that casadi-hybrid accepts."""
    arguments, rest = make_parser().parse_known_args(words)
    if arguments.command != "run":
        return not rest
    return not arguments.scenario or (ROOT / "scenarios" / f"{arguments.scenario}.py").is_file()


def accepts_python(words: list[str], page: str) -> bool:
    """Accept a module or script that exists, with options in it, or that the page has made."""
    script = words[0]
    if script == "-m":
        return importlib.util.find_spec(words[1]) is not None
    if not (ROOT / script).is_file():
        return f"new {script.removesuffix('.py')} " in PAGES[page]
    text = (ROOT / script).read_text(encoding="utf-8")
    return all(f'"{word}"' in text for word in words if word.startswith("--"))


def accepts_pip(words: list[str]) -> bool:
    """Accept an installation whose extras of this package exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"(?:\.|casadi[-_]hybrid)\[([\w,]+)\]", " ".join(words))
    return words[0] == "install" and set(",".join(named).split(",")) - {""} <= set(
        project["optional-dependencies"]
    )


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_shell_commands_exist(page):
    checks = {
        "casadi-hybrid": accepts_own,
        "pip": accepts_pip,
        "python": lambda words: accepts_python(words, page),
    }
    for program, *words in commands(page):
        name = Path(program).name.replace("python3", "python")
        other = name in ("pytest", "mkdocs", "git", "cd", "source")
        assert other or checks[name](words), (program, *words)


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_sentences_exist(page):
    known = make_parser().commands.choices
    for text in re.findall(r"`casadi-hybrid ([^`]+)`", prose(page)):
        command, *words = text.split()
        assert command in known or not command.islower(), text
        if command in known and command != "run":
            shown = set(re.findall(r"--[\w-]+", known[command].format_help()))
            assert {word for word in words if word.startswith("--")} <= shown, text


def test_every_command_has_its_page():
    assert all(
        f"`{name}`" in PAGES["docs/command_line.md"] for name in make_parser().commands.choices
    )


# Links.


def slug(heading: str) -> str:
    """The anchor of a heading, as mkdocs makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def described(page: str) -> list[str]:
    """The names whose docstrings a page of the reference shows."""
    return re.findall(r"^::: (\S+)$", PAGES[page], re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^()\s]+)\)", prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.is_file(), f"{page}: {link}"
        if anchor:
            name = target.resolve().relative_to(ROOT).as_posix()
            headings = re.findall(r"^#+ (.+)$", prose(name), re.MULTILINE)
            assert anchor in {*map(slug, headings), *described(name)}, f"{page}: {link}"


def test_navigation_lists_every_page_once():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", text.partition("\nnav:\n")[2], re.MULTILINE)
    pages = [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")]
    assert sorted(listed) == sorted([*pages, *MADE])
    search = tomllib.loads((DOCS / "building/search.toml").read_text(encoding="utf-8"))
    assert {*search["keywords"], *search["boost"]} <= {*pages, *MADE}


def test_notebook_becomes_page_with_its_pictures(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "building")
    stored = importlib.import_module("stored")
    monkeypatch.delitem(sys.modules, "stored")
    for path in NOTEBOOKS:
        text, pictures = stored.notebook(path)
        assert re.findall(r"^!\[[^\]]+\]\(([^)]+)\)$", text, re.MULTILINE) == list(pictures)
        assert pictures
        assert all(content.startswith(b"\x89PNG") for content in pictures.values())


# Names of the package and of the tests.


@pytest.mark.parametrize("page", PAGES)
def test_names_of_package_exist(page):
    for name in re.findall(r"`(casadi_hybrid(?:\.\w+)+)`", PAGES[page]):
        module, _, last = name.rpartition(".")
        assert importlib.util.find_spec(name if last.islower() else module), name
        assert last.islower() or hasattr(importlib.import_module(module), last), name


def test_reference_has_every_public_name():
    names = [name for page in PAGES for name in described(page)]
    assert len(set(names)) == len(names)
    for name in names:
        module, _, last = name.rpartition(".")
        is_member = importlib.util.find_spec(module) is not None
        is_member = is_member and hasattr(importlib.import_module(module), last)
        assert is_member or importlib.util.find_spec(name), name
    shown = {name.rpartition(".")[2] for name in names}
    assert {*casadi_hybrid.__all__, *control.__all__} <= shown


def test_named_tests_exist():
    texts = {path.name: path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")}
    for page, text in PAGES.items():
        for file, name in re.findall(r"`(?:\w+/)*(test_\w+\.py)(?:::(\w+))?`", text):
            assert f"def {name}" in texts[file], f"{page}: {file} has no {name}"
    for name in NEEDS_3_8:
        function = f"def {name.partition('[')[0]}("
        assert any(function in text for text in texts.values()), name


def test_files_of_paper_page_exist():
    files = re.findall(r"`((?:\w+/)+\w+\.(?:py|c|h))`", PAGES["docs/paper.md"])
    assert files
    roots = ROOT, PACKAGE
    assert not [name for name in files if not any((root / name).is_file() for root in roots)]


def test_tests_of_paper_page_exist():
    texts = {
        path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py")
    }
    named = re.findall(r"`(?:\w+/)*(test_\w+\.py)(?:::(\w+))?`", PAGES["docs/paper.md"])
    assert named
    assert not [(file, name) for file, name in named if f"def {name}" not in texts.get(file, "")]


@pytest.mark.parametrize("page", ["docs/mathematics.md", "docs/paper.md"])
def test_notation_names_what_its_files_have(page):
    for symbol, names, files, _ in table(page, "Notation"):
        paths = [PACKAGE / name for name in re.findall(r"`([\w/]+\.(?:py|h))`", files)]
        assert paths, symbol
        text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
        for name in re.findall(r"`(\w+)`", names):
            assert name in text, f"{symbol}: {files} has no {name}"


def test_every_status_is_explained():
    page = "docs/troubleshooting.md"
    for section, statuses in (("Why it stopped", StopReason), ("What the point is", PointStatus)):
        names = {cells[0].strip("`") for cells in table(page, section)}
        assert names == {status.name for status in statuses}
    explained = {cells[0].strip("`"): cells[2] for cells in table(page, "Words of return_status")}
    for reason in set(StopReason) - {StopReason.CONVERGED}:
        word = stats.return_status(SimpleNamespace(success=False, stop=reason, point=None))
        assert f"`{reason.name}`" in explained[word]
