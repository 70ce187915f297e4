"""Families of models of transformers, for both directions of the conversion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.models.convert.layouts import Piece, pieces_of
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.module import Module


@dataclass(frozen=True, kw_only=True)
class Family:
    """Family of models with the same config.json and the same names of tensors.

    Attributes:
        title: Name of the family in prose.
        architecture: Class of transformers.
        config: Function from the settings of a config.json to the config of the model.
        values: Function from a model of these layers to the values of its config.json. Whether they
            describe the model is checked afterwards.
        pieces: Function from a model to its variables and the names of their tensors, except the
            embedding and the head.
        kinds: Classes of the layers, which repeat in this order.
        prefix: Prefix of all names except that of the head. Checkpoints without a head omit it.
        embedding: Name of the embedding, without the prefix.
        head: Name of the head.
        derived: Suffixes of tensors that the config determines, which older files contain.
    """

    title: str
    architecture: str
    config: Callable[[Settings], Config]
    values: Callable[[LanguageModel], dict[str, Any]]
    pieces: Callable[[LanguageModel], list[Piece]]
    kinds: tuple[tuple[type[Module], ...], ...]
    prefix: str = "model."
    embedding: str = "embed_tokens.weight"
    head: str = "lm_head.weight"
    derived: tuple[str, ...] = ("rotary_emb.inv_freq",)

    def all_pieces(self, model: LanguageModel) -> list[Piece]:
        """Return all variables of a model, with the full names of their tensors."""
        inner = pieces_of(model.embedding.weight, self.embedding) + self.pieces(model)
        named = [
            Piece(each.variable, tuple(self.prefix + name for name in each.names), each.layout)
            for each in inner
        ]
        return named + ([] if model.head is None else pieces_of(model.head.weight, self.head))
