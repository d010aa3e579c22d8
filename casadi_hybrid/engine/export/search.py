"""The search from any start in an export: what it needs of memory, and how its attempts start."""

from __future__ import annotations

import ctypes as ct
from dataclasses import dataclass
from typing import Any

from casadi_hybrid.engine.cold import WORDS as COLD_WORDS
from casadi_hybrid.engine.cold import AttemptData, StateData
from casadi_hybrid.engine.export.tables import number
from casadi_hybrid.engine.plan import Plan
from casadi_hybrid.engine.warm import WORDS

ENTRIES = "hybrid_warm", "hybrid_cold_begin", "hybrid_cold_run", "hybrid_state_attach"
"""The functions of the core that are called; the first alone for the warm mode."""
SEARCH = "NAME_search.c"
"""The template that has no place beside the warm mode alone."""
_JUDGED = 8, 12, 14  # HYBRID_LARGE, HYBRID_BLOCKED, HYBRID_ELSEWHERE
_ROW = 11  # HYBRID_ROW


@dataclass(frozen=True, slots=True)
class Space:
    """The memory of an attempt by the barrier method.

    Attributes:
        bytes: of its two structures on this machine.
        doubles, ints: numbers and whole numbers.
        of_state, guess: those of its state.
    """

    bytes: int
    doubles: int
    ints: int
    of_state: int
    guess: int

    @classmethod
    def of(cls, library: Any, plan: Plan, first: AttemptData) -> Space:
        """What attempts on a plan need."""
        found = [ct.c_longlong() for _ in range(3)]
        at = ct.addressof(plan.data)
        library.hybrid_cold_memory(at, first.dense, *map(ct.byref, found))
        size, doubles, ints = (max(1, number.value) for number in found)
        of_state = max(1, library.hybrid_state_doubles(at))
        return cls(size, doubles, ints, of_state, max(1, plan.data.n))

    def fields(self, n_x: int, rows: int) -> tuple[tuple[str, Any], ...]:
        """Their part of ``NAME_memory``, for so many variables and rows of g."""
        n_g = max(1, rows)
        return (
            ("cold", ct.c_void_p * (self.bytes // ct.sizeof(ct.c_void_p))),
            ("state", StateData),
            ("of_state", ct.c_double * self.of_state),
            ("row", ct.c_double * _ROW),
            ("guess", ct.c_int * self.guess),
            *(
                (name, ct.c_double * size)
                for name, size in (
                    ("x", n_x),
                    ("g", n_g),
                    ("lam_x", n_x),
                    ("lam_g", n_g),
                    ("no_lam", n_x + rows),
                )
            ),
            ("side_x", ct.c_byte * n_x),
            ("side_g", ct.c_byte * n_g),
        )


def attempt_text(attempt: AttemptData) -> str:
    """How an attempt starts, as an initializer of C."""
    values = ((name, getattr(attempt, name)) for name, _ in attempt._fields_)  # type: ignore[misc]
    words = (
        f"    .{name} = {value if isinstance(value, int) else number(value)}"
        for name, value in values
    )
    return "{\n" + ",\n".join(words) + "}"


def words_of(search: bool) -> dict[int, str]:
    """What each status means that an exported solver may end with.

    Args:
        search: whether the search from any start is in it.
    """
    if search:
        # What an attempt judges that is alone, what the search goes on from, or is not in it.
        others = {number: text for number, text in COLD_WORDS.items() if number not in _JUDGED}
        return {0: "it is solved", **others}
    return WORDS
