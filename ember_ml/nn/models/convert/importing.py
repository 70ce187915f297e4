"""From a checkpoint of transformers to a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.backend import use_backend
from ember_ml.nn.checkpoint import save
from ember_ml.nn.models.convert.errors import ConversionError
from ember_ml.nn.models.convert.families import HEAD, Family
from ember_ml.nn.models.convert.files import CONFIG, Arrays, read_arrays, read_json
from ember_ml.nn.models.convert.gpt2 import GPT2
from ember_ml.nn.models.convert.layouts import Piece
from ember_ml.nn.models.convert.llama import LLAMA, MISTRAL, QWEN2
from ember_ml.nn.models.convert.mamba import MAMBA
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.language import LanguageModel

FAMILIES = {"gpt2": GPT2, "llama": LLAMA, "mistral": MISTRAL, "qwen2": QWEN2, "mamba": MAMBA}
"""By the model_type of config.json."""

Place = str | os.PathLike[str]


def convert(
    source: Place, target: Place | None = None, backend: str | None = None
) -> LanguageModel:
    """The model of a folder that transformers' `save_pretrained` has written.

    The logits are the same, and training starts from the same values. Tensors keep their dtypes
    where the backend has them; bfloat16 becomes float32 where it has not. What is not supported
    (scaled rotary positions, quantised weights ...) is an error that names it.

    Args:
        source: a folder with config.json and model.safetensors, or the files that
            model.safetensors.index.json names, of a "gpt2", "llama", "mistral", "qwen2" or
            "mamba".
        target: a folder to save the model in as well, from which `ember_ml.load` reads it.
        backend: where to put the model; the active backend if not given.

    Example:
        >>> import tempfile
        >>> from ember_ml.nn.models.convert import convert, export
        >>> folder = tempfile.mkdtemp()
        >>> model = nn.models.MambaModel(64, 16)
        >>> export(model, f"{folder}/mamba")
        >>> again = convert(f"{folder}/mamba", f"{folder}/again")
        >>> tokens = tensor.array([[1, 2, 3]])
        >>> bool((again(tokens) == model(tokens)).all())
        True
    """
    folder = Path(source)
    if target is not None and Path(target).resolve() == folder.resolve():
        raise ArgumentError(f"convert: target={str(target)!r} must be another folder than source")
    settings = Settings(str(folder / CONFIG), read_json(folder / CONFIG))
    family = _family(settings)
    config = family.config(settings)
    arrays = read_arrays(folder)
    with use_backend(backend or runtime.active()):
        model: LanguageModel = config.create()
        _fill(model, family, arrays, folder)
    if target is not None:
        save(model, target)
    return model


def _family(settings: Settings) -> Family:
    kind = settings.get("model_type")
    if kind not in FAMILIES:
        settings.problems.append(
            f"model_type={kind!r} is not known; there are {', '.join(FAMILIES)}"
        )
        settings.check()
    if settings.get("quantization_config") is not None:
        settings.problems.append("quantization_config: quantised weights are not supported")
    return FAMILIES[kind]


def _fill(model: LanguageModel, family: Family, arrays: Arrays, folder: Path) -> None:
    """Check all tensors, then give their values to the model."""
    given = _whole_names(arrays, family)
    pieces = family.all_pieces(model)
    tied = given.pop(HEAD, None) if model.head is None else None
    _check(pieces, given, folder)
    for piece in pieces:
        piece.variable.become(piece.layout.read([_tensor(*given[name]) for name in piece.names]))
    if tied is not None and not _equal(_tensor(*tied), model.embedding.weight):
        raise ConversionError(
            f"the tensors of {folder} do not fit its {CONFIG}",
            [f"{HEAD} is not the embedding, but tie_word_embeddings says that it is"],
        )


def _equal(x: Tensor, y: Tensor) -> bool:
    return x.shape == y.shape and bool(ops.all(x == y))


def _whole_names(arrays: Arrays, family: Family) -> Arrays:
    """The tensors that count, by names with the prefix, which files without a head leave out."""
    with_prefix = any(name.startswith(family.prefix) for name in arrays)
    return {
        name if with_prefix or name == HEAD else family.prefix + name: pair
        for name, pair in arrays.items()
        if not name.endswith(family.derived)
    }


def _check(pieces: list[Piece], given: Arrays, folder: Path) -> None:
    """Raise an error that names the tensors that are missing, unexpected or of another shape."""
    shapes = {name: shape for piece in pieces for name, shape in piece.shapes().items()}
    problems = [f"missing: {name}" for name in shapes if name not in given]
    problems += [f"unexpected: {name}" for name in given if name not in shapes]
    problems += [
        f"misshaped: {name} is {tuple(given[name][0].shape)}, where the config says {shape}"
        for name, shape in shapes.items()
        if name in given and tuple(given[name][0].shape) != shape
    ]
    if problems:
        raise ConversionError(f"the tensors of {folder} do not fit its {CONFIG}", problems)


def _tensor(array: Any, dtype: str) -> Tensor:
    """On the active backend, in the dtype if the backend has it."""
    known = dtype in runtime.LOADED[runtime.active()].DTYPES
    return convert_to_tensor(array, dtype=dtype if known else None)
