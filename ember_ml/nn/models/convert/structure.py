"""Structure of a model, and checks that it fits a family of transformers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ember_ml.nn.blocks import Block, ResidualBlock
from ember_ml.nn.models.convert.errors import ConversionError
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.module import Module


def residuals(model: LanguageModel) -> list[ResidualBlock]:
    """Return the layers of a model in order, with their norms and residual connections."""
    return _flatten(model.backbone.blocks)


def _flatten(block: Block) -> list[ResidualBlock]:
    layers: list[ResidualBlock] = []
    for layer in block.layers:
        if isinstance(layer, Block):
            layers += _flatten(layer)
        elif isinstance(layer, ResidualBlock):
            layers.append(layer)
        else:
            name = type(layer).__name__
            raise ConversionError(
                "the model has no counterpart in transformers",
                [f"{name} in {type(block).__name__} has no residual connection"],
            )
    return layers


def pairs(model: LanguageModel) -> list[tuple[ResidualBlock, ResidualBlock]]:
    """Return the pairs of attention and feed-forward layers."""
    layers = residuals(model)
    return list(zip(layers[::2], layers[1::2], strict=True))


class Findings:
    """Collection of the reasons why a model does not fit a family of transformers.

    Args:
        family: The model_type of the family.
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self.problems: list[str] = []

    def need(self, fits: bool, problem: str) -> None:
        """Note a problem unless `fits`."""
        if not fits and problem not in self.problems:
            self.problems.append(problem)

    def one(self, what: str, values: Iterable[Any]) -> Any:
        """Return the value that all layers have; note a problem if they differ."""
        kinds = list(dict.fromkeys(values))
        self.need(len(kinds) < 2, f"{what} differs between layers: {kinds}; it must be the same")
        return kinds[0] if kinds else None

    def kinds(self, layers: Sequence[ResidualBlock], wanted: Sequence[type[Module]]) -> None:
        """Raise a ConversionError unless the layers alternate between these classes."""
        turn = ", ".join(kind.__name__ for kind in wanted)
        self.need(
            len(layers) % len(wanted) == 0 and bool(layers), f"its layers must alternate: {turn}"
        )
        for at, block in enumerate(layers):
            kind = wanted[at % len(wanted)]
            self.need(
                isinstance(block.layer, kind),
                f"layer {at} is {type(block.layer).__name__}, not {kind.__name__}",
            )
        self.check()

    def norms(self, model: LanguageModel, kind: type[Module]) -> float | None:
        """Return the epsilon of the norms, and check their class and placement."""
        norms = [block.norm for block in residuals(model)] + [model.backbone.norm]
        pre = all(block.placement == "pre" for block in residuals(model))
        self.need(pre, "a norm follows its layer (placement='post')")
        for norm in norms:
            name = "missing" if norm is None else type(norm).__name__
            self.need(isinstance(norm, kind), f"a norm is {name}, not {kind.__name__}")
        eps: float | None = self.one("norm_eps", [getattr(norm, "eps", None) for norm in norms])
        return eps

    def head(self, model: LanguageModel) -> None:
        """Note a problem if the head has a bias."""
        biased = model.head_shift is not None or (
            model.head is not None and model.head.bias is not None
        )
        self.need(not biased, "the head has a bias (head_bias=True)")

    def check(self) -> None:
        """Raise a ConversionError if there are problems."""
        if self.problems:
            raise ConversionError(f"the model cannot be written as {self.family!r}", self.problems)
