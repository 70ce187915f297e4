"""Quantization of the dense layers and embeddings of a model."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar, get_args

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn import _traversal
from ember_ml.nn.layers.channel_mixing import Dense, Embedding, QuantizedDense, QuantizedEmbedding
from ember_ml.nn.layers.channel_mixing.quantized import Bits, Packed
from ember_ml.nn.module import Module
from ember_ml.nn.quantization.report import QuantizationReport
from ember_ml.registry.base import close_matches

M = TypeVar("M", bound=Module)
SKIP = ("head",)
"""What is not quantized by default: the output layer of a language model."""
FEWEST_FEATURES = 16
"""Narrower matrices save little memory, and are often sensitive, such as those of filters."""


def quantize(
    model: M,
    bits: Bits = 8,
    group_size: int = 64,
    skip: Iterable[str] = SKIP,
    *,
    embeddings: bool = False,
) -> tuple[M, QuantizationReport]:
    """Return a copy of a model with integer weights in its dense layers, and a report.

    The copy is for inference. It is saved, loaded and moved between backends like any model. Its
    quantized weights receive no gradient; the other parameters do. The given model is not changed.

    Args:
        model: A trained model. Dense layers in any of its modules are quantized; other weights,
            such as those of convolutions and stacked experts, keep their dtype. So do layers of
            fewer than 16 inputs.
        bits: Bits per weight: 8, or 4 for half the memory at a larger error.
        group_size: Number of consecutive inputs of a weight matrix that share a scale. Smaller
            groups are more accurate and need more memory. The last group of a row may be smaller.
        skip: Dotted names of modules, or patterns such as "*.qkv", whose layers are not quantized.
        embeddings: Whether to quantize embeddings too. They are also the head if it is tied.

    Raises:
        ArgumentError: If a weight is NaN or infinite, or a name in `skip` matches no module.

    Example:
        >>> model = nn.models.LanguageModel("attention swiglu", vocab_size=16, hidden_size=64)
        >>> small, report = nn.quantization.quantize(model)
        >>> report.kept
        {'embedding': 'embeddings=False', 'head': 'skip'}
        >>> small.num_parameters() == model.num_parameters()
        True
    """
    _check(model, bits, group_size)
    patterns = _patterns(model, skip)
    uses = _uses(model)
    replaced: dict[str, Packed] = {}
    memo: dict[int, Any] = {}
    kept: dict[str, str] = {}
    for name, layer in model.named_modules():
        if not isinstance(layer, (Dense, Embedding)):
            continue
        why = _reason(name, layer, patterns, uses, embeddings)
        packed = None if why else _quantized(name, layer, bits, group_size)
        if packed is None:
            kept[name] = why or "it would not become smaller"
            continue
        replaced[name] = memo[id(layer)] = packed
    small: M = copy.deepcopy(model, memo)
    before, after = model.num_bytes(), small.num_bytes()
    return small, QuantizationReport(bits, group_size, tuple(replaced), kept, before, after)


def _check(model: Module, bits: int, group_size: int) -> None:
    if not isinstance(model, Module):
        raise ArgumentTypeError(f"quantize: expected a module, got {model!r:.60}")
    if bits not in get_args(Bits):
        raise ArgumentError(f"quantize: bits must be 4 or 8, not {bits!r}")
    if not isinstance(group_size, int) or group_size < 1:
        raise ArgumentError(f"quantize: group_size must be a positive integer, not {group_size!r}")


def _patterns(model: Module, skip: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of modules to skip; each but the default one must match a module."""
    patterns = (skip,) if isinstance(skip, str) else tuple(skip)
    names = [name for name, _ in model.named_modules() if name]
    for pattern in patterns:
        if pattern not in SKIP and not any(_matches(name, pattern) for name in names):
            raise ArgumentError(
                f"quantize: skip={pattern!r} matches no module of {type(model).__name__}"
                + close_matches(pattern, names)
            )
    return patterns


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or name.startswith(f"{pattern}.")


def _uses(model: Module) -> Mapping[int, int]:
    """Return the number of modules that hold each variable, by id."""
    modules = list(model.modules())
    return Counter(id(variable) for each in modules for _, variable in _traversal.parts(each)[0])


def _reason(
    name: str,
    layer: Dense | Embedding,
    patterns: Iterable[str],
    uses: Mapping[int, int],
    embeddings: bool,
) -> str:
    """Return why a layer is not quantized; empty if it is."""
    if isinstance(layer, Packed):
        return "already quantized"
    if any(_matches(name, pattern) for pattern in patterns):
        return "skip"
    if isinstance(layer, Embedding) and not embeddings:
        return "embeddings=False"
    if type(layer) not in (Dense, Embedding):
        return f"{type(layer).__name__} is a subclass of {type(layer).__mro__[1].__name__}"
    if layer._hooks is not None and layer._hooks.has_any:
        return "it has hooks"
    if uses[id(layer.weight)] > 1:
        return "another module uses its weight"
    if layer.weight.dtype.kind != "float":
        return f"its dtype is {layer.weight.dtype}"
    narrow = layer.weight.shape[1] < FEWEST_FEATURES
    return f"fewer than {FEWEST_FEATURES} features" if narrow else ""


def _quantized(
    name: str, layer: Dense | Embedding, bits: Bits, group_size: int
) -> QuantizedDense | QuantizedEmbedding | None:
    """Return the quantized layer; None if it would not need less memory."""
    weight = layer.weight
    _check_values(name, weight, bits)
    rows, features = weight.shape
    scales = -(-features // group_size) * weight.dtype.itemsize * (1 if bits == 8 else 2)
    if -(-features * bits // 8) + scales >= features * weight.dtype.itemsize:
        return None
    packed: QuantizedDense | QuantizedEmbedding
    if isinstance(layer, Dense):
        # An activation with parameters is moved, not created anew.
        packed = QuantizedDense(
            features, rows, layer.bias is not None, _activation(layer), bits, group_size
        )
        packed.activation = copy.deepcopy(layer.activation)
        packed.bias = copy.deepcopy(layer.bias)
    else:
        packed = QuantizedEmbedding(rows, features, layer.padding_index, bits, group_size)
    packed.load_weight(weight)
    packed.training = layer.training
    packed.is_replacement = True
    return packed


def _check_values(name: str, weight: Tensor, bits: Bits) -> None:
    """Raise an ArgumentError that names the parameter if its values cannot be quantized."""
    if not bool(ops.isfinite(weight).all()):
        problem = "contains NaN or infinite values"
    elif bits == 4 and float(weight.max()) - float(weight.min()) > ops.finfo(weight.dtype).max:
        problem = f"has a range that is too large for {weight.dtype} with 4 bits"
    else:
        return
    raise ArgumentError(
        f"quantize: {name + '.' if name else ''}weight {problem}; fix the values, or keep the "
        f"layer in floating point with skip=({name!r},)"
    )


def _activation(layer: Dense) -> Any:
    """Return the activation of a layer as its config describes it."""
    return layer.activation if layer.config is None else layer.config.activation
