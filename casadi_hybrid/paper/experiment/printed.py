"""The numbers of the paper's three tables.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", section "Numerical Experiments":
success counts of five at ‖x − x*‖ ≤ 1e-3, median hitting times among successes, and
representative medians of max_t‖M_t‖₂. Keys: method, then condition level. None: printed as a dash.
"""

from __future__ import annotations

M_MAX = 300.0

SUCCESS: dict[str, dict[int, int]] = {
    "aug-w": {1: 5, 2: 0, 3: 2, 5: 0, 8: 0, 13: 0},
    "opt-w": {1: 5, 2: 5, 3: 5, 5: 4, 8: 0, 13: 0},
    "grid-w": {1: 5, 2: 5, 3: 5, 5: 5, 8: 1, 13: 0},
    "closed-w": {1: 4, 2: 5, 3: 5, 5: 5, 8: 0, 13: 0},
    "ogda": {1: 0, 2: 0, 3: 0, 5: 0, 8: 0, 13: 0},
    "eg": {1: 0, 2: 0, 3: 0, 5: 0, 8: 0, 13: 0},
    "pdhg": {1: 5, 2: 5, 3: 5, 5: 2, 8: 1, 13: 1},
    "lin-al": {1: 0, 2: 0, 3: 0, 5: 0, 8: 0, 13: 0},
}

HITS: dict[str, dict[int, float | None]] = {
    "grid-w": {1: 15, 2: 35, 3: 43, 5: 60, 8: 60, 13: 141},
    "closed-w": {1: 19.5, 2: 36, 3: 49, 5: 71, 8: 112, 13: 160},
    "closed-u": {1: 69, 2: 44, 3: 55, 5: 75, 8: 86, 13: None},
    "pdhg": {1: 4, 2: 22, 3: 44, 5: 74, 8: 61, 13: 150},
}

NORM_M: dict[str, dict[int, float | None]] = {
    "closed-u": {1: 1.98, 2: 4.74, 3: 8.94, 5: 21.03, 8: 81.16, 13: None},
    "grid-w": {1: 2.45, 2: 6.37, 3: 21.54, 5: 48.81, 8: 92.06, 13: 299.94},
}
