"""Configs of the blocks of a neural circuit policy."""

from __future__ import annotations

from typing import ClassVar, Literal

from ember_ml.configs.base import Config

Cell = Literal["ltc", "cfc"]


class InputBlockConfig(Config):
    """The inputs of a circuit."""

    component: ClassVar[str] = "blocks/input"
    name: str = "input"


class HiddenBlockConfig(Config):
    """Inter and command neurons of a circuit."""

    component: ClassVar[str] = "blocks/hidden"
    name: str = "hidden"
    cell: Cell = "ltc"


class OutputBlockConfig(Config):
    """The motor neurons of a circuit."""

    component: ClassVar[str] = "blocks/output"
    name: str = "output"
    cell: Cell = "ltc"
