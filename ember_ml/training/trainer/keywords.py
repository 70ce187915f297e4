"""Suggestions for misspelled keyword arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.registry.base import close_matches

P = ParamSpec("P")
R = TypeVar("R")


def with_suggestions(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator whose errors about unknown keyword arguments suggest known ones.

    The signature of the decorated function stays visible to `inspect` and type checkers.

    Args:
        name: Name of the function in errors.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = [
            each.name
            for each in inspect.signature(function).parameters.values()
            if each.kind is not each.POSITIONAL_ONLY and each.name != "self"
        ]

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for each in kwargs:
                if each not in known:
                    raise ArgumentTypeError(
                        f"{name} has no argument {each!r}{close_matches(each, known)}"
                    )
            return function(*args, **kwargs)

        return call

    return decorate
