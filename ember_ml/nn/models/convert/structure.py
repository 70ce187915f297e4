"""Structure of a model: its layers in order."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml.nn.blocks import Block, ResidualBlock
from ember_ml.nn.models.convert.errors import ConversionError
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.module import Module


def residuals(model: LanguageModel) -> list[ResidualBlock]:
    """Return the layers of a model in order, with their norms and residual connections."""
    return [block for block, _ in flatten(model.backbone.blocks)]


def flatten(block: Block) -> list[tuple[ResidualBlock, Block]]:
    """Return the layers in order, each with the innermost block that has it."""
    layers: list[tuple[ResidualBlock, Block]] = []
    for layer in block.layers:
        if isinstance(layer, Block):
            layers += flatten(layer)
        elif isinstance(layer, ResidualBlock):
            layers.append((layer, block))
        else:
            name = type(layer).__name__
            raise ConversionError(
                "the model has no counterpart in transformers",
                [f"{name} in {type(block).__name__} has no residual connection"],
            )
    return layers


def pairs(model: LanguageModel) -> list[tuple[ResidualBlock, ResidualBlock]]:
    """Return the pairs of sequence mixers and channel mixers."""
    layers = residuals(model)
    return list(zip(layers[::2], layers[1::2], strict=True))


def check_kinds(model: LanguageModel, wanted: Sequence[tuple[type[Module], ...]]) -> list[str]:
    """Return the reasons why the layers do not alternate between these classes."""
    layers = residuals(model)
    names = [" or ".join(kind.__name__ for kind in kinds) for kinds in wanted]
    problems = []
    if not layers or len(layers) % len(wanted):
        problems.append(f"its layers must alternate: {', '.join(names)}")
    for at, block in enumerate(layers):
        if not isinstance(block.layer, wanted[at % len(wanted)]):
            kind = type(block.layer).__name__
            problems.append(f"layer {at} is {kind}, not {names[at % len(wanted)]}")
    return problems
