"""Layouts: which parameters are stored in parts, chosen by name."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.nn import Parameter
from ember_ml.nn.splitting import Split
from ember_ml.registry.base import close_matches


class Layout:
    """Parameters that the processes of a tensor parallel group store in parts.

    A layer with a split of its own computes with its part. Any other parameter is gathered where
    it is used: this saves memory, but each process computes the whole layer.

    Args:
        patterns: Pattern of parameter names, as of file names -> axis, or `Split`. The first
            pattern that matches a parameter counts.

    Example:
        >>> from ember_ml.distributed.layout import Layout
        >>> layout = Layout({"embedding.weight": 0, "*.norm.weight": 0})
        >>> sorted(layout.splits(nn.models.LanguageModel("swiglu", 8, 16).named_parameters()))
        ['backbone.blocks.0.norm.weight', 'backbone.norm.weight', 'embedding.weight']
    """

    def __init__(self, patterns: Mapping[str, int | Split]) -> None:
        for pattern, value in patterns.items():
            if isinstance(value, bool) or not isinstance(value, (int, Split)):
                raise ArgumentTypeError(
                    f"Layout: {pattern!r} must be the axis to split, or a Split, not {value!r:.60}"
                )
            if isinstance(value, Split) and value.kept:
                raise ArgumentError(
                    f"Layout: {pattern!r} keeps the blocks {value.kept}; only layers can do that"
                )
        self.patterns = dict(patterns)

    def __repr__(self) -> str:
        return f"Layout({self.patterns!r})"

    def splits(self, named: Iterable[tuple[str, Parameter]]) -> dict[str, Split]:
        """Return the splits of the parameters that match; raise if a pattern matches none.

        Args:
            named: Names and parameters of a model.
        """
        parameters = dict(named)
        for pattern in self.patterns:
            if not fnmatch.filter(parameters, pattern):
                raise ArgumentError(
                    f"Layout: no parameter matches {pattern!r}{_suggestion(pattern, parameters)}"
                )
        matches = {name: self._first_match(name) for name in parameters}
        return {
            name: as_split(name, self.patterns[pattern], parameters[name])
            for name, pattern in matches.items()
            if pattern is not None
        }

    def _first_match(self, name: str) -> str | None:
        return next((x for x in self.patterns if fnmatch.fnmatchcase(name, x)), None)


def as_split(name: str, value: int | Split, parameter: Parameter) -> Split:
    """Return the split of a parameter.

    Args:
        name: Name of the parameter, for errors.
        value: The axis, which may count from the end, or the split.
        parameter: The parameter.
    """
    if isinstance(value, Split):
        return value
    if not -parameter.ndim <= value < parameter.ndim:
        raise ArgumentError(
            f"Layout: {name} of shape {parameter.shape} has no axis {value}; use an axis below "
            f"{parameter.ndim}"
        )
    return Split(value % parameter.ndim)


def _suggestion(pattern: str, names: Mapping[str, Parameter]) -> str:
    """Return names like the pattern, or the first names, to end an error message."""
    close = close_matches(pattern.replace("*", ""), names)
    return close or f"; there are {', '.join(list(names)[:5])}{' ...' * (len(names) > 5)}"
