"""The page's table of IPOPT's options has all of them, and says of each what the code does."""

import ast
import re
import subprocess
import sys
import warnings
from pathlib import Path

import casadi as ca
import pytest

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.casadi_api import foreign
from casadi_hybrid.casadi_api.foreign import OptionWarning

PAGE = Path(__file__).resolve().parent.parent / "docs" / "from_ipopt.md"
X = ca.SX.sym("x")
NLP = {"x": X, "f": X**2}
ALL = """
import casadi as ca
x = ca.SX.sym("x")
words = {"print_options_documentation": "yes", "print_advanced_options": "yes"}
ca.nlpsol("s", "ipopt", {"x": x, "f": x**2}, {"ipopt": words})()
"""
SAMPLES = {
    "tol": 1e-4, "constr_viol_tol": 1e-9, "dual_inf_tol": 1e-9, "compl_inf_tol": 1e-9,
    "max_iter": 3, "max_wall_time": 9.0, "max_cpu_time": 9.0, "diverging_iterates_tol": 1e9,
    "hessian_approximation": "limited-memory", "warm_start_init_point": "no", "print_level": 5,
}  # fmt: skip
"""A value of every option that is used, which is not the default."""


def rows() -> dict[str, tuple[str, str]]:
    """The table: pattern → what becomes of it, and the sentence."""
    found: dict[str, tuple[str, str]] = {}
    table = PAGE.read_text("utf-8").split("| option of IPOPT |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        names, kind, said = (cell.strip() for cell in line.strip("|").split(" | "))
        assert said
        for name in re.findall(r"`([^`]+)`", names):
            assert name not in found, name
            found[name] = kind, said
    return found


TABLE = rows()


def documented() -> set[str]:
    """The options that IPOPT itself documents."""
    done = subprocess.run([sys.executable, "-c", ALL], capture_output=True, text=True, check=True)
    text = done.stdout.split("This is Ipopt version")[0]
    return set(re.findall(r"^([a-z][a-z0-9_]*) +.*\(", text, flags=re.MULTILINE))


def row(name: str) -> str | None:
    """The row of a name: its own, or the one that all that begin so have."""
    if name in TABLE:
        return name
    near = [one for one in TABLE if one[-1] == "*" and name.startswith(one[:-1])]
    assert len(near) <= 1, (name, near)
    return near[0] if near else None


def becomes(name: str, value: object) -> str:
    """What the code does with an option: used, accepted, left out or refused."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            options = nlpsol("s", "hybrid", NLP, {f"ipopt.{name}": value}).options
        except InputError:
            return "refused"
    if caught:
        assert caught[0].category is OptionWarning
        assert name in str(caught[0].message)
        assert "docs/from_ipopt.md" in str(caught[0].message)
        return "left out"
    return "accepted" if options == nlpsol("s", "hybrid", NLP).options else "used"


def test_every_option_of_ipopt_has_one_row() -> None:
    names = documented()
    assert len(names) > 250
    assert {name for name in names if row(name) is None} == set()
    used = {row(name) for name in names}
    casadis = {"sb", "suppress_all_output"}  # not documented by IPOPT itself
    newer = {"file_append"}  # than the IPOPT of CasADi 3.7
    assert casadis <= set(TABLE) - used <= casadis | newer


def test_the_table_knows_what_the_code_knows() -> None:
    of_kind = lambda kind: {name for name, (one, _) in TABLE.items() if one == kind}  # noqa: E731
    assert of_kind("used") == {*foreign._IPOPT, "print_level"} == set(SAMPLES)
    assert of_kind("accepted") == foreign._IPOPT_WITHOUT_EFFECT
    at = {name: kind for name, (kind, _) in TABLE.items() if kind.startswith("at ")}
    values = {name: tuple(map(ast.literal_eval, re.findall("`([^`]*)`", kind)))
              for name, kind in at.items()}  # fmt: skip
    assert values == foreign._IPOPT_AS_HERE


@pytest.mark.parametrize("name", [name for name in TABLE if name[-1] != "*"])
def test_an_option_does_what_its_row_says(name: str) -> None:
    kind, said = TABLE[name]
    if kind.startswith("at "):
        for value in foreign._IPOPT_AS_HERE[name]:
            assert becomes(name, value) == "accepted"
        other = {"obj_scaling_factor": -1.0, "mu_target": 0.1, "replace_bounds": "yes"}
        refused = becomes(name, other.get(name, 17))
        assert refused == ("refused" if "refused" in said else "left out")
    else:
        assert becomes(name, SAMPLES.get(name, 17)) == kind
