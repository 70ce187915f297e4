"""Parameter groups, each with its own options."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.nn import Module, Parameter, StateDictError
from ember_ml.registry.base import close_matches

Options: TypeAlias = Mapping[str, Any]
"""Options of an optimizer by name, without the learning rate."""
Named: TypeAlias = tuple[str, Parameter]
ParametersLike: TypeAlias = Module | Iterable[Parameter | Named | Mapping[str, Any]]
"""A module, parameters, (name, parameter) pairs, or groups: dicts with "params" and options."""


def check_match(value: object) -> Mapping[str, object]:
    """Return a group for parameters selected by name, as plain data.

    Args:
        value: {"match": pattern or patterns, option: value}.
    """
    if not isinstance(value, Mapping) or "match" not in value:
        raise ValueError(f"must be a mapping with 'match' and options, not {value!r:.60}")
    patterns = value["match"]
    listed = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(listed, (list, tuple)) or not all(isinstance(x, str) for x in listed):
        raise ValueError(f"match must be a pattern or a list of patterns, not {patterns!r:.60}")
    plain = {str(key): option for key, option in value.items()}
    return {**plain, "match": patterns if isinstance(patterns, str) else list(listed)}


MatchedGroups = tuple[
    Annotated[
        Mapping[str, object],
        PlainValidator(check_match),
        WithJsonSchema({"type": "object", "required": ["match"]}),
    ],
    ...,
]
"""Groups of parameters selected by name: {"match": "*.bias", option: value}."""


class Group:
    """Parameters that share their options.

    Attributes:
        names: Names of the parameters.
        parameters: The parameters.
        options: All options but the learning rate.
    """

    def __init__(self, named: list[Named], options: Mapping[str, Any]) -> None:
        self._members = named
        self.include([name for name, parameter in named if parameter.trainable])
        self.set_options(options)

    def include(self, names: Iterable[str]) -> None:
        """Set the parameters that are updated; frozen ones join when they are unfrozen.

        Args:
            names: Names of the parameters.
        """
        wanted = set(names)
        included = [(name, x) for name, x in self._members if name in wanted]
        self.names = [name for name, _ in included]
        self.parameters = [x for _, x in included]
        self.frozen = [(name, x) for name, x in self._members if name not in wanted]

    def members(self) -> list[Named]:
        """Return all parameters with their names, including those that are frozen."""
        return list(self._members)

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Replace the options, including the learning rate."""
        self.learning_rate = options["learning_rate"]
        rest = {name: value for name, value in options.items() if name != "learning_rate"}
        self.options: Options = MappingProxyType(rest)

    @property
    def learning_rate(self) -> float:
        """Learning rate without the schedule's factor."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if not 0.0 <= value < float("inf"):
            raise ArgumentError(f"learning_rate must be finite and at least 0, not {value!r}")
        self._learning_rate = float(value)

    def all_options(self) -> dict[str, Any]:
        """Return the options, including the learning rate."""
        return {"learning_rate": self.learning_rate, **self.options}

    def plain(self) -> dict[str, Any]:
        """Return the options and the parameter names as plain data."""
        listed = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.all_options().items()
        }
        return {**listed, "params": list(self.names)}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.all_options().items())
        return f"Group({len(self.names)} parameters, {inside})"


def read_groups(
    owner: str,
    params: ParametersLike,
    options: Mapping[str, Any],
    matched: Sequence[Mapping[str, object]] = (),
) -> list[Group]:
    """Return the groups described by the arguments of an optimizer.

    Args:
        owner: Name of the optimizer's class, for errors.
        params: A module, parameters, (name, parameter) pairs, or groups.
        options: Options of groups that do not set their own.
        matched: Groups of parameters selected by name. The first match counts; parameters without
            one come first, in a group with `options`.
    """
    if not isinstance(params, Module):
        if isinstance(params, (Parameter, Mapping, str)) or not isinstance(params, Iterable):
            raise ArgumentTypeError(
                f"{owner}: params must be a module, a list of parameters or a list of groups, "
                f"not {params!r:.60}"
            )
        params = list(params)
    is_grouped = isinstance(params, list) and any(isinstance(part, Mapping) for part in params)
    if matched:
        if is_grouped:
            raise ArgumentError(f"{owner}: pass groups either in params or by 'match', not both")
        params = _matched(owner, _listed(owner, params), matched)
        is_grouped = True
    parts: Any = params if is_grouped else [{"params": params}]
    read = [_read_group(owner, part, options) for part in parts]
    named = _unique([_listed(owner, given) for given, _ in read])
    groups = [Group(group, own) for group, (_, own) in zip(named, read, strict=True)]
    _check(owner, groups)
    return groups


def _matched(
    owner: str, named: list[Named], matched: Sequence[Mapping[str, object]]
) -> list[dict[str, Any]]:
    """Return a group of the parameters that match nothing, and a group for each match."""
    groups = [check_match(each) for each in matched]
    members: list[list[Named]] = [[] for _ in (None, *groups)]
    for name, parameter in named:
        hits = (at for at, group in enumerate(groups, 1) if _matches(name, group["match"]))
        members[next(hits, 0)].append((name, parameter))
    for group, matching in zip(groups, members[1:], strict=True):
        if not matching:
            known = [name for name, _ in named]
            raise ArgumentError(
                f"{owner}: no parameter matches {group['match']!r}, or an earlier group has them; "
                f"there are {', '.join(known[:5])}{' ...' if len(known) > 5 else ''}"
            )
    own = [{key: x for key, x in group.items() if key != "match"} for group in groups]
    parts = [{"params": part, **x} for part, x in zip(members, ({}, *own), strict=True)]
    return parts if members[0] else parts[1:]


def _matches(name: str, patterns: object) -> bool:
    listed: Any = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in listed)


def _read_group(owner: str, part: object, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    if not isinstance(part, Mapping) or "params" not in part:
        raise ArgumentTypeError(
            f"{owner}: a list of groups must hold dicts with 'params' only, not {part!r:.60}"
        )
    own = {name: value for name, value in part.items() if name != "params"}
    for name in own:
        if name not in options:
            raise ArgumentError(
                f"{owner}: a group has no option {name!r}{close_matches(name, options)}"
            )
    return part["params"], {**options, **own}


def _listed(owner: str, given: Any) -> list[Named]:
    """Return the parameters with their names, which may be empty."""
    if isinstance(given, Module):
        return list(given.named_parameters())
    pairs: list[Named] = []
    for item in [given] if isinstance(given, Parameter) else given:
        pair = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
        name, parameter = pair
        if not isinstance(parameter, Parameter):
            raise ArgumentTypeError(
                f"{owner}: params must hold Parameters, or (name, Parameter), not {item!r:.60}"
            )
        pairs.append((parameter.name if name is None else name, parameter))
    return pairs


def _unique(groups: list[list[Named]]) -> list[list[Named]]:
    """Replace names that are empty or not unique by the parameter's position.

    Frozen parameters come after the others, whose positions do not depend on them.
    """
    everything = [pair for group in groups for pair in group]
    counts = {
        True: Counter(name for name, x in everything if x.trainable),
        False: Counter(name for name, _ in everything),
    }
    order = sorted(range(len(everything)), key=lambda at: not everything[at][1].trainable)
    positions = iter([str(order.index(at)) for at in range(len(everything))])
    result = []
    for group in groups:
        named = []
        for name, x in group:
            position = next(positions)
            named.append((name if name and counts[x.trainable][name] == 1 else position, x))
        result.append(named)
    return result


def _check(owner: str, groups: list[Group]) -> None:
    seen: dict[int, str] = {}
    for group in groups:
        for name, parameter in zip(group.names, group.parameters, strict=True):
            if id(parameter) in seen:
                raise ArgumentError(
                    f"{owner}: the parameter {name!r} occurs twice, also as {seen[id(parameter)]!r}"
                )
            if not parameter.dtype.is_floating:
                raise ArgumentTypeError(
                    f"{owner}: the parameter {name!r} is {parameter.dtype}; only floating-point "
                    "parameters can be trained"
                )
            seen[id(parameter)] = name
    if not any(group.names for group in groups):
        raise ArgumentError(f"{owner}: there is no trainable parameter")


def saved_options(
    owner: str, groups: Sequence[Group], saved: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the saved options of each group, which must have the same parameters.

    Args:
        owner: Name of the optimizer's class, for errors.
        groups: The optimizer's groups.
        saved: The results of `Group.plain`.
    """
    if len(saved) != len(groups):
        raise ArgumentError(
            f"{owner}: the optimizer has {len(groups)} groups, the state has {len(saved)}"
        )
    for mine, theirs in zip(groups, saved, strict=True):
        names = {name for name, _ in mine.members()}
        required = [name for name, x in mine.members() if name in mine.names and x.trainable]
        missing = [name for name in required if name not in theirs["params"]]
        unexpected = [name for name in theirs["params"] if name not in names]
        if missing or unexpected:
            raise StateDictError(owner, missing, unexpected, {})
    return [{name: group[name] for name in group if name != "params"} for group in saved]
