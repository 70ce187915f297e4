"""Configs: validated, immutable descriptions of components.

A config converts to and from a dict, JSON and YAML. `config.create()` builds the component. The
config class of a component is derived from the signature of its `__init__`.
"""

from typing import TYPE_CHECKING

from ember_ml._core import namespaces as _namespaces
from ember_ml.configs.base import Config as Config
from ember_ml.configs.errors import ConfigError as ConfigError
from ember_ml.configs.files import load as load
from ember_ml.configs.overrides import override as override

if TYPE_CHECKING:
    import ember_ml.configs.activations
    import ember_ml.configs.augmentations
    import ember_ml.configs.blocks
    import ember_ml.configs.features
    import ember_ml.configs.initializers
    import ember_ml.configs.layers
    import ember_ml.configs.losses
    import ember_ml.configs.metrics
    import ember_ml.configs.models
    import ember_ml.configs.optimizers
    import ember_ml.configs.pruners
    import ember_ml.configs.rope_scalings
    import ember_ml.configs.samplers
    import ember_ml.configs.schedules
    import ember_ml.configs.selections
    import ember_ml.configs.surrogates
    import ember_ml.configs.wirings  # noqa: F401

_PARTS = (
    *("activations", "augmentations", "blocks", "features", "initializers", "layers", "losses"),
    *("metrics", "models", "optimizers", "pruners", "rope_scalings", "samplers", "schedules"),
    *("selections", "surrogates", "wirings"),
)
__getattr__, __dir__ = _namespaces.attach(__name__, {part: f"{__name__}.{part}" for part in _PARTS})
