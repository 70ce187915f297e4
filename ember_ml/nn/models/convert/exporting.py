"""Conversion of models to checkpoints of transformers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ember_ml._core.errors import ArgumentTypeError, FolderError
from ember_ml._core.files import read_regular
from ember_ml._core.folders import Kind, write_folder
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.layers.sequence_mixing.mamba import Mamba
from ember_ml.nn.models.convert import gpt2_export, llama_export, mamba
from ember_ml.nn.models.convert.errors import ConversionError
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.files import CONFIG, WEIGHTS, content
from ember_ml.nn.models.convert.gpt2 import GPT2
from ember_ml.nn.models.convert.layouts import Piece
from ember_ml.nn.models.convert.llama import LLAMA
from ember_ml.nn.models.convert.structure import residuals
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.module import Module
from ember_ml.nn.state_dict import saved_variables


def export(model: Module, target: str | os.PathLike[str]) -> None:
    """Write a model to a folder for transformers' `from_pretrained`.

    Mamba layers are written as "mamba"; attention and feed-forward layers with layer norms and
    learned positions as "gpt2"; attention with rotary embeddings and gated layers with RMS norms as
    "llama", or as "mistral" if attention has a window. Any other model raises a ConversionError
    that says what does not fit. Training options such as stochastic depth are omitted if
    transformers does not have them.

    Args:
        model: A language model.
        target: The folder. A model exported there before is replaced atomically; other files, such
            as a tokenizer's, stay.

    Raises:
        FolderError: If the folder has a `config.json` or `model.safetensors` that was not exported.

    Example:
        >>> import pathlib, tempfile
        >>> from ember_ml.nn.models.convert import export
        >>> folder = tempfile.mkdtemp()
        >>> model = nn.models.TransformerModel(64, 16, gated=True, activation="silu", bias=False)
        >>> export(model, f"{folder}/llama")
        >>> '"model_type": "llama"' in pathlib.Path(f"{folder}/llama/config.json").read_text()
        True
    """
    if not isinstance(model, LanguageModel):
        raise ArgumentTypeError(f"export: expected a LanguageModel, got a {type(model).__name__}")
    family, values = _describe(model)
    pieces = family.all_pieces(model)
    _check_complete(model, pieces)
    tensors = {
        name: x
        for piece in pieces
        for name, x in zip(piece.names, piece.layout.write(piece.variable.value()), strict=True)
    }
    values["tie_word_embeddings"] = model.head is None
    values["dtype"] = model.embedding.weight.dtype.name
    _check_target(Path(target))
    write_folder(target, content(values, tensors), KIND)


def _check_target(folder: Path) -> None:
    """Raise an error if transformers saved a model to a folder, perhaps after an export to it."""
    if "transformers_version" in _read_config(folder):
        raise FolderError(
            f"{folder / CONFIG} was written by transformers and is not overwritten; export to "
            "another folder"
        )


def _is_earlier_export(folder: Path) -> bool:
    """Return whether a version without checksums exported to the folder."""
    return "model_type" in _read_config(folder)


def _read_config(folder: Path) -> dict[str, Any]:
    """Return the config in a folder; {} if there is none, or if it cannot be read."""
    try:
        values = json.loads(read_regular(folder / CONFIG))
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


KIND = Kind(
    "transformers", "a model for transformers", frozenset((CONFIG, WEIGHTS)), _is_earlier_export
)


def _describe(model: LanguageModel) -> tuple[Family, dict[str, Any]]:
    """Return the family of a model and its config.json; raise an error if none fits."""
    layers = [block.layer for block in residuals(model)]
    if any(isinstance(layer, Mamba) for layer in layers):
        return mamba.MAMBA, mamba.describe(model)
    if not any(isinstance(layer, SelfAttention) for layer in layers):
        names = ", ".join(dict.fromkeys(type(layer).__name__ for layer in layers))
        raise ConversionError(
            "the model has no counterpart in transformers",
            [f"its layers are {names or 'none'}, but must contain SelfAttention or Mamba"],
        )
    if model.table is not None:
        return GPT2, gpt2_export.describe(model)
    return LLAMA, llama_export.describe(model)


def _check_complete(model: LanguageModel, pieces: list[Piece]) -> None:
    """Raise a ConversionError if a variable has no place in the checkpoint."""
    known = {id(piece.variable) for piece in pieces}
    left = [name for name, each in saved_variables(model).items() if id(each) not in known]
    if left:
        raise ConversionError(
            "the model has no counterpart in transformers",
            [f"there is no place for {name}" for name in left],
        )
