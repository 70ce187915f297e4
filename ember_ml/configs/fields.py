"""Annotated types with ranges, for the parameters of components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import core_schema

from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.registry import components
from ember_ml.registry.base import UnknownComponentError

T = TypeVar("T")


def _as_int(value: Any) -> Any:
    """Convert another library's integer to a Python integer."""
    try:
        return value if isinstance(value, bool) else index(value)
    except TypeError:
        return value  # which the field refuses


LARGEST = 2**63 - 1
Integer = Annotated[int, Field(strict=True), BeforeValidator(_as_int)]
"""An integer; what `int` means in a signature."""
Size = Annotated[int, Field(strict=True, ge=1, le=LARGEST), BeforeValidator(_as_int)]
"""A number of features, heads, layers: at least 1."""
Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST), BeforeValidator(_as_int)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**64), BeforeValidator(_as_int)]
Flag = Annotated[bool, Field(strict=True)]
"""True or False; what `bool` means in a signature."""
Real = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Below1 = Annotated[float, Field(ge=0, lt=1)]
"""A decay rate or a dropout probability: 0 <= x < 1."""
PositionEncoding = Literal["rope", "alibi", "none"]
"""Position encoding of attention: rotary embeddings, linear biases (ALiBi) or none."""
QueryKeyNorm = Literal["none", "head", "all"]
"""RMS norms of queries and keys: none, over each head or over all heads together."""
RouterName = Literal["softmax", "sigmoid", "noisy", "top_p", "expert_choice"]
"""Router of a mixture of experts."""
NormName = Literal["rms_norm", "layer_norm", "none"]
"""A normalization layer, or "none"."""
Unconfigured = Annotated[T, "unconfigured"]
"""`Unconfigured[X]` annotates a parameter that is not part of the config."""


class Component:
    """Annotation of a parameter that takes a component: a name, {"type": ...} or a config.

    A name or a mapping is converted to the component's config. A component object is passed
    through.

    Args:
        kind: The kind of the component, such as "activations". Default "": any kind, in which case
            names include the kind.
        optional: Whether None is accepted.
    """

    def __init__(self, kind: str = "", *, optional: bool = False) -> None:
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
    kinds = kind or "components"
    raise ConfigError(
        kind, [Problem((), f"must name one of the {kinds}, or be its config, not {value!r:.60}")]
    )


def _by_name(kind: str, name: str) -> type[Config]:
    try:
        return components.get(name, kind or None).config
    except UnknownComponentError as error:
        raise ConfigError(kind, [Problem((), str(error))]) from None


def unwrap_single_list(value: Any) -> Any:
    """Return the inner list of `[[...]]`; anything else unchanged."""
    single = isinstance(value, (list, tuple)) and len(value) == 1
    return value[0] if single and isinstance(value[0], (list, tuple)) else value


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, int) else value


ComponentLike: TypeAlias = str | Mapping[str, Any] | Config | Callable[..., Any]
"""A component by name, as {"type": name, ...}, as its config, or the object itself."""


class ValidatedAs:
    """Annotation of a parameter whose values are validated and converted to another type.

    Args:
        hint: The type that the config validates and holds.
    """

    def __init__(self, hint: Any) -> None:
        self.hint = hint

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return handler.generate_schema(self.hint)


Sizes = Annotated[
    int | Sequence[int], ValidatedAs(Annotated[tuple[Size, ...], BeforeValidator(_as_tuple)])
]
"""One or several sizes; a tuple in the config."""
ActivationField = Annotated[ComponentLike, Component("activations")]
OptionalActivationField = Annotated[ComponentLike | None, Component("activations", optional=True)]
InitializerField = Annotated[ComponentLike, Component("initializers")]
RopeScalingField = Annotated[ComponentLike | None, Component("rope_scalings", optional=True)]
EmbeddingField = Annotated[ComponentLike | None, Component("embeddings", optional=True)]
SurrogateField = Annotated[ComponentLike, Component("surrogates")]
AnyComponent = Annotated[ComponentLike, Component()]
ComponentsField = Annotated[tuple[AnyComponent, ...], BeforeValidator(unwrap_single_list)]
"""Components of any kind, in order."""


def check_wiring(value: object) -> object:
    """Return a neuron wiring or its config, reading a {"type": ...} mapping as a config."""
    if isinstance(value, Mapping):
        return Config.from_dict(value, kind="wirings")
    config = value if isinstance(value, Config) else getattr(value, "config", None)
    if isinstance(config, Config) and config.component.startswith("wirings/"):
        return value
    if hasattr(value, "adjacency"):
        return value
    raise ValueError(f"must be a wiring or its config, not {value!r:.60}")


WiringField = Annotated[
    object,
    PlainValidator(check_wiring),
    WithJsonSchema({"type": "object", "description": "a wiring"}),
]
