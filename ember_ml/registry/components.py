"""Ember's registry, and the functions that register, find and build components."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.registry.base import Entry, Registry, T

REGISTRY = Registry(
    {
        "activations": ["ember_ml.nn.activations"],
        "augmentations": ["ember_ml.data.augmentation"],
        "blocks": ["ember_ml.nn.blocks"],
        "features": ["ember_ml.nn.features"],
        "initializers": ["ember_ml.nn.initializers"],
        "layers": ["ember_ml.nn.layers", "ember_ml.nn.sequential"],
        "losses": ["ember_ml.training.losses"],
        "metrics": ["ember_ml.training.metrics"],
        "models": ["ember_ml.nn.models"],
        "optimizers": ["ember_ml.training.optimizer"],
        "pipelines": [
            "ember_ml.nn.pipeline.asynchronous",
            "ember_ml.nn.pipeline.inference",
            "ember_ml.nn.pipeline.feature",
            "ember_ml.training.pipelines",
            "ember_ml.data.text.tokenize",
        ],
        "pruners": ["ember_ml.training.tuning"],
        "rope_scalings": ["ember_ml.nn.rope_scalings"],
        "samplers": ["ember_ml.training.tuning"],
        "schedules": ["ember_ml.training.schedules"],
        "selections": ["ember_ml.training.selection"],
        "strategies": ["ember_ml.distributed"],
        "surrogates": ["ember_ml.nn.surrogates"],
        "tasks": ["ember_ml.mad.tasks"],
        "wirings": ["ember_ml.nn.wirings"],
    },
    plugins="ember_ml.plugins",
)


def register(
    name: str,
    *,
    aliases: Iterable[str] = (),
    config_name: str | None = None,
) -> Callable[[T], T]:
    """Register a class under "kind/name", for configs and `create`.

    The config class is derived from the signature of `__init__`: each parameter is a field, whose
    annotation says what is valid (`ember_ml.configs.fields` has ranges such as `Size`).

    Args:
        name: "kind/name", such as "layers/dense".
        aliases: Other names of the component, without the kind.
        config_name: Name of the config class. Default: the class's name and "Config".

    Example:
        >>> @register("layers/stretch")
        ... class Stretch(nn.Module):
        ...     def __init__(self, factor: float = 2.0) -> None:
        ...         super().__init__()
        ...         self.factor = factor
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> create("layers/stretch", factor=3.0).config.to_dict()
        {'type': 'layers/stretch', 'factor': 3.0}
    """
    return REGISTRY.register(name, aliases=aliases, config_name=config_name)


def get(name: str, kind: str | None = None) -> Entry:
    """Return the entry of a component.

    Args:
        name: "kind/name", or a bare name if `kind` is given.
        kind: The kind that a bare name belongs to.

    Raises:
        UnknownComponentError: Nothing is registered under the name; similar names are suggested.
    """
    return REGISTRY.get(name, kind)


def available(kind: str | None = None) -> list[Entry]:
    """Return the registered components, sorted by name.

    Args:
        kind: The kind of components to list. Default: all kinds.
    """
    return REGISTRY.available(kind)


def build(kind: str, value: Any, *args: Any) -> Any:
    """Return the component given by a name, a config, {"type": ...}, a class, or as an object.

    Args:
        kind: The kind of the component; "" accepts any kind, and names then include it.
        value: The component, in any of these forms.
        *args: Arguments that are not part of the config, such as an optimizer's parameters.
    """
    from ember_ml.configs import Config

    if isinstance(value, str):
        return get(value, kind or None).target(*args)
    if isinstance(value, Mapping):
        value = Config.from_dict(value, kind=kind or None)
    if isinstance(value, Config):
        return value.create(*args)
    if isinstance(value, type):
        return value(*args)
    if not is_plain(value):
        return value
    raise ArgumentTypeError(
        f"expected a name, a config or an object of kind {kind!r}, not {value!r:.60}"
    )


def is_plain(value: object) -> bool:
    """Return whether a value is plain data, such as a number or a list, not a component."""
    return value is None or isinstance(value, (bool, int, float, complex, str, bytes, list, tuple))
