"""Blocks one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.wirings import ResidualWiringConfig, SequentialWiringConfig
from ember_ml.nn.wirings.base import WiringError
from ember_ml.nn.wirings.blocks import BlockWiring
from ember_ml.registry import register


class _Stack(BlockWiring):
    """Blocks one after the other."""

    def __init__(
        self, blocks: Mapping[str, Any] | Sequence[Any] = (), name: str | None = None
    ) -> None:
        super().__init__(name)
        self._add_blocks(blocks)

    def add_block(self, block: Any, name: str | None = None) -> Self:
        """Add a block after the others."""
        super().add_block(block, name)
        *_, last = ["", *list(self.blocks)[:-1]]
        if last:
            super().connect(last, list(self.blocks)[-1])
        return self

    def connect(self, from_block: Any, to_block: Any, delayed: bool = False) -> Self:
        """Refused: the blocks are connected in the order in which they were added."""
        raise WiringError(
            f"{self._at('connect')}: each block is connected to the one before it; a GraphWiring "
            "has other connections"
        )


@register("wirings/sequential", config=SequentialWiringConfig)
class SequentialWiring(_Stack):
    """Blocks one after the other: the output of each is the input of the next.

    Other than in `nn.Sequential`, blocks have names, which errors tell, and shapes are checked.

    Args:
        blocks: blocks by name, or a list of them; more come by `add_block`.
        name: what it is called as a block of another wiring.

    Example:
        >>> wiring = nn.wirings.SequentialWiring([nn.layers.GRU(3, 8), nn.layers.Dense(8, 2)])
        >>> y, state = wiring.step(ops.ones((1, 3)), wiring.initial_state(1))
        >>> y.shape
        (1, 2)
    """

    @property
    def config(self) -> SequentialWiringConfig:
        """The blocks that are here now."""
        return SequentialWiringConfig(blocks=self.block_configs(), name=self.name)

    @config.setter
    def config(self, config: SequentialWiringConfig) -> None:
        """What it was built by says nothing of blocks that were added."""


@register("wirings/residual", config=ResidualWiringConfig)
class ResidualWiring(_Stack):
    """Blocks one after the other, each of which adds its output to its input.

    .. math:: x_{k+1} = x_k + f_k(x_k)

    Args:
        blocks: blocks by name, or a list of them; more come by `add_block`.
        name: what it is called as a block of another wiring.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> wiring = nn.wirings.ResidualWiring([nn.layers.GRU(4), nn.layers.SwiGLU(4)])
        >>> wiring(ops.ones((1, 5, 4))).shape
        (1, 5, 4)
    """

    def leave(self, name: str, x: Tensor, y: Tensor) -> Tensor:
        """The output added to the input."""
        if y.shape != x.shape:
            raise ShapeError(
                f"ResidualWiring: {name!r} gives the shape {y.shape}, which cannot be added to its "
                f"input, {x.shape}"
            )
        return x + y

    @property
    def config(self) -> ResidualWiringConfig:
        """The blocks that are here now."""
        return ResidualWiringConfig(blocks=self.block_configs(), name=self.name)

    @config.setter
    def config(self, config: ResidualWiringConfig) -> None:
        """What it was built by says nothing of blocks that were added."""
