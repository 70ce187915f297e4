"""Stages: what runs on the items, and how."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.nn.module import Module
from ember_ml.nn.pipeline.asynchronous.batch import Batch, check_results, split_rows, stack_for

OnError: TypeAlias = Literal["raise", "yield", "skip"]
"""What happens to an item that fails in a stage."""


@dataclass(frozen=True)
class Stage:
    """Function, coroutine function or module, and how it runs.

    Args:
        function: What runs on the items.
        name: Name of the stage.
        concurrency: Maximum number of calls at once, each in a thread of its own, or in a task for
            coroutine functions. A module runs in one thread.
        timeout: Maximum duration of a call in seconds; None for no limit.
        on_error: What happens to an item that fails.
        max_failures: Number of failed items of one `map` after which it raises.
        batch: How items are grouped; None to call the stage with single items.
        pure: Whether a failed batch may be run again in halves.
    """

    function: Callable[..., Any]
    name: str
    concurrency: int = 1
    timeout: float | None = None
    on_error: OnError = "raise"
    max_failures: int | None = None
    batch: Batch | None = None
    pure: bool = False

    def __post_init__(self) -> None:
        where = f"add_stage({self.name!r})"
        if not callable(self.function):
            raise ArgumentTypeError(
                f"{where}: a stage must be a function, a coroutine function or a module, "
                f"not {self.function!r:.60}"
            )
        if inspect.isasyncgenfunction(self.function) or inspect.isgeneratorfunction(self.function):
            raise ArgumentTypeError(f"{where}: a stage must return one result; it is a generator")
        check_count(where, "concurrency", self.concurrency, 1)
        if self.concurrency > 1 and isinstance(self.function, Module):
            raise ArgumentError(
                f"{where}: a module runs in one thread, so concurrency must be 1, "
                f"not {self.concurrency}; use batch=Batch(...) for throughput"
            )
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise ArgumentError(
                f"{where}: timeout must be a positive number of seconds, not {self.timeout!r}"
            )
        check_choice(where, "on_error", self.on_error, get_args(OnError))
        if self.max_failures is not None:
            check_count(where, "max_failures", self.max_failures, 0)
            if self.on_error == "raise":
                raise ArgumentError(
                    f'{where}: max_failures needs on_error="skip" or "yield"; '
                    'on_error="raise" stops at the first failure'
                )
        if self.batch is not None and not isinstance(self.batch, Batch):
            raise ArgumentTypeError(f"{where}: batch must be a Batch, not {self.batch!r:.60}")

    @property
    def is_coroutine(self) -> bool:
        """Whether the stage runs on the event loop."""
        return is_coroutine_function(self.function)

    def collate(self, values: list[Any]) -> Any:
        """Return the argument of the call for some items.

        Args:
            values: Inputs, one for each item.
        """
        if self.batch is None:
            return values[0]
        if self.batch.collate is not None:
            return self.batch.collate(values)
        if isinstance(self.function, Module):
            return stack_for(self.function)(values)
        return values

    def split(self, result: Any, number: int) -> Sequence[Any]:
        """Return the results of the items of a call.

        Args:
            result: What the call returned.
            number: Number of items.
        """
        if self.batch is None:
            return [result]
        if self.batch.split is not None:
            return check_results(self.batch.split(result, number), number)
        if isinstance(self.function, Module):
            return split_rows(result, number)
        return check_results(result, number)


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Return whether calls of a function or object must be awaited."""
    return inspect.iscoroutinefunction(function) or (
        not isinstance(function, type)
        and inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
    )


def check_count(where: str, name: str, value: object, least: int) -> None:
    """Raise an ArgumentError unless a value is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(f"{where}: {name} must be an integer >= {least}, not {value!r}")


def check_choice(where: str, name: str, value: object, choices: Sequence[str]) -> None:
    """Raise an ArgumentError unless a value is one of some strings."""
    if value not in choices:
        raise ArgumentError(
            f"{where}: {name} must be {' or '.join(map(repr, choices))}, not {value!r:.60}"
        )
