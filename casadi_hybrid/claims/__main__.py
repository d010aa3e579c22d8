"""``python -m casadi_hybrid.claims``: print every claim; exit with 1 if one does not come out."""

from __future__ import annotations

import argparse
import sys

from casadi_hybrid.claims.record import table
from casadi_hybrid.claims.suite import check_all


def main(arguments: list[str] | None = None) -> int:
    """Print the table and return 0 if every claim and counter-example came out, else 1."""
    parser = argparse.ArgumentParser(prog="python -m casadi_hybrid.claims", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="instances, matrices and noise")
    parser.add_argument("--iterations", type=int, default=200, help="steps of every trajectory")
    parser.add_argument("--models", type=int, default=6, help="local models of each design claim")
    options = parser.parse_args(arguments)
    claims = check_all(options.seed, options.iterations, options.models)
    print(table(claims))
    return 0 if all(claim.held for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
