"""Configs of layers made of layers."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentsField


class SequentialConfig(Config):
    """Modules one after the other."""

    component: ClassVar[str] = "layers/sequential"
    layers: ComponentsField = ()
