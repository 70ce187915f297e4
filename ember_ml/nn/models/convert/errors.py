"""Errors of the conversion."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml._core.errors import EmberError


class ConversionError(EmberError, ValueError):
    """A checkpoint or model without a counterpart in the other library.

    Attributes:
        problems: The reasons, one by one.
    """

    def __init__(self, what: str, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__(f"{what}:\n" + "\n".join(f"  {problem}" for problem in problems))
