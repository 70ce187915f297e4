"""Wirings of any shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.wirings._building import by_input
from ember_ml.nn.wirings._fields import Blocks, Connections, MergeField, Names, Width
from ember_ml.nn.wirings.base import WiringError
from ember_ml.nn.wirings.blocks import BlockWiring
from ember_ml.registry import get, register


@register("wirings/graph")
class GraphWiring(BlockWiring):
    """Graph of blocks with any connections, and one or several inputs and outputs.

    If there is only one input, blocks without a connection into them read it.

    The parameters of gates are created when the wiring is built. Pass `features`, or call `build`,
    before you create an optimizer.

    Args:
        inputs: Names of the inputs.
        blocks: Blocks by name, or a list of blocks. `add_block` adds more.
        connections: (source, target), or {"from": source, "to": target, "delayed": True}. `connect`
            adds more.
        outputs: Blocks whose outputs are returned. Default: blocks that no other block reads.
        merge: How several inputs of a block are merged: "sum"; "concat" along the features; or
            "gate", a sum with a learned weight between 0 and 1 per feature of each input. One rule
            for all blocks, or {block: rule}.
        features: Number of features of the inputs, to build the wiring immediately; see `build`.
        name: Name of the wiring as a block of another wiring.

    Shape: (batch, time, features) -> (batch, time, features), or dicts of them.

    Example:
        >>> wiring = nn.wirings.GraphWiring(merge="concat")
        >>> wiring = wiring.add_block(nn.layers.GRU(3, 8), "fast")
        >>> wiring = wiring.add_block(nn.layers.LRU(3), "slow")
        >>> wiring = wiring.add_block(nn.layers.Dense(13, 2), "head")
        >>> for source in ("fast", "slow"):
        ...     wiring = wiring.connect(source, "head")
        >>> wiring = wiring.connect("head", "head", delayed=True)
        >>> wiring(ops.ones((1, 5, 3))).shape
        (1, 5, 2)
    """

    def __init__(
        self,
        inputs: Names = ("input",),
        blocks: Blocks = (),
        connections: Connections = (),
        outputs: Names | None = None,
        merge: MergeField = "sum",
        features: Width | dict[str, Width] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.inputs = _as_tuple(inputs)
        if not self.inputs or len({*self.inputs}) < len(self.inputs):
            raise WiringError(
                f"GraphWiring: inputs must be one or more names, each once, not {self.inputs}"
            )
        self.outputs = None if outputs is None else _as_tuple(outputs)
        self.merge = merge
        self._add_blocks(blocks)
        for connection in connections:
            self.connect(*(_ends(connection) if isinstance(connection, Mapping) else connection))
        if features is not None:
            self.features = by_input(self.inputs, features)
        if features is not None and self.blocks:
            self.build()

    @property
    def config(self) -> Config:
        """Config with the current blocks and connections."""
        config: Config = get("wirings/graph").config(
            inputs=self.inputs,
            blocks=self.block_configs(),
            connections=tuple(self.connections),
            outputs=self.outputs,
            merge=self.merge,
            features=self.features if self.is_built else None,
            name=self.name,
        )
        return config

    @config.setter
    def config(self, config: Config) -> None:
        """Ignore the original config, which does not know blocks added later."""


def _as_tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _ends(connection: Mapping[str, Any]) -> tuple[Any, ...]:
    return connection["from"], connection["to"], connection.get("delayed", False)
