"""Graphs of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ember_ml.configs.wirings import GraphWiringConfig
from ember_ml.nn.wirings._building import named
from ember_ml.nn.wirings.base import WiringError
from ember_ml.nn.wirings.blocks import BlockWiring
from ember_ml.registry import register


@register("wirings/graph", config=GraphWiringConfig)
class GraphWiring(BlockWiring):
    """Blocks that are connected at will, with one or several inputs and outputs.

    Blocks that nothing leads to read the input, if there is only one.

    The parameters of gates are made when the wiring is built: give `features`, or call `build`,
    before an optimizer is given the parameters.

    Args:
        inputs: the names of the inputs.
        blocks: blocks by name, or a list of them; more come by `add_block`.
        connections: (source, target), or {"from": source, "to": target, "delayed": True}; more come
            by `connect`.
        outputs: the blocks whose outputs come out; those that lead nowhere if not given.
        merge: what is done where several outputs meet: "sum"; "concat", one beside the other; or
            "gate", a sum with a learned weight from 0 to 1 for each feature of each of them. One
            for all blocks, or {block: one}.
        features: how many features the inputs have, to build it at once; see `build`.
        name: what it is called as a block of another wiring.

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
        inputs: str | Sequence[str] = ("input",),
        blocks: Mapping[str, Any] | Sequence[Any] = (),
        connections: Sequence[Any] = (),
        outputs: str | Sequence[str] | None = None,
        merge: str | Mapping[str, str] = "sum",
        features: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.inputs = inputs = _several(inputs)
        if not inputs or len({*inputs}) < len(inputs):
            raise WiringError(f"GraphWiring: inputs are one or more names, each once, not {inputs}")
        self.outputs = None if outputs is None else _several(outputs)
        self.merge = merge
        self._add_blocks(blocks)
        for each in connections:
            self.connect(*(_ends(each) if isinstance(each, Mapping) else each))
        if features is not None:
            self.features = named(self.inputs, features)
        if features is not None and self.blocks:
            self.build()

    @property
    def config(self) -> GraphWiringConfig:
        """What it is made of now."""
        return GraphWiringConfig(
            inputs=self.inputs,
            blocks=self.block_configs(),
            connections=tuple(self.connections),
            outputs=self.outputs,
            merge=self.merge,
            features=self.features if self.is_built else None,
            name=self.name,
        )

    @config.setter
    def config(self, config: GraphWiringConfig) -> None:
        """What it was built by says nothing of blocks that were added."""


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _ends(connection: Mapping[str, Any]) -> tuple[Any, ...]:
    return connection["from"], connection["to"], connection.get("delayed", False)
