"""Tables of calls that the package refuses."""

import pytest

from casadi_hybrid import InputError


def assert_refused(*rows, by=None):
    """Hold that each row's call raises an InputError whose message has the row's words.

    A row is a function without arguments, or arguments by name of ``by``, and the words.
    """
    for call, words in rows:
        with pytest.raises(InputError, match=words):
            call() if by is None else by(**call)
