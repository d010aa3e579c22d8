"""Ctrl-C while C solves: who is asked now and then, before Python's code is called."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable, Generator
from ctypes import c_int, c_void_p
from typing import Any

_Ask = ct.CFUNCTYPE(c_int, c_void_p)


def asking(keep: Callable[[BaseException], object]) -> Any:
    """A function of C, whose answer is 1 where the handler of a pending signal raises.

    Such a handler runs as soon as Python's code does, in a function before its first line, where
    nothing catches what is raised, and ctypes would drop it. A generator goes on within ``try``.

    Args:
        keep: takes what was raised.
    """

    def answers() -> Generator[int, Any, None]:
        answer = 0
        while True:
            try:
                yield answer
                answer = 0
            except GeneratorExit:
                return
            except BaseException as error:  # noqa: BLE001 - whoever called for the solve gets it
                keep(error)
                answer = 1

    generator = answers()
    next(generator)
    return _Ask(generator.send)
