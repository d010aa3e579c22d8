"""A wrong call raises an InputError that says how the function is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from casadi_hybrid.basics.errors import InputError, suggest

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
_NONE = inspect.Parameter.empty


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


def _checked_making(init: Callable[P, R]) -> Callable[P, R]:
    """That of a dataclass, where a TypeError from inside is one of the values as well."""
    making = checked_call(init)

    @wraps(init)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return making(*args, **kwargs)
        except TypeError as error:
            raise InputError(
                _sentence(init, args, kwargs, f"these values do not fit: {error}")
            ) from error

    return made


def checked_calls(cls: C) -> C:
    """Do so for a class: for its making and, but of a dataclass, each public method of its own."""
    for name, value in list(vars(cls).items()):
        if not inspect.isfunction(value):
            continue
        if name == "__init__":
            setattr(cls, name, (_checked_making if is_dataclass(cls) else checked_call)(value))
        elif not (name.startswith("_") or is_dataclass(cls)):
            setattr(cls, name, checked_call(value))
    return cls


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
    names = list(signature.parameters)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        reason = str(error)
    strange = [word for word in kwargs if word not in names]
    if strange:
        reason = f"there is no argument {strange[0]!r}{suggest(strange[0], names)}"
    elif reason.startswith("too many") and "*" in str(signature):
        reason += "; what stands after * is given by name"
    method = names[:1] == ["self"]
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
