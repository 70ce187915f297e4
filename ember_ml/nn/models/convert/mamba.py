"""Import and export of Mamba."""

from __future__ import annotations

import math
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.configs.models import LanguageModelConfig, MambaModelConfig
from ember_ml.nn.layers.channel_mixing import RMSNorm
from ember_ml.nn.layers.sequence_mixing.mamba import Mamba
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.layouts import Filters, Piece, pieces_of
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.structure import Findings, residuals
from ember_ml.nn.models.language import LanguageModel


def config(settings: Settings) -> Config:
    """Return the config of a Mamba."""
    width = settings.size("hidden_size")
    auto = math.ceil(width / 16)
    given = settings.get("time_step_rank", "auto")
    rank = auto if given == "auto" else settings.size("time_step_rank")
    settings.expect("use_conv_bias", True, True)
    settings.expect("hidden_act", "silu", "silu")
    biased = settings.flag("use_bias", False)
    layer: dict[str, Any] = {
        "d_state": settings.size("state_size", 16),
        "d_conv": settings.size("conv_kernel", 4),
        "expand": settings.size("expand", 2),
    }
    count = settings.size("num_hidden_layers")
    shared: dict[str, Any] = {
        "vocab_size": settings.size("vocab_size"),
        "hidden_size": width,
        "norm_eps": settings.number("layer_norm_epsilon", 1e-5),
        "tie_weights": settings.flag("tie_word_embeddings", True),
    }
    settings.check()
    if rank == auto and not biased:
        return MambaModelConfig(**shared, **layer, num_layers=count)
    own = {"type": "layers/mamba", **layer, "dt_rank": rank, "bias": biased}
    return LanguageModelConfig(**shared, layers=[own] * count)


def pieces(model: LanguageModel) -> list[Piece]:
    """Return the variables and the names of their tensors."""
    pieces = pieces_of(getattr(model.backbone.norm, "weight", None), "norm_f.weight")
    for at, block in enumerate(residuals(model)):
        pieces += pieces_of(getattr(block.norm, "weight", None), f"layers.{at}.norm.weight")
        pieces += _mixer(block.layer, f"layers.{at}.mixer")
    return pieces


def _mixer(layer: Any, name: str) -> list[Piece]:
    return [
        *pieces_of(layer.in_proj.weight, f"{name}.in_proj.weight"),
        *pieces_of(layer.in_proj.bias, f"{name}.in_proj.bias"),
        *pieces_of(layer.conv.weight, f"{name}.conv1d.weight", layout=Filters()),
        *pieces_of(layer.conv.bias, f"{name}.conv1d.bias"),
        *pieces_of(layer.x_proj.weight, f"{name}.x_proj.weight"),
        *pieces_of(layer.dt_weight, f"{name}.dt_proj.weight"),
        *pieces_of(layer.dt_bias, f"{name}.dt_proj.bias"),
        *pieces_of(layer.A_log, f"{name}.A_log"),
        *pieces_of(layer.D, f"{name}.D"),
        *pieces_of(layer.out_proj.weight, f"{name}.out_proj.weight"),
        *pieces_of(layer.out_proj.bias, f"{name}.out_proj.bias"),
    ]


def describe(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a model; raise a ConversionError if it is not a Mamba."""
    findings = Findings("mamba")
    layers: list[Any] = [block.layer for block in residuals(model)]
    findings.kinds(residuals(model), (Mamba,))
    findings.head(model)
    findings.need(model.table is None, "position embeddings are added to the token embeddings")
    values = {
        "architectures": ["MambaForCausalLM"],
        "model_type": "mamba",
        "vocab_size": model.vocab_size,
        "hidden_size": model.backbone.features,
        "num_hidden_layers": len(layers),
        "state_size": findings.one("d_state", [each.d_state for each in layers]),
        "conv_kernel": findings.one("d_conv", [each.conv.kernel_size for each in layers]),
        "expand": findings.one("expand", [each.inner // each.features for each in layers]),
        "time_step_rank": findings.one("dt_rank", [each.dt_rank for each in layers]),
        "use_bias": findings.one("bias", [each.in_proj.bias is not None for each in layers]),
        "layer_norm_epsilon": findings.norms(model, RMSNorm),
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    findings.check()
    return values


MAMBA = Family(
    prefix="backbone.",
    embedding="embeddings.weight",
    derived=(),
    config=config,
    pieces=pieces,
)
