"""Experts of the same shape, whose weights are stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn import activations, initializers
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter


def stacked(count: int, out_features: int, in_features: int, gain: float = 1.0) -> Parameter:
    """The matrices (count, out features, in features) of as many experts."""
    draw = initializers.get({"type": "glorot", "gain": gain})
    return Parameter(ops.stack([draw((out_features, in_features)) for _ in range(count)]))


def mapped(x: Tensor, weight: Tensor) -> Tensor:
    """The rows of x by the matrix, or by one of several each block of rows."""
    return ops.matmul(x, ops.swapaxes(weight, -1, -2))


class StackedExperts(Module):
    """The base of experts that are some matrices each.

    Subclasses write `stacks`, the parameters with one matrix for each expert, and `compute`.
    """

    in_blocks: bool = True
    """Whether many small groups of items can be worked on at once, each by any expert."""

    def stacks(self) -> Sequence[Tensor]:
        """The stacked matrices."""
        raise NotImplementedError

    def compute(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """The rows of x through the matrices of an expert; or blocks of rows, each with its own."""
        raise NotImplementedError

    def run_groups(self, groups: Sequence[tuple[Tensor, ...]]) -> list[Tensor]:
        """Each expert's outputs for its group of items; none for a group without items."""
        each = zip(*[ops.unstack(stack) for stack in self.stacks()], strict=True)
        return [
            self.compute(x, weights)
            for (x,), weights in zip(groups, each, strict=True)
            if x.shape[0]
        ]

    def run_blocks(self, blocks: tuple[Tensor, ...], owners: Tensor) -> Tensor:
        """The outputs of blocks (blocks, items, ...) of items by the experts that own them."""
        return self.compute(blocks[0], [ops.take(stack, owners, axis=0) for stack in self.stacks()])


class LinearExperts(StackedExperts):
    """Experts that are one matrix each."""

    def __init__(self, num_experts: int, in_features: int, out_features: int) -> None:
        self.weight = stacked(num_experts, out_features, in_features)

    def stacks(self) -> Sequence[Tensor]:
        """The stacked matrices."""
        return [self.weight]

    def compute(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """The rows of x by the matrix."""
        return mapped(x, weights[0])


class MLPExperts(StackedExperts):
    """Experts that are two matrices each, with an activation between them."""

    def __init__(self, num_experts: int, features: int, inner: int, activation: Any) -> None:
        self.expand = stacked(num_experts, inner, features)
        self.reduce = stacked(num_experts, features, inner)
        self.activation = activations.get(activation)

    def stacks(self) -> Sequence[Tensor]:
        """The stacked matrices."""
        return [self.expand, self.reduce]

    def compute(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """The rows of x through the layers."""
        return mapped(self.activation(mapped(x, weights[0])), weights[1])


class GatedExperts(MLPExperts):
    """Experts that are gated linear units; the first matrix holds gate and value."""

    def __init__(self, num_experts: int, features: int, inner: int, activation: Any) -> None:
        super().__init__(num_experts, features, inner, activation)
        gain = ((features + 2 * inner) / (features + inner)) ** 0.5
        self.expand = stacked(num_experts, 2 * inner, features, gain)

    def compute(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """The rows of x through the layers."""
        gate, value = ops.split(mapped(x, weights[0]), 2, axis=-1)
        return mapped(self.activation(gate) * value, weights[1])
