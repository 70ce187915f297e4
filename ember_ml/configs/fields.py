"""Types of fields, with their ranges, that configs share."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.registry import components
from ember_ml.registry.base import UnknownComponentError


def _as_int(value: Any) -> Any:
    """The Python integer that another library's integer is."""
    return value if isinstance(value, bool) or not hasattr(value, "__index__") else index(value)


LARGEST = 2**63 - 1
Size = Annotated[int, BeforeValidator(_as_int), Field(strict=True, ge=1, le=LARGEST)]
"""A number of features, heads, layers ..."""
Count = Annotated[int, BeforeValidator(_as_int), Field(strict=True, ge=0, le=LARGEST)]
Seed = Annotated[int, BeforeValidator(_as_int), Field(strict=True, ge=0, lt=2**64)]
Flag = Annotated[bool, Field(strict=True)]
Real = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1)]
Below1 = Annotated[float, Field(ge=0, lt=1)]
"""A decay rate, or the share that dropout drops."""


class Component:
    """Marks a field that holds a component of a kind: a name, {"type": ...} or a config.

    A name, or a mapping, becomes the component's config. An object that was built already stays
    as it is. With the kind "" it is a component of any kind, whose names are whole.
    """

    def __init__(self, kind: str, *, optional: bool = False) -> None:
        self.kind = kind
        self.optional = optional

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._checked)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        types = ["string", "object", "null"] if self.optional else ["string", "object"]
        return {"type": types, "description": f"one of the {self.kind}"}

    def _checked(self, value: Any) -> Any:
        if value is None and self.optional:
            return None
        return _read(self.kind, value)


def _read(kind: str, value: Any) -> Any:
    if isinstance(value, str):
        return _by_name(kind, value)()
    if isinstance(value, Mapping):
        return Config.from_dict(value, kind=kind or None)
    if isinstance(value, Config) and not value.component.startswith(kind):
        raise ConfigError(kind, [Problem((), f"must be one of the {kind}, not {value!r:.60}")])
    if isinstance(value, Config) or not components.is_plain(value):
        return value
    raise ConfigError(
        kind, [Problem((), f"must name one of the {kind}, or be its config, not {value!r:.60}")]
    )


def _by_name(kind: str, name: str) -> type[Config]:
    try:
        return components.get(name, kind or None).config
    except UnknownComponentError as error:
        raise ConfigError(kind, [Problem((), str(error))]) from None


def _one_list(value: Any) -> Any:
    alone = isinstance(value, (list, tuple)) and len(value) == 1
    return value[0] if alone and isinstance(value[0], (list, tuple)) else value


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, int) else value


Sizes = Annotated[tuple[Size, ...], BeforeValidator(_as_tuple)]
"""One or several sizes."""
ActivationField = Annotated[Any, Component("activations")]
OptionalActivationField = Annotated[Any, Component("activations", optional=True)]
InitializerField = Annotated[Any, Component("initializers")]
ComponentsField = Annotated[tuple[Annotated[Any, Component("")], ...], BeforeValidator(_one_list)]
"""Components of any kind, in order."""
