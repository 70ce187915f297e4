"""Blocks in sequence."""

from __future__ import annotations

from typing import ClassVar, Self

from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.nn.module import Module
from ember_ml.nn.wirings._fields import Blocks
from ember_ml.nn.wirings.base import WiringError
from ember_ml.nn.wirings.blocks import BlockWiring
from ember_ml.registry import get, register


class _Stack(BlockWiring):
    """Blocks in sequence."""

    component: ClassVar[str]

    def __init__(self, blocks: Blocks = (), name: str | None = None) -> None:
        super().__init__(name)
        self._add_blocks(blocks)

    @property
    def config(self) -> Config:
        """Config with the current blocks."""
        config: Config = get(self.component).config(blocks=self.block_configs(), name=self.name)
        return config

    @config.setter
    def config(self, config: Config) -> None:
        """Ignore the original config, which does not know blocks added later."""

    def add_block(self, block: ComponentLike, name: str | None = None) -> Self:
        """Append a block, and return the wiring; the arguments are those of `BlockWiring`."""
        super().add_block(block, name)
        *_, last = ["", *list(self.blocks)[:-1]]
        if last:
            super().connect(last, list(self.blocks)[-1])
        return self

    def connect(
        self, from_block: str | Module, to_block: str | Module, delayed: bool = False
    ) -> Self:
        """Raise an error: the blocks are connected in the order in which they were added."""
        raise WiringError(
            f"{self._at('connect')}: each block is connected to the one before it; use a "
            "GraphWiring for other connections"
        )


@register("wirings/sequential")
class SequentialWiring(_Stack):
    """Blocks in sequence: the output of each is the input of the next.

    Unlike in `nn.Sequential`, blocks have names, which errors mention, and shapes are checked.

    Args:
        blocks: Blocks by name, or a list of blocks. `add_block` adds more.
        name: Name of the wiring as a block of another wiring.

    Example:
        >>> wiring = nn.wirings.SequentialWiring([nn.layers.GRU(3, 8), nn.layers.Dense(8, 2)])
        >>> y, state = wiring.step(ops.ones((1, 3)), wiring.initial_state(1))
        >>> y.shape
        (1, 2)
    """

    component = "wirings/sequential"


@register("wirings/residual")
class ResidualWiring(_Stack):
    """Blocks in sequence, each with a residual connection.

    .. math:: x_{k+1} = x_k + f_k(x_k)

    Args:
        blocks: Blocks by name, or a list of blocks. `add_block` adds more.
        name: Name of the wiring as a block of another wiring.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> wiring = nn.wirings.ResidualWiring([nn.layers.GRU(4), nn.layers.SwiGLU(4)])
        >>> wiring(ops.ones((1, 5, 4))).shape
        (1, 5, 4)
    """

    component = "wirings/residual"

    def leave(self, name: str, x: Tensor, y: Tensor) -> Tensor:
        """Return the sum of the input and the output of a block."""
        if y.shape != x.shape:
            raise ShapeError(
                f"ResidualWiring: {name!r} returns shape {y.shape}, which cannot be added to its "
                f"input of shape {x.shape}"
            )
        return x + y
