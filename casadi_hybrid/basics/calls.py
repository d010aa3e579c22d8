"""A wrong call raises an InputError that says how the function is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from casadi_hybrid.basics.errors import InputError, suggest

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
_NONE = inspect.Parameter.empty


def checked_call(function: Callable[P, R], *, making: bool = False) -> Callable[P, R]:
    """Let a function raise an InputError where its arguments do not fit its signature.

    The TypeError of a wrong call arises in the frame of the caller; one from inside of the
    function has a frame more, and is passed on. In ``making`` a dataclass it is of the values.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise InputError(_sentence(function, args, kwargs)) from None
            if not making:
                raise
            reason = f"these values do not fit: {error}"
            raise InputError(_sentence(function, args, kwargs, reason)) from error

    return call


def checked_calls(cls: C) -> C:
    """Do so for a class: for its making and, but of a dataclass, each public method of its own."""
    for name, value in list(vars(cls).items()):
        if not inspect.isfunction(value):
            continue
        if name == "__init__":
            setattr(cls, name, checked_call(value, making=is_dataclass(cls)))
        elif not (name.startswith("_") or is_dataclass(cls)):
            setattr(cls, name, checked_call(value))
    return cls


def called_as(
    function: Any, what: str, form: str, args: Sequence[Any], partly: bool = False, /, **named: Any
) -> None:
    """Refuse what cannot be called so; ``partly``: with more by name. ``form`` is what to give."""
    try:
        signature = inspect.signature(function)
        (signature.bind_partial if partly else signature.bind)(*args, **named)
    except TypeError:
        made = callable(function)
        got = f"one of {inspect.signature(function)}" if made else type(function).__name__
        raise InputError(f"{what} must be {form}, got {got}") from None
    except ValueError:  # not all that is compiled says what it takes
        return


def check_classes(names: Iterable[str], namespace: Mapping[str, Any]) -> None:
    """Do so for all classes of a namespace with these names, and what they inherit from here."""
    own = __name__.partition(".")[0]
    for value in map(namespace.get, names):
        for cls in value.__mro__ if isinstance(value, type) else ():
            made = vars(cls).get("__init__")
            if cls.__module__.startswith(own) and not hasattr(made, "__wrapped__"):
                checked_calls(cls)


def _sentence(
    function: Callable[..., Any], args: Any, kwargs: Any, reason: str = "these arguments do not fit"
) -> str:
    """What is wrong, and the signature without types."""
    signature = inspect.signature(function)
    method = next(iter(signature.parameters), "") == "self"
    names = list(signature.parameters)[method:]
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        reason = str(error)
    strange = [word for word in kwargs if word not in names]
    if strange:
        reason = f"there is no argument {strange[0]!r}{suggest(strange[0], names)}"
    elif reason.startswith("too many") and "*" in str(signature):
        reason += "; what stands after * is given by name"
    shown = [
        one.replace(annotation=_NONE, default=_shown(one.default))
        for one in list(signature.parameters.values())[method:]
    ]
    plain = signature.replace(parameters=shown, return_annotation=_NONE)
    made = function.__name__ == "__init__"
    name = type(args[0]).__name__ if made else function.__name__
    stop = "" if reason.endswith("?") else "."
    return f"{reason}{stop} The call is {name}{plain}"


def _shown(default: Any) -> Any:
    """A default as it is shown: what a dataclass makes anew each time has no value to show."""
    return ... if repr(default) == "<factory>" else default
