"""Experts: stacked matrices, or layers of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.nn import activations, initializers
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter


def _stacked_glorot(
    num_experts: int, out_features: int, in_features: int, gain: float = 1.0
) -> Parameter:
    """Return one Glorot matrix per expert, (num_experts, out_features, in_features)."""
    draw = initializers.get({"type": "glorot", "gain": gain})
    return Parameter(ops.stack([draw((out_features, in_features)) for _ in range(num_experts)]))


def _linear(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply rows, or blocks of rows, by one transposed matrix, or by one per block."""
    return ops.matmul(x, ops.swapaxes(weight, -1, -2))


class StackedExperts(Module):
    """Base of the experts whose weights are stacked, (num_experts, out, in).

    Subclasses implement `stacks` and `compute`.
    """

    in_blocks: ClassVar[bool] = True
    """Whether `run_blocks` takes any number of blocks per expert."""

    def stacks(self) -> Sequence[Tensor]:
        """Return the stacked matrices."""
        raise NotImplementedError

    def compute(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """Apply one expert to rows, or one expert per block to blocks of rows."""
        raise NotImplementedError

    def run_groups(self, groups: Sequence[tuple[Tensor, ...]]) -> list[Tensor]:
        """Return the outputs of each expert for its group; empty groups are skipped.

        Args:
            groups: Inputs of each expert, (items, features) each.
        """
        weights = zip(*[ops.unstack(stack) for stack in self.stacks()], strict=True)
        return [
            self.compute(x, each) for (x,), each in zip(groups, weights, strict=True) if x.shape[0]
        ]

    def run_empty(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return the outputs for no items.

        Args:
            inputs: Inputs of any items, (items, features) each.
        """
        return self.compute(inputs[0][:0], [stack[0] for stack in self.stacks()])

    def run_blocks(self, blocks: tuple[Tensor, ...], owners: Tensor) -> Tensor:
        """Return the outputs for blocks of items.

        Args:
            blocks: Inputs, (blocks, items, features) each.
            owners: Expert of each block, (blocks,).
        """
        return self.compute(blocks[0], [ops.take(stack, owners, axis=0) for stack in self.stacks()])


class LinearExperts(StackedExperts):
    """Experts with one matrix each.

    Args:
        num_experts: Number of experts.
        in_features: Number of input features.
        out_features: Number of output features.
    """

    def __init__(self, num_experts: int, in_features: int, out_features: int) -> None:
        self.weight = _stacked_glorot(num_experts, out_features, in_features)

    def stacks(self) -> Sequence[Tensor]:
        """Return the stacked matrices."""
        return [self.weight]

    def compute(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """Multiply by the matrix of the expert."""
        return _linear(x, weights[0])


class MLPExperts(StackedExperts):
    """Experts with two matrices each and an activation between them.

    Args:
        num_experts: Number of experts.
        features: Number of input and output features.
        inner: Number of inner features.
        activation: The activation function.
    """

    def __init__(
        self, num_experts: int, features: int, inner: int, activation: ComponentLike
    ) -> None:
        self.expand = _stacked_glorot(num_experts, inner, features)
        self.reduce = _stacked_glorot(num_experts, features, inner)
        self.activation = activations.get(activation)

    def stacks(self) -> Sequence[Tensor]:
        """Return the stacked matrices."""
        return [self.expand, self.reduce]

    def compute(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """Apply the two layers of the expert."""
        return _linear(self.activation(_linear(x, weights[0])), weights[1])


class GatedExperts(MLPExperts):
    """Experts that are gated linear units; the first matrix computes gate and value.

    Args:
        num_experts: Number of experts.
        features: Number of input and output features.
        inner: Number of inner features.
        activation: The activation function of the gate.
    """

    def __init__(
        self, num_experts: int, features: int, inner: int, activation: ComponentLike
    ) -> None:
        super().__init__(num_experts, features, inner, activation)
        gain = ((features + 2 * inner) / (features + inner)) ** 0.5
        self.expand = _stacked_glorot(num_experts, 2 * inner, features, gain)

    def compute(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """Apply the gated linear unit of the expert."""
        gate, value = ops.split(_linear(x, weights[0]), 2, axis=-1)
        return _linear(self.activation(gate) * value, weights[1])


class LayerExperts(Module):
    """Experts that are layers of any kind, each with its own weights.

    Args:
        num_experts: Number of experts.
        config: Config from which each layer is created.
    """

    in_blocks: ClassVar[bool] = False
    """Whether `run_blocks` takes any number of blocks per expert."""
    ITEMS = "layers"

    def __init__(self, num_experts: int, config: Config) -> None:
        self.layers: list[Module] = [config.create() for _ in range(num_experts)]

    def run_groups(self, groups: Sequence[tuple[Tensor, ...]]) -> list[Tensor]:
        """Return the outputs of each expert for its group; empty groups are skipped.

        Args:
            groups: Arguments of each layer, (items, ...) each.
        """
        return [
            layer(*group)
            for layer, group in zip(self.layers, groups, strict=True)
            if group[0].shape[0]
        ]

    def run_empty(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return the outputs for no items.

        Args:
            inputs: Arguments of a layer for any items, (items, ...) each.
        """
        return inputs[0][:0]

    def run_blocks(self, blocks: tuple[Tensor, ...], owners: Tensor) -> Tensor:
        """Return the outputs for one block of items per expert.

        Args:
            blocks: Arguments of the layers, (experts, items, ...) each.
            owners: Expert of each block; block i belongs to expert i.
        """
        arguments = zip(*[ops.unstack(block) for block in blocks], strict=True)
        return ops.stack([layer(*each) for layer, each in zip(self.layers, arguments, strict=True)])


Experts: TypeAlias = StackedExperts | LayerExperts
