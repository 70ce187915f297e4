"""Conversion of models to checkpoints of transformers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ember_ml._core.deferred import SizeLimitError, deferred
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, FolderError
from ember_ml._core.files import read_regular
from ember_ml._core.folders import Kind, write_folder
from ember_ml.backend import use_backend
from ember_ml.nn.checkpoint import SPARE
from ember_ml.nn.layers.channel_mixing.quantized import Packed
from ember_ml.nn.models.convert.errors import ConversionError
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.files import CONFIG, WEIGHTS, content
from ember_ml.nn.models.convert.layouts import Piece
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.structure import check_kinds
from ember_ml.nn.models.convert.table import FAMILIES
from ember_ml.nn.models.convert.traits import differences
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.module import Module
from ember_ml.nn.state_dict import saved_variables


def export(model: Module, target: str | os.PathLike[str], family: str | None = None) -> None:
    """Write a model to a folder for transformers' `from_pretrained`.

    The config.json is read back before anything is written: a model that transformers would compute
    differently raises a ConversionError that says what does not fit. Training options such as
    stochastic depth are omitted if transformers does not have them.

    Args:
        model: A language model.
        target: The folder. A model exported there before is replaced atomically; other files, such
            as a tokenizer's, stay.
        family: The model_type, such as "llama". Default: the first family in `FAMILIES` that fits
            the model.

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
    if any(isinstance(module, Packed) for module in model.modules()):
        raise ArgumentTypeError(
            "export: the model has quantized layers, which transformers does not read; export the "
            "model that was quantized"
        )
    if family is not None and family not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise ArgumentError(f"export: family={family!r} must be one of {known}, or None")
    name, values = _describe(model, (family,) if family else tuple(FAMILIES))
    pieces = FAMILIES[name].all_pieces(model)
    _check_complete(model, pieces)
    tensors = {
        name: x
        for piece in pieces
        for name, x in zip(piece.names, piece.layout.write(piece.variable.value()), strict=True)
    }
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


def _describe(model: LanguageModel, names: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """Return the first family that fits and the config.json; raise an error if none fits."""
    misfits: list[tuple[bool, int, str, list[str]]] = []
    for name in names:
        problems = check_kinds(model, FAMILIES[name].kinds)
        has_other_layers = bool(problems)
        if not problems:
            values, problems = _checked(FAMILIES[name], name, model)
        if not problems:
            return name, values
        misfits.append((has_other_layers, len(problems), name, problems))
    _, _, nearest, problems = min(misfits, key=lambda misfit: misfit[:2])
    which = repr(nearest) if len(names) == 1 else f"{nearest!r}, the nearest family"
    raise ConversionError(f"the model cannot be written as {which}", problems)


def _checked(family: Family, name: str, model: LanguageModel) -> tuple[dict[str, Any], list[str]]:
    """Return config.json, and in what a model differs from the one that it describes."""
    variables = saved_variables(model)
    size = 8 * sum(each.size for each in variables.values())
    values: dict[str, Any] = {}
    try:
        values = {
            "architectures": [family.architecture],
            "model_type": name,
            **family.values(model),
            "tie_word_embeddings": model.head is None,
        }
        config = family.config(Settings(CONFIG, values))
        backend = model.embedding.weight.backend
        with use_backend(backend), deferred(2 * size + SPARE, len(variables)):
            twin: LanguageModel = config.create()
    except ConversionError as error:
        return values, error.problems
    except (ValueError, SizeLimitError) as error:
        return values, [str(error)]
    return values, differences(model, twin)


def _check_complete(model: LanguageModel, pieces: list[Piece]) -> None:
    """Raise a ConversionError if a variable has no place in the checkpoint."""
    known = {id(piece.variable) for piece in pieces}
    left = [name for name, each in saved_variables(model).items() if id(each) not in known]
    if left:
        raise ConversionError(
            "the model has no counterpart in transformers",
            [f"there is no place for {name}" for name in left],
        )
