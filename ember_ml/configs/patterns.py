"""Layer patterns such as "(mamba swiglu)x3 attention swiglu"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, Problem, below
from ember_ml.configs.fields import ComponentLike
from ember_ml.registry import components
from ember_ml.registry.base import Entry, UnknownComponentError, close_matches

KINDS = ("layers", "blocks")
"""Kinds of components in a pattern; bare names are looked up in this order."""
WIDTHS = ("features", "hidden_size", "in_features", "out_features")
"""Required fields that default to the width of the model."""
MAX_LAYERS = 10_000
"""Limit on the number of layers of a pattern, to catch typing errors."""
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<join>[,+])|(?P<open>\()|(?P<close>\)(?:\s*[x*]\s*(?P<group>\d+))?)"
    r"|(?P<name>[A-Za-z_][\w/.-]*)(?:\[(?P<options>[^\]]*)\])?(?:\*(?P<times>\d+))?"
)


def expand(pattern: str) -> list[str | dict[str, Any]]:
    """Return the layers of a pattern, in order.

    Names are separated by spaces, "+" or ",". "(...)x3" repeats a group, "name*3" a single layer,
    and "name[option=value]" sets options.

    Args:
        pattern: The pattern.

    Example:
        >>> from ember_ml.configs.patterns import expand
        >>> expand("(mamba swiglu)x2 attention[num_heads=4]")
        ['mamba', 'swiglu', 'mamba', 'swiglu', {'type': 'attention', 'num_heads': 4}]
    """
    open_groups: list[list[Any]] = [[]]
    at = 0
    previous: re.Match[str] | None = None
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None:
            raise _error(pattern, f"{pattern[at:]!r} at {at} is not the name of a layer")
        at = match.end()
        if match["space"]:
            continue
        if match["join"] or (match["close"] and len(open_groups) > 1):
            _check_follows_layer(pattern, match, previous)
        previous = match
        if "0" in (match["group"], match["times"]):
            raise _error(pattern, f"{match[0]!r} at {match.start()} repeats zero times")
        if match["open"]:
            open_groups.append([])
        elif match["close"]:
            if len(open_groups) == 1:
                raise _error(pattern, f"the ) at {match.start()} has no matching (")
            group = open_groups.pop()
            open_groups[-1] += _repeated(pattern, group, match["group"])
        elif match["name"]:
            open_groups[-1] += _repeated(pattern, [_item(pattern, match)], match["times"])
    if previous is not None and previous["join"]:
        raise _misplaced(pattern, previous)
    if len(open_groups) > 1:
        raise _error(pattern, "a ( has no matching )")
    if not open_groups[0]:
        raise _error(pattern, "the pattern is empty")
    return open_groups[0]


def _check_follows_layer(
    pattern: str, match: re.Match[str], previous: re.Match[str] | None
) -> None:
    """Raise an error if a separator or the end of a group does not follow a layer or a group."""
    if previous is not None and previous["join"]:
        raise _misplaced(pattern, previous)
    if match["join"] and (previous is None or previous["open"]):
        raise _misplaced(pattern, match)
    if previous is not None and previous["open"]:
        raise _error(pattern, f"the group at {previous.start()} is empty")


def _misplaced(pattern: str, match: re.Match[str]) -> ConfigError:
    return _error(pattern, f"{match[0]!r} at {match.start()} must stand between two layers")


def _repeated(pattern: str, group: list[Any], times: str | None) -> list[Any]:
    count = int(times or 1)
    if count * len(group) > MAX_LAYERS:
        raise _error(pattern, f"{count:,} times {len(group)} are more than {MAX_LAYERS:,} layers")
    return group * count


def _item(pattern: str, match: re.Match[str]) -> str | dict[str, Any]:
    if match["options"] is None:
        return match["name"]
    from ember_ml.configs.files import parse

    item: dict[str, Any] = {"type": match["name"]}
    for option in filter(None, (part.strip() for part in match["options"].split(","))):
        key, equals, value = option.partition("=")
        if not equals or key.strip() in ("", "type"):
            raise _error(pattern, f"an option must be key=value, not {option!r}")
        item[key.strip()] = parse(value, f"{match['name']}[{key.strip()}]")
    return item


def _error(pattern: str, message: str) -> ConfigError:
    return ConfigError("pattern", [Problem((), f"{message} (in {pattern!r})")])


def items_of(layers: Any) -> list[Any]:
    """Return the layers of a pattern or a list; patterns inside a list are expanded."""
    if isinstance(layers, str):
        return list(expand(layers))
    items: list[Any] = []
    for item in layers:
        items += expand(item) if isinstance(item, str) else [item]
    return items


def entry_of(name: Any) -> Entry:
    """Return the registry entry of a layer or block.

    Args:
        name: The name, with or without the kind.

    Raises:
        ConfigError: The name is unknown; similar names are suggested.

    Example:
        >>> from ember_ml.configs.patterns import entry_of
        >>> entry_of("mh-attention").name
        'layers/mh_attention'
    """
    for kind in KINDS:
        try:
            return components.get(name, None if "/" in str(name) else kind)
        except UnknownComponentError:
            continue
    names = [known for entry in _all() for known in _names(entry)]
    hint = close_matches(str(name).rpartition("/")[2], dict.fromkeys(names))
    hint = hint or f"; there are {', '.join(sorted({entry.bare for entry in _all()}))}"
    raise ConfigError("layers", [Problem((), f"no layer or block named {name!r}{hint}")])


def _all() -> list[Entry]:
    return [entry for kind in KINDS for entry in components.available(kind)]


def _names(entry: Entry) -> list[str]:
    return [name.partition("/")[2] for name in (entry.name, *entry.aliases)]


def sized(item: Any, width: int, **given: Any) -> Any:
    """Return the config of a layer given by name or by a mapping, with its width filled in.

    Args:
        item: The layer: a name, a mapping with "type", a config or a module. The last two are
            returned unchanged.
        width: Value of the required fields in `WIDTHS`.
        **given: Values of other fields, used if the layer has them and `item` does not set them.

    Example:
        >>> from ember_ml.configs.patterns import sized
        >>> sized({"type": "attention", "num_heads": 4}, 32).features
        32
    """
    if isinstance(item, str):
        item = {"type": item}
    if not isinstance(item, Mapping):
        return item
    values = {str(key): value for key, value in item.items()}
    cls = entry_of(values.pop("type", None)).config
    fields = cls.model_fields
    missing = {name: width for name in WIDTHS if name in fields and fields[name].is_required()}
    if {"hidden_size", "layers"} <= fields.keys():  # optional in a block of any layers
        missing["hidden_size"] = width
    missing |= {name: value for name, value in given.items() if name in fields}
    return cls(**{**missing, **values})


def longest(max_length: int | None) -> dict[str, Any]:
    """Return the keyword argument of `sized` for the maximum sequence length, if it is known."""
    return {} if max_length is None else {"max_length": max_length}


def width_of(config: Any) -> int | None:
    """Return the width of the layer that a config describes, or None."""
    fields = () if config is None else type(config).model_fields
    return next((getattr(config, name) for name in WIDTHS if name in fields), None)


def check_names(value: Any) -> Any:
    """Check the names of layers; other fields are checked once the width is known."""
    if isinstance(value, (str, Mapping, Config)) or not isinstance(value, Sequence):
        value = value if isinstance(value, str) else (value,)
    problems = []
    try:
        items = items_of(value)
    except ConfigError as error:
        items, problems = [], error.problems
    for at, item in enumerate(items):
        try:
            _check_item(item)
        except ConfigError as error:
            problems += below(error, at)
    if problems:
        raise ConfigError("layers", problems)
    return value if isinstance(value, str) else tuple(value)


def _check_item(item: Any) -> None:
    if isinstance(item, (str, Mapping)):
        entry_of(item.get("type") if isinstance(item, Mapping) else item)
    elif components.is_plain(item):
        raise ConfigError(
            "layers", [Problem((), f"must be a layer or the name of one, not {item!r:.60}")]
        )


LayersLike: TypeAlias = ComponentLike | Sequence[ComponentLike]
"""Layers and blocks: a pattern, or a list of names, {"type": ...}, configs and modules."""
LayersField = Annotated[LayersLike, PlainValidator(check_names), WithJsonSchema({})]
"""A parameter that takes layers and blocks."""
