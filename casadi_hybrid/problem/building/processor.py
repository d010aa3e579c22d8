"""The processor of this machine, as the operating system describes it."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_LINES = re.compile(r"^(?:model name|flags|Features|isa|Hardware)\s*:.*", re.MULTILINE)
_SYSCTL = "/usr/sbin/sysctl", "machdep.cpu.brand_string", "hw.optional"
_SECONDS = 10.0


@cache
def processor() -> str:
    """Lines with the name and the instruction sets of this processor, as far as they are known."""
    try:
        if sys.platform == "darwin":
            options = {"capture_output": True, "text": True, "timeout": _SECONDS}
            return str(subprocess.run(_SYSCTL, check=False, **options).stdout)
        first, _, _ = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")
        return "\n".join(_LINES.findall(first))
    except (OSError, subprocess.TimeoutExpired):
        return platform.processor()
