"""A component's docstring in parts, and the fields of its config."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ember_ml.registry import Entry

_SECTION = re.compile(r"^(Args|Shape|References?|Examples?|Attributes|Returns): *(.*)$")
_ARGUMENT = re.compile(r"^(\w+): (.*)$")


class Field(NamedTuple):
    """A field of a config."""

    name: str
    type: str
    required: bool
    default: Any
    """As plain data; nothing if it is required."""
    help: str

    def shown_default(self) -> str:
        """The default as people write it."""
        if self.required:
            return "required"
        value = self.default
        if isinstance(value, dict) and "type" in value:
            value = str(value["type"]).partition("/")[2]
        return value if isinstance(value, str) else json.dumps(value)


def parts_of(target: Any) -> dict[str, str]:
    """The text before the first section under "", then Shape, Reference and Example by title."""
    found: dict[str, list[str]] = {"": []}
    title = ""
    for line in (inspect.getdoc(target) or "").splitlines():
        section = _SECTION.match(line)
        if section is not None:
            title = section[1]
            found[title] = [section[2]] if section[2] else []
        else:
            found[title].append(line)
    return {
        title: textwrap.dedent("\n".join(lines)).strip()
        for title, lines in found.items()
        if title != "Args"
    }


def arguments_of(target: Any) -> dict[str, str]:
    """What the docstring says of each argument."""
    doc = inspect.getdoc(target) or ""
    _, _, text = doc.partition("\nArgs:\n")
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            break
        argument = _ARGUMENT.match(line.strip()) if _indent(line) == 4 else None
        if argument is not None:
            name = argument[1]
            found[name] = argument[2]
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def fields_of(entry: Entry) -> list[Field]:
    """The fields of a component's config, with their defaults and what the docstring says."""
    helps = arguments_of(entry.target)
    schema = entry.config.json_schema()
    known = schema["properties"]
    return [
        Field(
            name,
            _type(known[name], schema.get("$defs", {})),
            field.is_required(),
            None if field.is_required() else plain(field.get_default(call_default_factory=True)),
            helps.get(name, ""),
        )
        for name, field in entry.config.model_fields.items()
    ]


def plain(value: Any) -> Any:
    """A default as plain data."""
    from ember_ml.configs import Config

    if isinstance(value, Config):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value if isinstance(value, (bool, int, float, str, dict, type(None))) else repr(value)


def _type(schema: dict[str, Any], shared: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        return _type(shared.get(schema["$ref"].rpartition("/")[2], {}), shared)
    if "enum" in schema or "const" in schema:
        return " | ".join(str(x) for x in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(part, shared) for part in schema["anyOf"]))
    if str(schema.get("description", "")).startswith("one of the "):
        return str(schema["description"]).removeprefix("one of the ").rstrip("s") or "component"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), shared)}"
    names = {"integer": "int", "number": "float", "boolean": "bool", "string": "text"}
    names |= {"object": "mapping"}
    return " | ".join(names.get(each, each) for each in ([kind] if isinstance(kind, str) else kind))
