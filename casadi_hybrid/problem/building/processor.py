"""The processor of this machine, by its name and by the instructions it has."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# Words of /proc/cpuinfo: the name of a processor, its instructions on x86 and on ARM.
_NAMES, _FEATURES = ("model name", "cpu model", "hardware"), ("flags", "features", "isa")
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Processor:
    """What code for a processor depends on: its family, its name, and its instructions in order.

    Name and instructions are empty where nothing says them.
    """

    machine: str
    name: str
    features: tuple[str, ...]


@lru_cache(maxsize=1)
def processor() -> Processor:
    """The processor of this machine; asked for once a process."""
    name, features = _from_sysctl() if sys.platform == "darwin" else _from_cpuinfo()
    return Processor(platform.machine(), name or platform.processor(), tuple(sorted(features)))


def _from_cpuinfo() -> tuple[str, set[str]]:
    name, features = "", set[str]()
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return name, features
    for line in lines:
        word, _, value = (part.strip() for part in line.partition(":"))
        if word.lower() in _NAMES and not name:
            name = value
        elif word.lower() in _FEATURES and not features:
            features = set(value.split())
    return name, features


def _from_sysctl() -> tuple[str, set[str]]:
    """What macOS says; an instruction is there where its switch is 1."""
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "machdep.cpu.brand_string", "hw.optional"],
            capture_output=True, text=True, check=False, timeout=_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return "", set()
    pairs = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    name = pairs.pop("machdep.cpu.brand_string", "")
    return name, {key.rpartition(".")[2] for key, value in pairs.items() if value.strip() == "1"}
