"""Mamba, Falcon-Mamba and Mamba-2."""

from __future__ import annotations

import math
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.configs.models import LanguageModelConfig, MambaModelConfig
from ember_ml.nn.layers.sequence_mixing.mamba import Mamba
from ember_ml.nn.layers.sequence_mixing.mamba2 import Mamba2
from ember_ml.nn.models.convert.decoder import dense_pieces, norm_pieces
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.layouts import Filters, Piece, pieces_of
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.structure import residuals
from ember_ml.nn.models.language import LanguageModel


def read_rank(settings: Settings, field: str) -> int | None:
    """Return the rank of the step sizes, or None for the default."""
    auto = math.ceil(settings.size("hidden_size") / 16)
    if settings.get(field, "auto") in ("auto", auto):
        return None
    return settings.size(field)


def _shared(settings: Settings, tie_weights: bool = True) -> dict[str, Any]:
    settings.expect("hidden_act", "silu", "silu")
    settings.expect("rms_norm", True, True)
    settings.repeats("d_model", settings.size("hidden_size"))
    settings.repeats("d_inner", settings.size("hidden_size") * _expand(settings))
    settings.repeats("n_layer", settings.layers())
    return {
        "vocab_size": settings.size("vocab_size"),
        "hidden_size": settings.size("hidden_size"),
        "norm_eps": settings.number("layer_norm_epsilon", 1e-5),
        "tie_weights": settings.flag("tie_word_embeddings", tie_weights),
    }


def _layer(settings: Settings) -> dict[str, Any]:
    """Return the options of a layer that differ from the defaults of the preset."""
    own: dict[str, Any] = {"dt_rank": read_rank(settings, "time_step_rank")}
    own["bias"] = settings.flag("use_bias", False)
    own["conv_bias"] = settings.flag("use_conv_bias", True)
    defaults = {"dt_rank": None, "bias": False, "conv_bias": True}
    return {name: value for name, value in own.items() if value != defaults[name]}


def _sizes(settings: Settings, d_state: int = 16) -> dict[str, Any]:
    return {
        "d_state": settings.size("state_size", d_state),
        "d_conv": settings.size("conv_kernel", 4),
        "expand": _expand(settings),
    }


def _expand(settings: Settings) -> int:
    """Return the number of inner channels per feature; `intermediate_size` precedes `expand`."""
    width, expand = settings.size("hidden_size"), settings.size("expand", 2)
    inner = settings.size("intermediate_size", width * expand)
    if inner % width:
        settings.problems.append(
            f"intermediate_size={inner} is not supported, only multiples of hidden_size={width}"
        )
    return max(inner // width, 1)


def config(settings: Settings) -> Config:
    """Return the config of a Mamba."""
    shared, sizes, own = _shared(settings), _sizes(settings), _layer(settings)
    count = settings.layers()
    settings.check()
    if not own:
        return MambaModelConfig(**shared, **sizes, num_layers=count)
    return LanguageModelConfig(**shared, layers=[{"type": "layers/mamba", **sizes, **own}] * count)


def falcon_config(settings: Settings) -> Config:
    """Return the config of a Falcon-Mamba, which normalizes B, C and the step sizes."""
    norm = {"select_norm": "fixed", "select_norm_eps": settings.number("mixer_rms_eps", 1e-6)}
    layer = {"type": "layers/mamba", **_sizes(settings), **_layer(settings), **norm}
    shared, count = _shared(settings), settings.layers()
    settings.check()
    return LanguageModelConfig(**shared, layers=[layer] * count)


def mamba2_config(settings: Settings) -> Config:
    """Return the config of a Mamba-2."""
    width, expand = settings.size("hidden_size"), settings.size("expand", 2)
    size = settings.size("head_dim", 64)
    heads = width * expand // size
    settings.repeats("intermediate_size", width * expand)
    settings.expect("num_heads", heads, 128)
    settings.expect("time_step_limit", [0.0, math.inf], [0.0, math.inf])
    for name in ("time_step_rank", "norm_before_gate"):
        settings.get(name)  # transformers does not use them
    shared = _shared(settings, tie_weights=False)
    layer = {
        "type": "layers/mamba2",
        **_sizes(settings, 128),
        "head_dim": size,
        "num_groups": settings.size("n_groups", 8),
        "chunk_size": settings.size("chunk_size", 256),
        "bias": settings.flag("use_bias", False),
        "conv_bias": settings.flag("use_conv_bias", True),
        "norm_eps": shared["norm_eps"],
    }
    count = settings.layers()
    settings.check()
    return LanguageModelConfig(**shared, layers=[layer] * count)


def pieces(model: LanguageModel) -> list[Piece]:
    """Return the variables and the names of their tensors."""
    pieces = norm_pieces(model.backbone.norm, "norm_f")
    for at, block in enumerate(residuals(model)):
        pieces += norm_pieces(block.norm, f"layers.{at}.norm")
        pieces += mixer_pieces(block.layer, f"layers.{at}.mixer")
    return pieces


def mixer_pieces(layer: Any, name: str) -> list[Piece]:
    """Return the variables of a Mamba or Mamba-2 layer."""
    pieces = [
        *dense_pieces(layer.in_proj, f"{name}.in_proj"),
        *dense_pieces(layer.out_proj, f"{name}.out_proj"),
        *pieces_of(layer.conv.weight, f"{name}.conv1d.weight", layout=Filters()),
        *pieces_of(layer.conv.bias, f"{name}.conv1d.bias"),
        *pieces_of(layer.A_log, f"{name}.A_log"),
        *pieces_of(layer.D, f"{name}.D"),
    ]
    if isinstance(layer, Mamba2):
        own = pieces_of(layer.dt_bias, f"{name}.dt_bias") + norm_pieces(layer.norm, f"{name}.norm")
        return pieces + own
    return [
        *pieces,
        *pieces_of(layer.x_proj.weight, f"{name}.x_proj.weight"),
        *pieces_of(layer.dt_weight, f"{name}.dt_proj.weight"),
        *pieces_of(layer.dt_bias, f"{name}.dt_proj.bias"),
    ]


def _common_values(model: LanguageModel) -> dict[str, Any]:
    layer: Any = residuals(model)[0].layer
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.backbone.features,
        "num_hidden_layers": len(residuals(model)),
        "state_size": layer.d_state,
        "conv_kernel": layer.conv.kernel_size,
        "expand": layer.inner // layer.features,
        "use_bias": layer.in_proj.bias is not None,
        "use_conv_bias": layer.conv.bias is not None,
        "layer_norm_epsilon": getattr(model.backbone.norm, "eps", None),
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }


def values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Mamba."""
    layer: Any = residuals(model)[0].layer
    sizes = {"time_step_rank": layer.dt_rank, "intermediate_size": layer.inner}
    return {**_common_values(model), **sizes}


def falcon_values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Falcon-Mamba."""
    layer: Any = residuals(model)[0].layer
    has_norm = layer.select_norm != "none"
    return {**values(model), "mixer_rms_eps": layer.dt_norm.eps if has_norm else 1e-6}


def mamba2_values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Mamba-2."""
    layer: Any = residuals(model)[0].layer
    return {
        **_common_values(model),
        "num_heads": layer.num_heads,
        "head_dim": layer.head_dim,
        "n_groups": layer.num_groups,
        "chunk_size": layer.chunk_size,
    }


MAMBA = Family(
    title="Mamba",
    architecture="MambaForCausalLM",
    config=config,
    values=values,
    pieces=pieces,
    kinds=((Mamba,),),
    prefix="backbone.",
    embedding="embeddings.weight",
    derived=(),
)
FALCON_MAMBA = Family(
    title="Falcon-Mamba",
    architecture="FalconMambaForCausalLM",
    config=falcon_config,
    values=falcon_values,
    pieces=pieces,
    kinds=((Mamba,),),
    prefix="backbone.",
    embedding="embeddings.weight",
    derived=(),
)
MAMBA2 = Family(
    title="Mamba-2",
    architecture="Mamba2ForCausalLM",
    config=mamba2_config,
    values=mamba2_values,
    pieces=pieces,
    kinds=((Mamba2,),),
    prefix="backbone.",
    embedding="embeddings.weight",
    derived=(),
)
