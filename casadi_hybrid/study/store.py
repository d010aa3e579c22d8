"""The file a study grows in: one line of settings, then one line a finished unit.

Lines are appended and flushed as units finish, so a study that was killed goes on where it
stopped; a line the kill cut off is dropped. Results of other settings or of other code are never
mixed in: the settings line carries a digest of the code that decides the numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import casadi_hybrid
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.study.trial import Settings, Trial, Unit

FORMAT = 1
# Parts of the package that show results or drive the study, and never change a number in it.
_SHOWING = {
    "cli.py",
    "plotting.py",
    "report",
    "basics/parallel.py",
    "course/log.py",
    "claims",
    "study/__init__.py",
    "study/population.py",
    "study/store.py",
    "study/tables.py",
    "study/figure.py",
    "paper/__init__.py",
    "paper/experiment.py",
    "paper/figures.py",
    "paper/printed.py",
    "paper/reproduce.py",
    "paper/tables.py",
}

Done = dict[Unit, tuple[Trial, ...]]


class Store:
    """A study's file, opened for going on.

    Args:
        path: the file; its folder is made where it is missing.
        settings: what its units have to have been run with.
        fresh: forget what is there.

    Attributes:
        done: the finished units.

    Raises:
        InputError: when the file is no study, holds one of other settings, or is damaged.
    """

    def __init__(self, path: Path, settings: Settings, *, fresh: bool = False) -> None:
        self.path = path
        self.header = header(settings)
        self.done: Done = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        text = b"" if fresh or not path.exists() else path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        lines = whole.decode("utf-8", errors="replace").splitlines()
        if lines:
            self._check(lines[0])
            self.done = dict(self._read(i, line) for i, line in enumerate(lines[1:], start=2))
        else:
            whole = (json.dumps(self.header, ensure_ascii=False) + "\n").encode()
        if whole != text:
            path.write_bytes(whole)

    def append(self, unit: Unit, trials: tuple[Trial, ...]) -> None:
        """Add a finished unit to the file and to :attr:`done`."""
        line = {**unit._asdict(), "trials": [_plain(asdict(trial)) for trial in trials]}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.done[unit] = trials

    def _check(self, line: str) -> None:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or "study" not in found:
            raise InputError(
                f"{self.path} is not the record of a study; use another output folder, "
                "or --fresh to replace it"
            )
        for key, value in self.header.items():
            if found.get(key) != value:
                raise InputError(
                    f"{self.path} holds a study with {key} = {found.get(key)!r}, this one has "
                    f"{value!r}; results of the two are not mixed, so use another output folder, "
                    "or --fresh to start over"
                )

    def _read(self, number: int, line: str) -> tuple[Unit, tuple[Trial, ...]]:
        try:
            fields = json.loads(line)
            trials = tuple(Trial(**_numbers(trial)) for trial in fields.pop("trials"))
            return Unit(**fields), trials
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(
                f"line {number} of {self.path} is damaged; remove it to run its unit again, "
                "or use --fresh to start over"
            ) from None


def header(settings: Settings) -> dict[str, Any]:
    """Return the settings line."""
    return {
        "study": "population",
        "format": FORMAT,
        "version": casadi_hybrid.__version__,
        "code": code_digest(),
        **settings.to_dict(),
    }


@cache
def code_digest() -> str:
    """Digest of the package's source without the parts that only show results."""
    root = Path(casadi_hybrid.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name not in _SHOWING and name.split("/")[0] not in _SHOWING:
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _plain(trial: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN and no infinity: both become null."""
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value
        for key, value in trial.items()
    }


def _numbers(trial: Mapping[str, Any]) -> dict[str, Any]:
    return {key: np.nan if value is None else value for key, value in trial.items()}
