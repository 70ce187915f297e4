"""Conversion of checkpoints of transformers to models."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.deferred import SizeLimitError, deferred
from ember_ml._core.dtype import from_name
from ember_ml._core.errors import ArgumentError
from ember_ml._core.folders import find_folder
from ember_ml._core.tensor import Tensor
from ember_ml._core.types import NativeArray
from ember_ml.backend import use_backend
from ember_ml.nn.checkpoint import SPARE, save
from ember_ml.nn.models.convert.errors import ConversionError
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.files import CONFIG, Arrays, read_arrays, read_json
from ember_ml.nn.models.convert.layouts import Piece
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.table import FAMILIES
from ember_ml.nn.models.decoding.tokenizers import find_tokenizer
from ember_ml.nn.models.language import LanguageModel

Place = str | os.PathLike[str]


def convert(
    source: Place,
    target: Place | None = None,
    backend: str | None = None,
    *,
    ignore: Collection[str] = (),
) -> LanguageModel:
    """Return the model in a folder written by transformers' `save_pretrained`.

    The model computes the same logits, and has the tokenizer of the folder's tokenizer.json.
    Tensors keep their dtypes if the backend has them; otherwise, bfloat16 becomes float32.
    Unsupported features, such as quantized weights, and unknown fields of config.json raise a
    ConversionError that names them.

    Args:
        source: Folder with config.json and model.safetensors, or the files that
            model.safetensors.index.json names, of one of the families in `FAMILIES`: GPT-2, Llama,
            Mistral, Qwen2, Qwen3, SmolLM3, OLMo 2, Phi-3, Gemma 2, Gemma 3 (text), GPT-NeoX,
            Mixtral, Mamba, Falcon-Mamba, Mamba-2, Jamba or RecurrentGemma.
        target: Folder to save the model in, for `ember_ml.load`. Default: it is not saved.
        backend: Backend of the model. Default: the active backend.
        ignore: Unknown fields of config.json to ignore, because they do not change the logits.

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
    folder = find_folder(source)
    if target is not None and Path(target).resolve() == folder.resolve():
        raise ArgumentError(f"convert: target={str(target)!r} must differ from source")
    settings = Settings(str(folder / CONFIG), read_json(folder / CONFIG), ignore)
    family = _family(settings)
    with _explained(settings):
        config = family.config(settings)
    arrays = read_arrays(folder)
    with use_backend(backend or runtime.active()):
        with _explained(settings), deferred(2 * _size(arrays) + SPARE, len(arrays)):
            model: LanguageModel = config.create()
        _fill(model, family, arrays, folder)
    model.tokenizer = find_tokenizer(folder)
    if target is not None:
        save(model, target)
    return model


def _size(arrays: Arrays) -> int:
    return sum(8 * math.prod(array.shape) for array, _ in arrays.values())


@contextlib.contextmanager
def _explained(settings: Settings) -> Iterator[None]:
    """Raise errors of the config and of the constructors as a ConversionError."""
    try:
        yield
    except ConversionError:
        raise
    except SizeLimitError as error:
        raise ConversionError(
            f"{settings.where} describes a larger model than the weights hold", [str(error)]
        ) from None
    except Exception as error:  # values of any type and size arrive here
        raise ConversionError(
            f"{settings.where} cannot be converted", [f"{type(error).__name__}: {error!s:.500}"]
        ) from error


def _family(settings: Settings) -> Family:
    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        settings.problems.append(
            f"model_type={kind!r} is not supported, only {', '.join(FAMILIES)}"
        )
        settings.check()
    if settings.get("quantization_config") is not None:
        settings.problems.append("quantization_config: quantized weights are not supported")
    return FAMILIES[kind]


def _fill(model: LanguageModel, family: Family, arrays: Arrays, folder: Path) -> None:
    """Check all tensors, then load them into the model."""
    given = _whole_names(arrays, family)
    pieces = family.all_pieces(model)
    tied = given.pop(family.head, None) if model.head is None else None
    _check(pieces, given, folder)
    for piece in pieces:
        piece.variable.become(piece.layout.read([_tensor(*given[name]) for name in piece.names]))
    if tied is not None and not _equal(_tensor(*tied), model.embedding.weight):
        raise ConversionError(
            f"the tensors of {folder} do not fit its {CONFIG}",
            [f"{family.head} differs from the embedding, but tie_word_embeddings is true"],
        )


def _equal(x: Tensor, y: Tensor) -> bool:
    return x.shape == y.shape and bool(ops.all(x == y))


def _whole_names(arrays: Arrays, family: Family) -> Arrays:
    """Return the tensors by full name, without derived ones; headless files omit the prefix."""
    with_prefix = any(name.startswith(family.prefix) for name in arrays)
    return {
        name if with_prefix or name == family.head else family.prefix + name: pair
        for name, pair in arrays.items()
        if not name.endswith(family.derived)
    }


def _check(pieces: list[Piece], given: Arrays, folder: Path) -> None:
    """Raise a ConversionError that names the tensors that are missing or do not fit."""
    shapes = {name: shape for piece in pieces for name, shape in piece.shapes().items()}
    problems = [f"missing: {name}" for name in shapes if name not in given]
    problems += [f"unexpected: {name}" for name in given if name not in shapes]
    problems += [
        f"misshaped: {name} has shape {tuple(given[name][0].shape)}, the config expects {shape}"
        for name, shape in shapes.items()
        if name in given and tuple(given[name][0].shape) != shape
    ]
    problems += [
        f"{name} has the dtype {dtype}, not a floating-point one"
        for name, (_, dtype) in given.items()
        if name in shapes and not from_name(dtype).is_floating
    ]
    if problems:
        raise ConversionError(f"the tensors of {folder} do not fit its {CONFIG}", problems)


def _tensor(array: NativeArray, dtype: str) -> Tensor:
    """Return a tensor on the active backend, in the dtype if the backend has it."""
    known = dtype in runtime.LOADED[runtime.active()].DTYPES
    return convert_to_tensor(array, dtype=dtype if known else None)
