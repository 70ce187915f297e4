"""Parts that the families of Llama's kind share: settings, names of tensors, config.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.models.convert.activations import name_of, read_activation
from ember_ml.nn.models.convert.errors import ConversionError
from ember_ml.nn.models.convert.layouts import Layout, Piece, Same, Shifted, Stacked, pieces_of
from ember_ml.nn.models.convert.rope import TYPES, longest_of, read_rope, write_rope
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.stacks import Transformer
from ember_ml.nn.models.convert.structure import pairs
from ember_ml.nn.models.language import LanguageModel

DEFAULT_LENGTH = 2048
FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """Defaults of transformers for missing fields of a family.

    Attributes:
        kv_heads: Number of key and value heads. Default: that of the query heads.
        head_features: Features of a head. Default: hidden size / heads.
        max_length: Maximum sequence length.
        norm_eps: Epsilon of the norms.
        rope_base: Base of the rotary frequencies.
        rope_share: Share of the features of a head that are rotated. None: always all.
        rope_types: Types of scaling of rotary embeddings.
        activation: Field and name of the activation.
        tie_weights: Whether the head uses the embedding matrix.
    """

    kv_heads: int | None = None
    head_features: int | None = None
    max_length: int = DEFAULT_LENGTH
    norm_eps: float = 1e-6
    rope_base: float = 10000.0
    rope_share: float | None = None
    rope_types: tuple[str, ...] = TYPES
    activation: tuple[str, str] = ("hidden_act", "silu")
    tie_weights: bool = False


def read_decoder(
    settings: Settings,
    defaults: Defaults,
    *,
    rope: bool = True,
    qk_norm: str = "none",
    attention: Mapping[str, Any] | None = None,
    attention_bias: bool = False,
    inner_bias: bool = False,
    inner_size: int | None = None,
    **differences: Any,
) -> Config:
    """Return the config of a model.

    Args:
        settings: The settings.
        defaults: Defaults of the family.
        rope: Whether all attention layers have the rotary embeddings of the settings.
        qk_norm: Norms of queries and keys.
        attention: Further options of all attention layers.
        attention_bias: Whether attention layers have biases.
        inner_bias: Whether feed-forward layers have biases.
        inner_size: Inner size of feed-forward layers. Default: `intermediate_size`.
        differences: Further fields of `Transformer`.
    """
    width, heads = settings.size("hidden_size"), settings.size("num_attention_heads")
    eps = settings.number("rms_norm_eps", defaults.norm_eps)
    length = settings.size("max_position_embeddings", defaults.max_length)
    head_features = read_head_features(settings, defaults)
    options = dict(attention or {})
    if head_features * heads != width:
        options["head_features"] = head_features
    if qk_norm != "none":
        options |= {"qk_norm": qk_norm, "qk_norm_eps": eps}
    if rope:
        options |= read_rope(
            settings,
            head_features,
            base=defaults.rope_base,
            share=defaults.rope_share,
            types=defaults.rope_types,
        )
    transformer = Transformer(
        vocab_size=settings.size("vocab_size"),
        hidden_size=width,
        num_layers=settings.layers(),
        num_heads=heads,
        num_kv_heads=settings.size("num_key_value_heads", defaults.kv_heads or heads),
        inner_size=inner_size or settings.size("intermediate_size"),
        activation=read_activation(settings, *defaults.activation),
        gated=True,
        norm="rms_norm",
        norm_eps=eps,
        max_length=length,
        tie_weights=settings.flag("tie_word_embeddings", defaults.tie_weights),
        attention_bias=attention_bias,
        inner_bias=inner_bias,
        attention_dropout=settings.number("attention_dropout", 0.0),
        attention=options,
        **differences,
    )
    settings.check()
    return transformer.config()


def read_head_features(settings: Settings, defaults: Defaults) -> int:
    """Return the number of features of a head."""
    width, heads = settings.size("hidden_size"), settings.size("num_attention_heads")
    return settings.size("head_dim", defaults.head_features or max(width // heads, 1))


def read_window(settings: Settings, default: int | None = None) -> int | None:
    """Return the number of earlier positions in the sliding window, or None."""
    if settings.nullable("sliding_window", default) is None:
        return None
    return settings.size("sliding_window", default) - 1  # includes the position itself


def read_layer_types(settings: Settings, default: Callable[[int], str]) -> list[str]:
    """Return the types of the attention layers.

    Args:
        settings: The settings.
        default: Function from the index of a layer to its type.
    """
    count = settings.layers()
    kinds = settings.items("layer_types", count, [default(at) for at in range(count)])
    for kind in dict.fromkeys(map(str, kinds)):
        if kind not in (FULL, SLIDING):
            settings.problems.append(f"layer_types: {kind!r} is not supported")
    return kinds


def windows_by_layer(
    settings: Settings, kinds: Sequence[str], window: int | None
) -> list[dict[str, Any]]:
    """Return the windows of attention layers; an empty list if there are none."""
    if SLIDING not in kinds:
        return []
    if window is None:
        settings.problems.append(f"layer_types: {SLIDING!r} needs a sliding_window in use")
    return [{"window": window if kind == SLIDING else None} for kind in kinds]


@dataclass(frozen=True)
class Names:
    """Names of tensors that differ between families.

    Attributes:
        norms: Names of the norms of two layers, in the order in which they are applied.
        fused: Whether queries, keys and values are one tensor, and gate and value too.
        shift: Number that is added to the weights of norms.
    """

    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    fused: bool = False
    shift: float = 0.0


def pieces(model: LanguageModel, names: Names) -> list[Piece]:
    """Return the variables and the names of their tensors."""
    layout: Layout = Shifted(names.shift) if names.shift else Same()
    pieces = norm_pieces(model.backbone.norm, "norm", layout)
    for at, (first, second) in enumerate(pairs(model)):
        name = f"layers.{at}"
        norms = [first.norm, first.output_norm, second.norm, second.output_norm]
        norms = [norm for norm in norms if norm is not None]
        for norm, own in zip(norms, names.norms, strict=True):
            pieces += norm_pieces(norm, f"{name}.{own}", layout)
        pieces += attention_pieces(first.layer, f"{name}.self_attn", names.fused, layout)
        pieces += inner_pieces(second.layer, f"{name}.mlp", names.fused)
    return pieces


def norm_pieces(norm: Any, name: str, layout: Layout | None = None) -> list[Piece]:
    """Return the weight and the bias of a norm."""
    return [
        *pieces_of(getattr(norm, "weight", None), f"{name}.weight", layout=layout),
        *pieces_of(getattr(norm, "bias", None), f"{name}.bias"),
    ]


def dense_pieces(dense: Any, *names: str, layout: Layout | None = None) -> list[Piece]:
    """Return the weight and the bias of a linear map, stacked from maps of these names."""
    return [
        *pieces_of(dense.weight, *(f"{name}.weight" for name in names), layout=layout),
        *pieces_of(dense.bias, *(f"{name}.bias" for name in names), layout=layout),
    ]


def attention_pieces(
    layer: Any, name: str, fused: bool = False, norms: Layout | None = None
) -> list[Piece]:
    """Return the variables of an attention layer."""
    queries, each = (count * layer.head_features for count in (layer.num_heads, layer.num_kv_heads))
    parts = [f"{name}.{part}_proj" for part in "qkv"]
    pieces = (
        dense_pieces(layer.qkv, f"{name}.qkv_proj")
        if fused
        else dense_pieces(layer.qkv, *parts, layout=Stacked(queries, each, each))
    )
    pieces += dense_pieces(layer.out, f"{name}.o_proj")
    if layer.qk_norm != "none":
        pieces += norm_pieces(layer.query_norm, f"{name}.q_norm", norms)
        pieces += norm_pieces(layer.key_norm, f"{name}.k_norm", norms)
    return pieces


def inner_pieces(layer: Any, name: str, fused: bool = False) -> list[Piece]:
    """Return the variables of a gated feed-forward layer."""
    inner = layer.reduce.in_features
    parts = [f"{name}.{part}_proj" for part in ("gate", "up")]
    pieces = (
        dense_pieces(layer.expand, f"{name}.gate_up_proj")
        if fused
        else dense_pieces(layer.expand, *parts, layout=Stacked(inner, inner))
    )
    return pieces + dense_pieces(layer.reduce, f"{name}.down_proj")


def values(model: LanguageModel) -> dict[str, Any]:
    """Return the values of config.json that all these families have."""
    mixers = [first.layer for first, _ in pairs(model)]
    attention = [layer for layer in mixers if isinstance(layer, SelfAttention)]
    if not attention:
        raise ConversionError("the model cannot be written", ["no layer is SelfAttention"])
    first: Any = attention[0]
    inner: Any = pairs(model)[0][1].layer
    rotated = [layer for layer in attention if layer.positions == "rope"] or [first]
    length = longest_of(rotated[0]) or getattr(model.config, "max_length", None)
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.backbone.features,
        "num_hidden_layers": len(mixers),
        "num_attention_heads": first.num_heads,
        "num_key_value_heads": first.num_kv_heads,
        "head_dim": first.head_features,
        "intermediate_size": inner_size_of(inner),
        "hidden_act": name_of(activation_of(inner)),
        "max_position_embeddings": length or DEFAULT_LENGTH,
        "rms_norm_eps": getattr(model.backbone.norm, "eps", None),
        "attention_dropout": first.dropout,
        "rope_theta": rotated[0].rope_base,  # for transformers before version 5
        "rope_parameters": write_rope(rotated[0]),
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }


def inner_size_of(layer: Any) -> int:
    """Return the inner size of a feed-forward layer or of its experts."""
    experts = getattr(layer, "experts", None)
    size: int = layer.reduce.in_features if experts is None else experts.reduce.shape[-1]
    return size


def activation_of(layer: Any) -> object:
    """Return the activation of a feed-forward layer or of its experts."""
    return getattr(layer, "experts", layer).activation


def write_windows(model: LanguageModel) -> dict[str, Any]:
    """Return the window and the types of the attention layers."""
    windows = [getattr(first.layer, "window", None) for first, _ in pairs(model)]
    sizes = [window + 1 for window in windows if window is not None]
    return {
        "sliding_window": sizes[0] if sizes else None,
        "layer_types": [FULL if window is None else SLIDING for window in windows],
    }
