"""Break the paper's part of the package on purpose, one thing at a time, and see who notices.

    python benchmarks/breaks.py [WORD ...] [--list]

Each break replaces one exact text in a copy of the package, in a temporary folder, and runs the few
tests that are meant to notice it there. The table says which break was noticed, by which test, and
in how many seconds. Exit status 1: one went unnoticed, a text to be replaced is no longer there, or
the tests fail without any break. With words, only the breaks whose name contains one of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "casadi_hybrid"
LIMIT = 300.0
CONSTANTS, RULES, CLAIMS = (
    "paper/test_paper_constants.py",
    "paper/test_rules.py",
    "paper/test_design_claims.py",
)
REPORTING, SETTLING = "paper/test_tables_and_verdicts.py", "paper/test_settling.py"
RECURSIONS, MATRICES = "paper/test_recursions.py", "paper/test_matrix_steps.py"


@dataclass(frozen=True)
class Break:
    """One deliberate error.

    Attributes:
        name: what is wrong then.
        file: in the package.
        old, new: the text that is there exactly once, and what takes its place.
        tests: files of tests/, or tests in them, that are meant to notice.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = (CONSTANTS,)

    def applied(self, text: str) -> str:
        """Return the text of the file with the error.

        Raises:
            LookupError: if the text is not there, or more than once.
        """
        found = text.count(self.old)
        if found != 1:
            raise LookupError(
                f"{self.name}: {self.file} has the text {self.old!r} {found} times, not once; "
                "the list of changes in benchmarks has to follow"
            )
        return text.replace(self.old, self.new)

    @property
    def source(self) -> str:
        """The file's text as it is."""
        return (PACKAGE / self.file).read_text(encoding="utf-8")


_TARGET = "return _Target(norm_M, smallest, 0.5 * smallest, a_d)"
_SHARE = "return Candidate(alpha, theta, C_can + (theta * alpha) * R, ((1 - theta) * alpha) * R)"
_RECORDED = "float(np.nanmax(norms)) if"
_DUAL = "mu = state.mu + apply(correction.eta_d, residual) + optimistic - memory"
_EFFECTIVE = "effective = mu + correction.C_aug @ at.h"
_NEXT = "return State(x, mu, optimistic, effective, state.t + 1"
_LAW, _HYBRID = "paper/law.py", "paper/iterations/hybrid.py"
# Errors of the update law: name, file, text, error, and the file of tests that notices.
_OF_THE_LAW = (
    ("memory added", _LAW, _DUAL, _DUAL.replace("- memory", "+ memory"), RECURSIONS),
    ("memory left out", _LAW, _DUAL, _DUAL.removesuffix(" - memory"), RECURSIONS),
    ("dual step of η_x", _LAW, _DUAL, _DUAL.replace("eta_d", "eta_x"), RECURSIONS),
    (
        "primal step with μ_t",
        _LAW,
        _EFFECTIVE,
        _EFFECTIVE.replace("mu +", "state.mu +"),
        RECURSIONS,
    ),
    ("augmented by all of M", _LAW, _EFFECTIVE, _EFFECTIVE.replace("C_aug", "M"), RECURSIONS),
    ("ascent in x", _LAW, "x = state.x - apply(", "x = state.x + apply(", RECURSIONS),
    ("memory of the last step", _LAW, _NEXT, _NEXT.replace("optimistic", "memory"), RECURSIONS),
    ("π_t is μ_t", _LAW, "return self.mu - self.memory", "return self.mu", RECURSIONS),
    ("look-ahead behind", _LAW, "residual - at.B @ apply", "residual + at.B @ apply", MATRICES),
    (
        "the Hessian at the other multiplier",
        _HYBRID,
        "if at_mu else",
        "if not at_mu else",
        RECURSIONS,
    ),
    (
        "the effective start added",
        _HYBRID,
        "mu = mu - augmented",
        "mu = mu + augmented",
        RECURSIONS,
    ),
    ("the memory-free start reduced", _HYBRID, "mu = mu + memory", "mu = mu - memory", RECURSIONS),
)

BREAKS = (
    *(Break(*texts, (tests,)) for *texts, tests in _OF_THE_LAW),
    Break(
        "M_max is 3,000", "paper/rules/design.py", "M_max: float = 300.0", "M_max: float = 3000.0"
    ),
    Break(
        "budget of 150 iterations",
        "paper/experiment/experiment.py",
        "BUDGET = 200\n",
        "BUDGET = 150\n",
    ),
    Break(
        "PDHG with σ = 5",
        "paper/iterations/baselines.py",
        "sigma: float = 20.0",
        "sigma: float = 5.0",
    ),
    Break(
        "a printed success count altered",
        "paper/experiment/printed.py",
        '"opt-w": {1: 5, 2: 5, 3: 5, 5: 4,',
        '"opt-w": {1: 5, 2: 5, 3: 5, 5: 5,',
    ),
    Break("a printed median altered", "paper/experiment/printed.py", "1: 19.5,", "1: 18.5,"),
    Break("a printed ‖M‖ altered", "paper/experiment/printed.py", "3: 21.54,", "3: 12.54,"),
    Break(
        "the last ‖M‖ for the largest",
        "paper/experiment/experiment.py",
        _RECORDED,
        "float(norms[-1]) if",
        (SETTLING,),
    ),
    Break(
        "no noise on the gradient",
        "paper/claims/noise.py",
        "gradient=at.gradient + xi[t + 1]",
        "gradient=at.gradient",
    ),
    Break(
        "no noise on the residual",
        "paper/claims/noise.py",
        "seen = at.h + zeta[t + 1] * (1 + at.h)",
        "seen = at.h",
    ),
    Break(
        "no noise on the memory",
        "paper/claims/noise.py",
        "measured=at.h + epsilon[t + 1]",
        "measured=at.h",
    ),
    Break(
        "a_x and a_d swapped",
        "paper/rules/design.py",
        _TARGET,
        _TARGET.replace("0.5 * smallest, a_d", "a_d, 0.5 * smallest"),
    ),
    Break("a_x without ½", "paper/rules/design.py", _TARGET, _TARGET.replace("0.5 * ", "")),
    Break(
        "a_d is λ_max",
        "paper/rules/spectra.py",
        "return float(values[self.rank - 1] ** 2)",
        "return float(values[0] ** 2)",
        (CLAIMS, RULES),
    ),
    Break(
        "κ_ω is 4 by default",
        "paper/rules/parts.py",
        "kappa_omega: float = 8.0",
        "kappa_omega: float = 4.0",
    ),
    Break(
        "θ without κ_ω",
        "paper/rules/parts.py",
        "kappa.kappa_p * kappa.kappa_omega * symmetric_norm(",
        "kappa.kappa_p * symmetric_norm(",
    ),
    Break(
        "S3 without κ_ω",
        "paper/rules/parts.py",
        'limits["S3"] = self.kappa_p * self.kappa_omega / (size * beta)',
        'limits["S3"] = self.kappa_p / (size * beta)',
    ),
    Break(
        "δ is 0.25 by default", "paper/rules/parts.py", "delta: float = 0.35", "delta: float = 0.25"
    ),
    Break(
        "the margin is unit by default",
        "paper/rules/parts.py",
        'margin: str = "weighted"',
        'margin: str = "unit"',
    ),
    Break(
        "θ becomes 1 − θ",
        "paper/rules/parts.py",
        _SHARE,
        "return Candidate(alpha, theta, C_can + ((1 - theta) * alpha) * R, (theta * alpha) * R)",
    ),
    Break(
        "η_d without the square of ‖B‖",
        "paper/rules/parts.py",
        "eta_d = self.kappa_p / (eta_x * beta)",
        "eta_d = self.kappa_p / (eta_x * model.norm_B)",
    ),
    Break(
        "S1 kept where C_aug = 0",
        "paper/rules/parts.py",
        'if self.s1 == "printed" or candidate.C_aug.any():',
        "if True:",
    ),
    Break(
        "S1 as printed left out",
        "paper/rules/parts.py",
        'if self.s1 == "printed" or candidate.C_aug.any():',
        "if candidate.C_aug.any():",
    ),
    Break(
        "the grid's strengths from below",
        "paper/rules/parts.py",
        "strengths: tuple[float, ...] = (4.0, 2.0, 1.0)",
        "strengths: tuple[float, ...] = (1.0, 2.0, 4.0)",
    ),
    Break(
        "the grid's θ from above",
        "paper/rules/parts.py",
        "tuple(i / 10 for i in range(11))",
        "tuple(1 - i / 10 for i in range(11))",
    ),
    Break(
        "problem (P) with S3 doubled",
        "paper/rules/optimal.py",
        "optimistic = basis * (model.norm_B**2 /",
        "optimistic = 2 * basis * (model.norm_B**2 /",
        (CLAIMS,),
    ),
    Break(
        "L_C with C where sym(C) belongs",
        "paper/claims/trajectories.py",
        "run_with=0.5 * (C + C.T)",
        "run_with=C",
        (CLAIMS,),
    ),
    Break(
        "a failing claim stops the others",
        "paper/claims/claim.py",
        "    except Exception as error:",
        "    except KeyboardInterrupt as error:",
        (CLAIMS,),
    ),
    Break(
        "the learned Hessian is never taught",
        "problem/oracle.py",
        "if self.functions.second is not None:",
        "if True:",
        (CLAIMS,),
    ),
    Break(
        "the hybrid beats the worse endpoint",
        "paper/experiment/verdicts.py",
        'share(at("closed-w")) - np.maximum(share(at("aug-w")), share(at("opt-w")))',
        'share(at("closed-w")) - np.minimum(share(at("aug-w")), share(at("opt-w")))',
        (REPORTING,),
    ),
    Break(
        "a statement holds where one level does",
        "paper/experiment/verdicts.py",
        "REFUTED if len(missed) == len(figures) else IN_PART",
        "HOLDS if len(missed) < len(figures) else REFUTED",
        (REPORTING,),
    ),
    Break(
        "twice is competitive", "paper/experiment/verdicts.py", '"≤ 1.5",', '"≤ 2",', (REPORTING,)
    ),
    Break(
        "tracking in one direction",
        "paper/experiment/verdicts.py",
        "1 / factor <= value <= factor",
        "value <= factor",
        (REPORTING,),
    ),
    Break(
        "weighting the wrong way round",
        "paper/experiment/verdicts.py",
        'hit_over(at("closed-w"), at("closed-u"))',
        'hit_over(at("closed-u"), at("closed-w"))',
        (REPORTING,),
    ),
    Break(
        "medians over unlike instances",
        "paper/experiment/verdicts.py",
        "np.median([cell.hits[seed] for seed in both])",
        "np.median(list(cell.hits.values()))",
        (REPORTING,),
    ),
    Break(
        "the budget ended runs that crossed",
        "paper/experiment/verdicts.py",
        "set(cell.over_budget) - cell.hits.keys()",
        "set(cell.over_budget)",
        (REPORTING,),
    ),
    Break(
        "the print is judged by the runs",
        "paper/experiment/verdicts.py",
        "statement.judged(in_print, {})",
        "statement.judged(summary, {})",
        (REPORTING,),
    ),
    Break(
        "one method by seeds that differ",
        "paper/experiment/verdicts.py",
        "{weighted.runs - differ} of",
        "{differ} of",
        (REPORTING,),
    ),
    Break(
        "a dash is not missed by half",
        "paper/experiment/verdicts.py",
        "2 * printed.SUCCESS.get(key, {}).get(c, FIVE) < FIVE",
        "printed.SUCCESS.get(key, {}).get(c, FIVE) < 1",
        (REPORTING,),
    ),
    Break(
        "table 2's brackets from table 1",
        "paper/experiment/tables.py",
        "        printed.HITS,\n        lambda",
        "        printed.SUCCESS,\n        lambda",
        (REPORTING,),
    ),
    Break(
        "no dash in table 2",
        "paper/experiment/tables.py",
        "self.median_hit if 2 * self.successes >= self.runs else None",
        "self.median_hit",
        (REPORTING,),
    ),
    Break(
        "chances of another count",
        "paper/experiment/tables.py",
        "count_chance(says, cell.successes, cell.runs):.2f",
        "count_chance(says, cell.below_at_200, cell.runs):.2f",
        (REPORTING,),
    ),
    Break(
        "chances with replacement",
        "paper/experiment/tables.py",
        "comb(successes, k) * comb(runs - successes, FIVE - k)",
        "comb(FIVE, k) * successes**k * (runs - successes) ** (FIVE - k)",
        (SETTLING,),
    ),
    Break(
        "the chance of a median on one side",
        "paper/experiment/tables.py",
        "min(np.mean(medians <= says), np.mean(medians >= says))",
        "np.mean(medians <= says)",
        (SETTLING,),
    ),
    Break(
        "never left is still below",
        "paper/experiment/tables.py",
        "never_left=sum(run.stays for run in group)",
        "never_left=sum(run.at_end for run in group)",
        (SETTLING,),
    ),
    Break(
        "all that cross arrive",
        "paper/experiment/tables.py",
        "below_at_1500=sum(run.arrives for run in group)",
        "below_at_1500=sum(run.hit is not None for run in group)",
        (SETTLING,),
    ),
    Break(
        "a table shows another count",
        "paper/experiment/tables.py",
        '_SETTLING, lambda cell: f"{cell.never_left}"',
        '_SETTLING, lambda cell: f"{cell.below_at_200}"',
        (REPORTING,),
    ),
    Break(
        "residuals at 200 for those at the hit",
        "paper/experiment/files.py",
        "for t in (r.hit, -1)",
        "for t in (-1, r.hit)",
        (REPORTING,),
    ),
    Break(
        "μ and ν exchanged in residuals.csv",
        "paper/experiment/files.py",
        'series = ("errors", "feasibility", "stationarity", "effective")',
        'series = ("errors", "feasibility", "effective", "stationarity")',
        (REPORTING,),
    ),
    Break(
        "a run that broke off stagnates",
        "paper/experiment/files.py",
        "        if run.broke_off:\n            row[",
        "        if False:\n            row[",
        (REPORTING,),
    ),
    Break(
        "means drawn for medians",
        "paper/experiment/files.py",
        "np.median(errors, axis=0), label",
        "np.mean(errors, axis=0), label",
        (REPORTING,),
    ),
    Break(
        "bands of a few runs",
        "paper/experiment/files.py",
        "            if len(group) >= ENOUGH:\n",
        "            if True:\n",
        (REPORTING,),
    ),
    Break(
        "bands of all runs",
        "paper/experiment/files.py",
        "np.quantile(errors, [0.25, 0.75]",
        "np.quantile(errors, [0.0, 1.0]",
        (REPORTING,),
    ),
    Break(
        "the print drawn of another method",
        "paper/experiment/files.py",
        "for c, v in printed.NORM_M[key].items() if v is not None}\n        color",
        'for c, v in printed.NORM_M["grid-w"].items() if v is not None}\n        color',
        (REPORTING,),
    ),
    Break(
        "growth from the end levels",
        "paper/experiment/norms.py",
        "np.polyfit(np.log(conditions), np.log(values), 1)[0]",
        "np.log(values[-1] / values[0]) / np.log(conditions[-1] / conditions[0])",
        (REPORTING,),
    ),
    Break(
        "the least ratio for the largest",
        "paper/experiment/norms.py",
        "RATIO: float(np.max(C / bound))",
        "RATIO: float(np.min(C / bound))",
        (REPORTING,),
    ),
    Break(
        "the multiplier step is not c",
        "paper/experiment/experiment.py",
        '{"penalty": c, "dual_step": c}',
        '{"penalty": c}',
        (SETTLING,),
    ),
)


def run_tests(folder: Path, tests: Sequence[str]) -> tuple[bool, str]:
    """Run tests of the copy; whether all passed, and the first that did not."""
    # Without a configuration file of its own, so that nothing of this checkout comes along.
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += [str(folder / "tests" / name) for name in tests]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    failed = re.search(r"^(?:FAILED|ERROR) \S*?tests/(\S+)", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0, failed.group(1) if failed else ""


def copied(folder: Path) -> None:
    """Copy what the tests need, and make sure that they take the copy."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("casadi_hybrid", "tests", "benchmarks", "scenarios"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    found = subprocess.run(
        [sys.executable, "-c", "import casadi_hybrid; print(casadi_hybrid.__file__)"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if not Path(found).is_relative_to(folder):
        raise RuntimeError(f"Python takes {found}, not the copy in {folder}; nothing would break")


def noticed(folder: Path, one: Break) -> str:
    """The test that notices a break, or an empty text."""
    file = folder / "casadi_hybrid" / one.file
    text = file.read_text(encoding="utf-8")
    file.write_text(one.applied(text), encoding="utf-8")
    try:
        return run_tests(folder, one.tests)[1]
    finally:
        file.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0 if every break was noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="parts of the names of breaks")
    parser.add_argument("--list", action="store_true", help="print the breaks and run nothing")
    options = parser.parse_args(arguments)
    words = [word.lower() for word in options.words]
    chosen = [b for b in BREAKS if not words or any(word in b.name.lower() for word in words)]
    if not chosen:
        parser.error(f"no break has any of {', '.join(options.words)} in its name; see --list")
    for one in chosen:
        one.applied(one.source)
    if options.list:
        for one in chosen:
            print(f"{one.name:<38} {one.file:<28} {' '.join(one.tests)}")
        return 0
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="breaks-") as name:
        folder = Path(name).resolve()
        copied(folder)
        began = time.perf_counter()
        passed, failed = run_tests(folder, sorted({test for b in chosen for test in b.tests}))
        if not passed:
            print(f"The tests fail without any break: {failed}")
            return 1
        print(f"{'break':<38} {'noticed by':<84} {'seconds':>7}")
        print(f"{'none':<38} {'-':<84} {time.perf_counter() - began:7.1f}")
        for one in chosen:
            began = time.perf_counter()
            by = noticed(folder, one)
            unnoticed += not by
            seconds = time.perf_counter() - began
            print(f"{one.name:<38} {by or 'UNNOTICED':<84} {seconds:7.1f}", flush=True)
    print(f"{len(chosen) - unnoticed} of {len(chosen)} breaks noticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
