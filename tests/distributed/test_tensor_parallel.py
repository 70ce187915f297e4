"""Split layers compute and learn what whole layers do, between real processes."""

from __future__ import annotations

import pytest

from ember_ml import nn, registry
from ember_ml.backend import available
from ember_ml.distributed.layout import Layout
from ember_ml.distributed.mesh import Mesh
from ember_ml.distributed.tensor_parallel import split_model
from ember_ml.distributed.world import World
from ember_ml.nn.splitting import Split
from tests.distributed.split_cases import CASES, Case
from tests.distributed.split_work import create_model
from tests.robustness.scale import FULL

WORK = "tests.distributed.split_work"
LAYER = "backbone.blocks.0.layer."
TOLERANCE = 1e-5
NEEDS_TORCH = pytest.mark.skipif("torch" not in available(), reason="needs torch")
FIRST = {case.layer: case for case in reversed(CASES)}
"""The first case of each layer."""
FOUR_PROCESSES = ["attention", "moe"]
MLX = ["grouped_query_attention", "moe", "lstm"]
if FULL:
    FOUR_PROCESSES += ["swiglu", "mamba", "hyena", "retention"]
    MLX += ["swiglu", "rwkv6_time_mixer", "mamba2"]
POOLS = [
    *[(2, "torch", case) for case in CASES],
    *[(4, "torch", FIRST[layer]) for layer in FOUR_PROCESSES],
    *[(2, "mlx", FIRST[layer]) for layer in MLX],
]
CHOSEN = [
    pytest.param(size, backend, case, id=f"{backend}{size}-{case.name}")
    for size, backend, case in POOLS
    if backend in available()
]


def check(results: list[dict]) -> None:
    """Check that split and whole models agree in each process."""
    for result in results:
        for part in ("logits", "step", "loss", "parameters"):
            assert result[part] < TOLERANCE, (part, result[part], result["worst"])
        assert result["moved"] > 0.05  # the parameters that agree have been trained


def head_shapes(size: int) -> dict[str, tuple[int, ...]]:
    return {"embedding.weight": (8 // size, 16), "head.weight": (8 // size, 16)}


@pytest.mark.parametrize(("size", "backend", "case"), CHOSEN)
def test_split_layers_train_like_whole_ones(pools, size: int, backend: str, case: Case) -> None:
    results = pools(size, backend).run(f"{WORK}:compare", layers=[case.config])
    check(results)
    shapes = {name: x.shape for name, x in create_model([case.config]).named_parameters()}
    parts = {LAYER + name: shape for name, shape in case.shapes(size).items()}
    assert parts.keys() <= shapes.keys()
    parts |= head_shapes(size)
    for result in results:
        assert result["shapes"] == {name: list(x) for name, x in {**shapes, **parts}.items()}
        assert set(result["split"]) == set(parts)
        assert (LAYER[:-1] in result["replicated"]) == (not case.shapes(size))


def test_each_layer_that_declares_a_split_is_tested() -> None:
    declared = {
        entry.bare
        for entry in registry.available("layers")
        if getattr(entry.target, "tensor_split", None) is not nn.Module.tensor_split
        and entry.target.__module__.startswith("ember_ml.")
    }
    elsewhere = {"embedding", "quantized_embedding"}  # each model has one; packed: replicated
    assert declared - elsewhere <= {case.layer for case in CASES}


@NEEDS_TORCH
def test_models_of_several_layers(pools) -> None:
    layers = [{"type": "layers/attention", "num_heads": 2}, "swiglu", "lstm", "mamba", "swiglu"]
    options = {"tie_weights": True, "head_bias": True, "norm": "layer_norm"}
    results = pools(2).run(f"{WORK}:compare", layers=layers, **options)
    check(results)
    replicated = results[0]["replicated"]
    assert replicated["backbone.blocks.2.layer"] == "LSTM"
    assert replicated["head_shift"] == "Parameter"
    assert replicated["backbone.blocks.0.layer.out.bias"] == "Parameter"
    assert results[0]["shapes"]["embedding.weight"] == [4, 16]


@NEEDS_TORCH
def test_gradients_of_torch_modules(pools) -> None:
    layers = [{"type": "layers/gla", "num_heads": 2}, "mamba2", "hyena", "mlp"]
    layers[1] = {"type": "layers/mamba2", "head_dim": 4}
    assert max(pools(2).run(f"{WORK}:native_gradients", layers=layers)) < 1e-6


@NEEDS_TORCH
def test_layouts_store_parts_of_parameters(pools) -> None:
    layers = ["lstm", {"type": "layers/gla", "num_heads": 2}, "swiglu"]
    layout = {"*.norm.weight": 0, "backbone.blocks.0.layer.*weight*": -1, "*.reduce.weight": 1}
    results = pools(2).run(f"{WORK}:compare", layers=layers, layout=layout)
    check(results)
    whole = {name: x.shape for name, x in create_model(layers).named_parameters()}
    for result in results:
        shapes = {name: tuple(shape) for name, shape in result["shapes"].items()}
        assert shapes["backbone.norm.weight"] == (8,)
        assert shapes["backbone.blocks.1.layer.norm.weight"] == (4,)  # of heads of 8 features
        lstm = [name for name in whole if name.startswith("backbone.blocks.0.layer.")]
        assert any("weight" in name for name in lstm)
        for name in lstm:
            *rest, last = whole[name]
            expected = (*rest, last // 2) if "weight" in name else whole[name]
            assert shapes[name] == expected
        assert shapes["backbone.blocks.2.layer.reduce.weight"] == (16, 24)


ERRORS = [
    (
        [{"type": "layers/attention", "num_heads": 1}],
        None,
        "backbone.blocks.0.layer: SelfAttention: num_heads (1) must be divisible by tp (2)",
    ),
    (
        [{"type": "layers/attention", "num_heads": 6, "num_kv_heads": 3, "head_features": 2}],
        None,
        "num_kv_heads (3) must be divisible by tp (2)",
    ),
    (
        [{"type": "layers/swiglu", "inner_features": 7}],
        None,
        "backbone.blocks.0.layer.expand.weight of shape (14, 16) cannot be split for tp=2: the "
        "length of axis 0 (14), in blocks of 7, is not divisible by 2",
    ),
    (["lstm"], {"backbone.blocks.0.layr.*": 0}, "no parameter matches 'backbone.blocks.0.layr.*'"),
    (["lstm"], {"embeding.weight": 0}, "did you mean 'embedding.weight'"),
    (["swiglu"], {"*.expand.weight": 1}, "is split by its layer as Split(axis=0, blocks=2"),
    (["hyena"], {"*.filter.layers.0.weight": 1}, "of shape (4, 3) cannot be split for tp=2"),
    (["lstm"], {"backbone.norm.weight": 1}, "of shape (16,) has no axis 1"),
]


@NEEDS_TORCH
@pytest.mark.parametrize(("layers", "layout", "message"), ERRORS)
def test_errors_name_what_cannot_be_split(pools, layers, layout, message: str) -> None:
    for found, changed in pools(2).run(f"{WORK}:error_of", layers=layers, layout=layout):
        assert message in found
        assert not changed


@NEEDS_TORCH
def test_masks_of_replicated_values_are_equal(pools) -> None:
    replicated = 3 + 1 + 1 + 4  # norms of the blocks and of the backbone, out.bias, the LSTM
    assert pools(2).run(f"{WORK}:dropout_keeps_copies_equal") == [[replicated, 7 + replicated]] * 2


@NEEDS_TORCH
def test_tied_quantized_and_split_layers_are_refused(pools) -> None:
    for tied, packed, twice in pools(2).run(f"{WORK}:unusual_errors"):
        assert "expand.weight belongs to several modules" in tied
        assert "SelfAttention cannot be split: its qkv.weight is missing" in packed
        assert "is split already" in twice


def test_one_process_has_the_whole_model() -> None:
    model = create_model(["mamba"])
    shapes = {name: x.shape for name, x in model.named_parameters()}
    report = split_model(model, World(Mesh(), "numpy").group("tp"))
    assert {name: x.shape for name, x in model.named_parameters()} == shapes
    assert "backbone.blocks.0.layer.A_log" in report.splits
    assert "replicated: 2 RMSNorm" in report.describe()
    assert "  backbone.norm: RMSNorm" in report.describe()


def test_layouts_refuse_values_that_are_no_axes() -> None:
    with pytest.raises(TypeError, match="must be the axis to split, or a Split, not 'rows'"):
        Layout({"*": "rows"})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="only layers can do that"):
        Layout({"*": Split(0, sizes=(2, 2), kept=(0,))})
