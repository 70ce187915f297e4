"""Lists of layers, written as patterns such as "(mamba swiglu)x3 attention swiglu"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, Problem, below
from ember_ml.registry import components
from ember_ml.registry.base import Entry, UnknownComponentError, close_matches

KINDS = ("layers", "blocks")
"""What a list of layers is made of; a bare name is looked for in this order."""
WIDTHS = ("features", "hidden_size", "in_features", "out_features")
"""Fields that take the width of the model, where they must be given and are not."""
MOST = 10_000
"""Layers that a pattern may stand for; more are a slip of the finger."""
_TOKEN = re.compile(
    r"(?P<space>[\s,+]+)|(?P<open>\()|(?P<close>\)(?:\s*[x*]\s*(?P<group>\d+))?)"
    r"|(?P<name>[A-Za-z_][\w/.-]*)(?:\[(?P<options>[^\]]*)\])?(?:\*(?P<times>\d+))?"
)


def expand(pattern: str) -> list[str | dict[str, Any]]:
    """The layers that a pattern stands for, in order.

    Names stand side by side, or are joined by "+"; "(...)x3" repeats a group and "name*3" a name;
    options go into brackets.

    Example:
        >>> from ember_ml.configs.patterns import expand
        >>> expand("(mamba swiglu)x2 attention[num_heads=4]")
        ['mamba', 'swiglu', 'mamba', 'swiglu', {'type': 'attention', 'num_heads': 4}]
    """
    open_groups: list[list[Any]] = [[]]
    at = 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None:
            raise _error(pattern, f"{pattern[at:]!r} at {at} is no name of a layer")
        at = found.end()
        if "0" in (found["group"], found["times"]):
            raise _error(pattern, f"{found[0]!r} at {found.start()} repeats nothing")
        if found["open"]:
            open_groups.append([])
        elif found["close"]:
            if len(open_groups) == 1:
                raise _error(pattern, f"the ) at {found.start()} closes nothing")
            group = open_groups.pop()
            open_groups[-1] += _repeated(pattern, group, found["group"])
        elif found["name"]:
            open_groups[-1] += _repeated(pattern, [_item(pattern, found)], found["times"])
    if len(open_groups) > 1:
        raise _error(pattern, "a ( is not closed")
    if not open_groups[0]:
        raise _error(pattern, "it names no layer")
    return open_groups[0]


def _repeated(pattern: str, group: list[Any], times: str | None) -> list[Any]:
    count = int(times or 1)
    if count * len(group) > MOST:
        raise _error(pattern, f"{count:,} times {len(group)} are more than {MOST:,} layers")
    return group * count


def _item(pattern: str, found: re.Match[str]) -> str | dict[str, Any]:
    if found["options"] is None:
        return found["name"]
    from ember_ml.configs.files import parse

    item: dict[str, Any] = {"type": found["name"]}
    for option in filter(None, (part.strip() for part in found["options"].split(","))):
        key, equals, value = option.partition("=")
        if not equals or key.strip() in ("", "type"):
            raise _error(pattern, f"an option is key=value, not {option!r}")
        item[key.strip()] = parse(value, f"{found['name']}[{key.strip()}]")
    return item


def _error(pattern: str, message: str) -> ConfigError:
    return ConfigError("pattern", [Problem((), f"{message} (in {pattern!r})")])


def items_of(layers: Any) -> list[Any]:
    """The layers of a pattern or a list, one by one; patterns within a list are expanded."""
    if isinstance(layers, str):
        return list(expand(layers))
    items: list[Any] = []
    for item in layers:
        items += expand(item) if isinstance(item, str) else [item]
    return items


def entry_of(name: Any) -> Entry:
    """The layer or block of a name, bare or with its kind; if unknown, an error with the nearest.

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
    """The config of a layer of a width: of a name, or of what is known of it without its width.

    A config or a module stays as it is.

    Args:
        item: the layer.
        width: for the fields of `WIDTHS` that it needs.
        given: values for fields that it has and that the item does not give.

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
    if {"hidden_size", "layers"} <= fields.keys():  # a block of any layers, which may leave it open
        missing["hidden_size"] = width
    missing |= {name: value for name, value in given.items() if name in fields}
    return cls(**{**missing, **values})


def longest(max_length: int | None) -> dict[str, Any]:
    """What `sized` is given so that layers know the longest sequence, if it is known."""
    return {} if max_length is None else {"max_length": max_length}


def width_of(config: Any) -> int | None:
    """The width of the layer that a config describes, if it has one."""
    fields = () if config is None else type(config).model_fields
    return next((getattr(config, name) for name in WIDTHS if name in fields), None)


def check_names(value: Any) -> Any:
    """Layers whose names are known; the rest is checked when the width is."""
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
        raise ConfigError("layers", [Problem((), f"must name a layer or be one, not {item!r:.60}")])


LayersField = Annotated[Any, BeforeValidator(check_names)]
"""Layers and blocks: a pattern, or a list of names, {"type": ...}, configs and modules."""
