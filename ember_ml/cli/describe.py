"""Docstrings and config fields of components."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from ember_ml.registry import Entry

_SECTION = re.compile(r"^(Args|Shape|References?|Examples?|Attributes|Returns): *(.*)$")
_TYPES = {
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "string": "text",
    "object": "mapping",
}
"""Names of JSON schema types."""


class Field(NamedTuple):
    """A field of a config."""

    name: str
    type: str
    required: bool
    default: object
    """Default as plain data; None if the field is required."""
    help: str

    def default_text(self) -> str:
        """Return the default as it is written in YAML."""
        if self.required:
            return "required"
        value = self.default
        if isinstance(value, dict) and "type" in value:
            value = str(value["type"]).partition("/")[2]
        return value if isinstance(value, str) else json.dumps(value)


def docstring_sections(target: object) -> dict[str, str]:
    """Return a docstring by section title; the text before the first section has the title "".

    The section "Args" is omitted.
    """
    sections: dict[str, list[str]] = {"": []}
    title = ""
    for line in (inspect.getdoc(target) or "").splitlines():
        heading = _SECTION.match(line)
        if heading is not None:
            title = heading[1]
            sections[title] = [heading[2]] if heading[2] else []
        else:
            sections[title].append(line)
    return {
        title: textwrap.dedent("\n".join(lines)).strip()
        for title, lines in sections.items()
        if title != "Args"
    }


def fields_of(entry: Entry) -> list[Field]:
    """Return the fields of a component's config."""
    from ember_ml.configs.derive import argument_docs

    docs = argument_docs(entry.target)
    schema = entry.config.json_schema()
    shared = schema.get("$defs", {})
    return [
        Field(
            name,
            _component_kind(field) or _type(schema["properties"][name], shared),
            field.is_required(),
            None if field.is_required() else plain(field.get_default(call_default_factory=True)),
            docs.get(name) or field.description or "",
        )
        for name, field in entry.config.model_fields.items()
    ]


def plain(value: object) -> object:
    """Return a default as plain data."""
    from ember_ml.configs import Config

    if isinstance(value, Config):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value if isinstance(value, (bool, int, float, str, dict, type(None))) else repr(value)


def _component_kind(field: FieldInfo) -> str:
    """Return the kind of component a field takes, in the singular; empty for other fields."""
    from ember_ml.configs.fields import Component

    marker = next((each for each in field.metadata if isinstance(each, Component)), None)
    if marker is None:
        return ""
    kind = marker.kind.removesuffix("es" if marker.kind.endswith("sses") else "s") or "component"
    return f"{kind} | null" if marker.optional else kind


def _type(schema: dict[str, Any], shared: dict[str, Any]) -> str:
    """Return a JSON schema in a few words."""
    if "$ref" in schema:
        return _type(shared.get(schema["$ref"].rpartition("/")[2], {}), shared)
    if "enum" in schema or "const" in schema:
        return " | ".join(str(x) for x in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(part, shared) for part in schema["anyOf"]))
    kinds = schema.get("type", "any")
    if kinds == "array":
        return f"list of {_type(schema.get('items', {}), shared)}"
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " | ".join(_TYPES.get(kind, kind) for kind in kinds)
