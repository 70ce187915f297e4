"""Families of models of transformers, for both directions of the conversion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ember_ml.configs.base import Config
from ember_ml.nn.models.convert.layouts import Piece, pieces_of
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.language import LanguageModel

HEAD = "lm_head.weight"


@dataclass(frozen=True)
class Family:
    """Family of models with the same names of tensors.

    Attributes:
        prefix: Prefix of all names except that of the head. Checkpoints without a head omit it.
        embedding: Name of the embedding, without the prefix.
        derived: Suffixes of tensors that the config determines, which older files contain.
        config: Function from the settings of a config.json to the config of the model.
        pieces: Function from a model to its variables and the names of their tensors, except the
            embedding and the head.
    """

    prefix: str
    embedding: str
    derived: tuple[str, ...]
    config: Callable[[Settings], Config]
    pieces: Callable[[LanguageModel], list[Piece]]

    def all_pieces(self, model: LanguageModel) -> list[Piece]:
        """Return all variables of a model, with the full names of their tensors."""
        inner = pieces_of(model.embedding.weight, self.embedding) + self.pieces(model)
        named = [
            Piece(each.variable, tuple(self.prefix + name for name in each.names), each.layout)
            for each in inner
        ]
        return named + ([] if model.head is None else pieces_of(model.head.weight, HEAD))
