"""What a model is made of, as far as transformers must know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ember_ml.nn.blocks import Block, ResidualBlock
from ember_ml.nn.models.convert.errors import ConversionError
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.module import Module


def residuals(model: LanguageModel) -> list[ResidualBlock]:
    """The layers of a model, in order, each with its norm and its sum."""
    return _inside(model.backbone.blocks)


def _inside(block: Block) -> list[ResidualBlock]:
    found: list[ResidualBlock] = []
    for layer in block.layers:
        if isinstance(layer, Block):
            found += _inside(layer)
        elif isinstance(layer, ResidualBlock):
            found.append(layer)
        else:
            name = type(layer).__name__
            raise ConversionError(
                "the model has no counterpart in transformers",
                [f"its input does not go past the {name} in {type(block).__name__}"],
            )
    return found


def pairs(model: LanguageModel) -> list[tuple[ResidualBlock, ResidualBlock]]:
    """The layers in twos: attention, and what stands behind it."""
    found = residuals(model)
    return list(zip(found[::2], found[1::2], strict=True))


class Findings:
    """What of a model does not fit a family of transformers.

    Args:
        family: its model_type.
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self.problems: list[str] = []

    def need(self, fits: bool, problem: str) -> None:
        """Note a problem, unless it fits."""
        if not fits and problem not in self.problems:
            self.problems.append(problem)

    def one(self, what: str, values: Iterable[Any]) -> Any:
        """The value that all layers have; several are a problem."""
        kinds = list(dict.fromkeys(values))
        self.need(len(kinds) < 2, f"{what} differs between layers: {kinds}; it has one for all")
        return kinds[0] if kinds else None

    def kinds(self, layers: Sequence[ResidualBlock], wanted: Sequence[type[Module]]) -> None:
        """Raise an error unless the layers are of these classes in turn."""
        turn = ", ".join(kind.__name__ for kind in wanted)
        self.need(len(layers) % len(wanted) == 0 and bool(layers), f"its layers are {turn} in turn")
        for at, block in enumerate(layers):
            kind = wanted[at % len(wanted)]
            self.need(
                isinstance(block.layer, kind),
                f"layer {at} is {type(block.layer).__name__}, not {kind.__name__}",
            )
        self.check()

    def norms(self, model: LanguageModel, kind: type[Module]) -> float | None:
        """The eps of the norms, which stand before each layer and behind the last."""
        found = [block.norm for block in residuals(model)] + [model.backbone.norm]
        pre = all(block.placement == "pre" for block in residuals(model))
        self.need(pre, "a norm stands after its layer (placement='post'), not before it")
        for norm in found:
            name = "missing" if norm is None else type(norm).__name__
            self.need(isinstance(norm, kind), f"a norm is {name}, not {kind.__name__}")
        eps: float | None = self.one("norm_eps", [getattr(norm, "eps", None) for norm in found])
        return eps

    def head(self, model: LanguageModel) -> None:
        """Note that the head has a bias."""
        biased = model.head_shift is not None or (
            model.head is not None and model.head.bias is not None
        )
        self.need(not biased, "the head has a bias (head_bias=True)")

    def check(self) -> None:
        """Raise what was noted."""
        if self.problems:
            raise ConversionError(f"the model cannot be written as {self.family!r}", self.problems)
