"""Tests of what CasADi 3.7, the lowest release that serves, has not or does otherwise."""

from casadi_hybrid.problem.graph.directions import BEFORE_3_8

_LOST = "CasADi 3.7 loses an interrupt of its callbacks"
_OFTEN = "CasADi 3.7 cannot differentiate a QP solver so often"
_GRAPH = "CasADi 3.7 makes a SystemError of it, with the interrupt as its cause"
_FROM_IPOPT = "test_blocks_run_and_print_what_stands_below[docs/from_ipopt.md]"
NEEDS_3_8 = {
    "test_interrupt_of_a_model_stops_the_solve": _LOST,
    "test_an_interrupt_inside_a_function_ends_the_batch": _LOST,
    "test_copy_leaves_the_first_alone": "CasADi 3.7.0 has no context for pickles",
    "test_ctrl_c_is_raised_wherever_it_arrives[graph]": _GRAPH,
    "test_the_listed_options_are_casadis_own": "CasADi 3.7 has fewer options",
    "test_each_operation_is_casadis": "CasADi 3.7 has fewer operations",
    "test_all_that_is_written_compiles_and_links": "CasADi 3.7 writes no determinant",
    "test_code_that_needs_more_is_refused[a solver]": _OFTEN,
    "test_where_ipopt_ends[HS55]": "the IPOPT of that wheel ends elsewhere",
    _FROM_IPOPT: "CasADi 3.7 has no abs(…) of a vector",
    "test_fatrop_finds_the_stages": "the options of this solver are those of CasADi 3.8",
}
"""Why a test is left out before CasADi 3.8, by its name, or that of its function for all cases."""


def left_out(name: str) -> str | None:
    """Why the test of this name, "function[case]", does not run with this CasADi."""
    if not BEFORE_3_8:
        return None
    function = name.partition("[")[0]
    return NEEDS_3_8.get(name, NEEDS_3_8.get(function))
