"""A wrong call raises an InputError that says how the function is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from casadi_hybrid.basics.errors import InputError, suggest

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function raise an InputError where its arguments do not fit its signature.

    The TypeError of a wrong call arises in the frame of the caller; one from inside of the
    function has a frame more, and is passed on.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise InputError(_sentence(function, args, kwargs)) from None

    return call


def checked_calls(cls: C) -> C:
    """Do so for a class: for its making and for each public method of its own."""
    for name, value in list(vars(cls).items()):
        if inspect.isfunction(value) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, checked_call(value))
    return cls


def _sentence(function: Callable[..., Any], args: Any, kwargs: Any) -> str:
    """What is wrong, and the signature without types."""
    signature = inspect.signature(function)
    names = list(signature.parameters)
    reason = "these arguments do not fit"
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        reason = str(error)
    strange = [word for word in kwargs if word not in names]
    if strange:
        reason = f"there is no argument {strange[0]!r}{suggest(strange[0], names)}"
    elif reason.startswith("too many"):
        reason += "; what stands after * is given by name"
    method = names[:1] == ["self"]
    shown = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in list(signature.parameters.values())[method:]
    ]
    plain = signature.replace(parameters=shown, return_annotation=inspect.Signature.empty)
    name = function.__qualname__.removesuffix(".__init__").split(".")[-1]
    stop = "" if reason.endswith("?") else "."
    return f"{reason}{stop} The call is {name}{plain}"
