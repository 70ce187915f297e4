"""What the tokens of the tasks are: keys, values, noise ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

COLORS = {
    "key": "cyan",
    "value": "yellow",
    "noise": "bright_black",
    "padding": "bright_black",
    "blank": "bright_black",
    "token": "green",
    "copy": "magenta",
    "answer here": "magenta",
    "end": "magenta",
}
"""The role of a token, and its colour."""

Bounds = list[tuple[int, str]]
"""The first token that is no more of a role, and the role, in order."""


def roles_of(task: Any, tokens: list[int]) -> list[str]:
    """The role of each token; all are plain tokens in a task that is not known."""
    bounds = _BOUNDS.get(task.name, _plain)(task)
    return [next(role for end, role in bounds if token < end) for token in tokens]


def _plain(task: Any) -> Bounds:
    return [(task.vocab_size, "token")]


def _recall(task: Any) -> Bounds:
    noise = getattr(task, "noise_vocab_size", 0)
    symbols = task.vocab_size - noise - (not task.multi_query)
    whole = [(symbols // 2, "key"), (symbols, "value"), (task.vocab_size - noise, "copy")]
    return [*whole, (task.vocab_size, "noise")]


def _fuzzy(task: Any) -> Bounds:
    last = task.vocab_size - 1
    return [(last // 2, "key"), (last, "value"), (task.vocab_size, "padding")]


def _memorization(task: Any) -> Bounds:
    last = task.vocab_size - 1
    return [(last // 2, "key"), (last, "value"), (task.vocab_size, "answer here")]


def _compression(task: Any) -> Bounds:
    return [(task.vocab_size - 1, "token"), (task.vocab_size, "end")]


def _copying(task: Any) -> Bounds:
    last = task.vocab_size - 1
    return [(last - 1, "token"), (last, "blank"), (task.vocab_size, "copy")]


_BOUNDS: dict[str, Callable[[Any], Bounds]] = {
    "in-context-recall": _recall,
    "noisy-in-context-recall": _recall,
    "fuzzy-in-context-recall": _fuzzy,
    "memorization": _memorization,
    "compression": _compression,
    "selective-copying": _copying,
}
