"""Models as sequences of stages, which several processes compute one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.nn import sequence_module
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Variable


class StageParts(NamedTuple):
    """What a model computes: the first part, the layers in sequence, the last part.

    A model that defines `stage_parts()` can be trained by a pipeline of processes.

    Attributes:
        first: Function of the model's input; None if that is the input of the layers.
        layers: Layers, each a function of the output of the one before.
        last: Function of the output of the layers; None if that is the model's output.
    """

    first: Module | None
    layers: Sequence[Module]
    last: Module | None


class ModelPart(Module):
    """A part of a model that is not a module of its own.

    Args:
        owned: Modules and variables that it uses.
        compute: Function of its input.
    """

    def __init__(
        self, owned: Sequence[Module | Variable | None], compute: Callable[[Tensor], Tensor]
    ) -> None:
        self.owned = [each for each in owned if each is not None]
        self._compute = compute

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the part."""
        return self._compute(x)


class Stage(Module):
    """Consecutive parts of a model.

    Args:
        parts: The parts: the first or last one of the model, or layers.
    """

    def __init__(self, parts: Sequence[Module]) -> None:
        self.parts = list(parts)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output of the last part.

        Args:
            x: Output of the stage before, or the model's input.
            mask: Padding mask of shape (batch, time), False at padding.
        """
        return sequence_module.run_all(self.parts, x, mask)


def stages_of(model: Module, count: int) -> list[Stage]:
    """Return the stages of a model, with about the same number of layers each.

    Args:
        model: Model with a method `stage_parts`.
        count: Number of stages.
    """
    name = type(model).__name__
    define = getattr(model, "stage_parts", None)
    if define is None:
        raise ArgumentError(
            f"{name} cannot be divided into stages; use a LanguageModel or a Sequential, or define "
            "a method `stage_parts` that returns `ember_ml.nn.stages.StageParts`"
        )
    first, layers, last = define()
    if len(layers) < count:
        raise ArgumentError(f"{name}: {len(layers)} layers cannot be divided into {count} stages")
    ends = [len(layers) * at // count for at in range(count + 1)]
    parts = [list(layers[a:b]) for a, b in itertools.pairwise(ends)]
    if first is not None:
        parts[0].insert(0, first)
    if last is not None:
        parts[-1].append(last)
    stages = [Stage(each) for each in parts]
    _check_disjoint(name, stages)
    return stages


def _check_disjoint(name: str, stages: Sequence[Stage]) -> None:
    owners: dict[int, int] = {}
    for at, stage in enumerate(stages):
        for variable in stage.parameters():
            if owners.setdefault(id(variable), at) != at:
                raise ArgumentError(
                    f"{name}: stages {owners[id(variable)]} and {at} share a parameter of shape "
                    f"{variable.shape}; use tie_weights=False in a pipeline"
                )
