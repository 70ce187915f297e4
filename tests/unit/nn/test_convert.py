"""Checkpoints of transformers in, and out again."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import transformers

import ember_ml
from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.backend import available
from ember_ml.nn import models, tensor
from ember_ml.nn.models.convert import ConversionError, convert, export
from tests.backends import has_dtype

TOKENS = [[1, 2, 3, 4, 5, 6, 7], [9, 30, 7, 22, 5, 4, 0]]
SPECIAL = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
LLAMA = {
    "vocab_size": 31,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "rms_norm_eps": 0.03,
    **SPECIAL,
}
GPT2 = {
    "vocab_size": 31,
    "n_positions": 16,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
    "layer_norm_epsilon": 0.02,
    **SPECIAL,
}
MAMBA = {
    "vocab_size": 31,
    "hidden_size": 16,
    "state_size": 3,
    "num_hidden_layers": 2,
    "layer_norm_epsilon": 0.02,
    **SPECIAL,
}
ROPE = {"rope_type": "default", "rope_theta": 500.0}
CASES: dict[str, tuple[Callable[..., Any], dict[str, Any], type, str]] = {
    "gpt2": (transformers.GPT2Config, GPT2, models.TransformerModel, "gpt2"),
    "gpt2-own-head": (
        transformers.GPT2Config,
        {**GPT2, "n_inner": 20, "activation_function": "relu", "tie_word_embeddings": False},
        models.TransformerModel,
        "gpt2",
    ),
    "gpt2-dropouts": (
        transformers.GPT2Config,
        {**GPT2, "embd_pdrop": 0.2, "resid_pdrop": 0.3, "attn_pdrop": 0.0},
        models.LanguageModel,
        "gpt2",
    ),
    "llama": (
        transformers.LlamaConfig,
        {**LLAMA, "rope_parameters": ROPE},
        models.TransformerModel,
        "llama",
    ),
    "llama-biases": (
        transformers.LlamaConfig,
        {**LLAMA, "attention_bias": True, "mlp_bias": True, "hidden_act": "gelu_new"},
        models.TransformerModel,
        "llama",
    ),
    "llama-attention-bias": (
        transformers.LlamaConfig,
        {**LLAMA, "attention_bias": True, "tie_word_embeddings": True},
        models.LanguageModel,
        "llama",
    ),
    "mistral": (
        transformers.MistralConfig,
        {**LLAMA, "sliding_window": None, "rope_parameters": ROPE},
        models.TransformerModel,
        "llama",
    ),
    "mistral-window": (
        transformers.MistralConfig,
        {**LLAMA, "sliding_window": 3},
        models.TransformerModel,
        "mistral",
    ),
    "qwen2": (transformers.Qwen2Config, LLAMA, models.LanguageModel, "qwen2"),
    "mamba": (transformers.MambaConfig, MAMBA, models.MambaModel, "mamba"),
    "mamba-own-rank": (
        transformers.MambaConfig,
        {
            **MAMBA,
            "time_step_rank": 3,
            "use_bias": True,
            "conv_kernel": 3,
            "expand": 3,
            "tie_word_embeddings": False,
        },
        models.LanguageModel,
        "mamba",
    ),
}


def theirs(name: str) -> Any:
    """Return a small model of transformers in which every value affects the output."""
    made, values, _, _ = CASES[name]
    model = transformers.AutoModelForCausalLM.from_config(made(**values))
    torch.manual_seed(0)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            around = 1.0 if "norm" in key or "ln_" in key else 0.0
            weight.copy_(around + 0.3 * torch.randn_like(weight))
    return model.eval()


def logits(model: Any) -> Any:
    with torch.no_grad():
        return model(torch.tensor(TOKENS)).logits.numpy()


def loaded(folder: Path) -> Any:
    """Load the checkpoint with transformers, and check that all tensors fit."""
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys"))
    return model.eval()


def saved(name: str, folder: Path, **options: Any) -> Any:
    model = theirs(name)
    model.save_pretrained(folder, **options)
    return model


def rewrite(folder: Path, **values: Any) -> None:
    """Change values of a config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def rename(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change the tensors of a checkpoint."""
    path = folder / "model.safetensors"
    safetensors.torch.save_file(change(safetensors.torch.load_file(path)), path)


@pytest.mark.parametrize("name", CASES)
def test_logits_there_and_back(name: str, backend: str, tmp_path: Path) -> None:
    expected = logits(saved(name, tmp_path / "in"))
    assert abs(expected).max() > 0.5
    _, _, kind, family = CASES[name]
    model = convert(tmp_path / "in", tmp_path / "ember")
    assert type(model) is kind
    tokens = tensor.array(TOKENS)
    assert abs(model.eval()(tokens).numpy() - expected).max() < 1e-4
    again = ember_ml.load(tmp_path / "ember").eval()
    assert abs(again(tokens).numpy() - expected).max() < 1e-4
    export(model, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == family
    assert abs(logits(loaded(tmp_path / "out")) - expected).max() < 1e-5


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral-window", "mamba"])
def test_the_same_tokens_are_generated(name: str, backend: str, tmp_path: Path) -> None:
    model = saved(name, tmp_path / "in")
    mask = torch.ones(len(TOKENS), len(TOKENS[0]), dtype=torch.long)
    expected = model.generate(
        torch.tensor(TOKENS), attention_mask=mask, max_new_tokens=6, do_sample=False
    )
    found = convert(tmp_path / "in").generate(TOKENS, max_new_tokens=6)
    assert found.tolist() == expected.tolist()


def test_gradients_are_those_of_transformers(backend: str, tmp_path: Path) -> None:
    there = saved("llama", tmp_path / "in")
    there(torch.tensor(TOKENS)).logits.square().mean().backward()
    model = convert(tmp_path / "in").eval()
    tokens = tensor.array(TOKENS)
    _, grads = nn.value_and_grad(model, lambda: ops.mean(ops.square(model(tokens))))()
    grads = grads["backbone.blocks.0.0.layer.qkv.weight"].numpy()
    attention = there.model.layers[0].self_attn
    for part, rows in (("q", slice(0, 16)), ("k", slice(16, 24)), ("v", slice(24, 32))):
        expected = getattr(attention, f"{part}_proj").weight.grad.numpy()
        assert abs(grads[rows] - expected).max() < 1e-4


def test_another_backend_can_be_named(tmp_path: Path) -> None:
    expected = logits(saved("llama", tmp_path / "in"))
    for name in available():
        model = convert(tmp_path / "in", backend=name).eval()
        assert {x.backend for x in model.parameters()} == {name}
        found = model(tensor.array(TOKENS).to_backend(name))
        assert abs(found.numpy() - expected).max() < 1e-4


def test_weights_in_several_files(tmp_path: Path) -> None:
    expected = logits(saved("gpt2", tmp_path / "in", max_shard_size="8KB"))
    files = sorted(tmp_path.glob("in/model-*.safetensors"))
    assert len(files) > 1
    assert (
        abs(convert(tmp_path / "in").eval()(tensor.array(TOKENS)).numpy() - expected).max() < 1e-4
    )
    files[0].unlink()
    with pytest.raises(ConversionError, match=f"there is no {files[0].name}"):
        convert(tmp_path / "in")


def test_an_index_names_files_of_its_folder_only(tmp_path: Path) -> None:
    saved("gpt2", tmp_path / "in", max_shard_size="8KB")
    index = tmp_path / "in" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"transformer.wte.weight": "../x.safetensors"}}))
    with pytest.raises(ConversionError, match="name of a file in the folder"):
        convert(tmp_path / "in")


def test_files_as_older_versions_wrote_them(tmp_path: Path) -> None:
    """Without a prefix, with masks, with the head twice; rope_theta on its own."""
    expected = logits(saved("gpt2", tmp_path / "gpt2"))

    def older(state: dict[str, Any]) -> dict[str, Any]:
        state = {name.removeprefix("transformer."): value for name, value in state.items()}
        masks = {f"h.{at}.attn.bias": torch.ones(1, 1, 16, 16) for at in range(2)}
        return {**state, **masks, "lm_head.weight": state["wte.weight"].clone()}

    rename(tmp_path / "gpt2", older)
    model = convert(tmp_path / "gpt2").eval()
    assert abs(model(tensor.array(TOKENS)).numpy() - expected).max() < 1e-4

    expected = logits(saved("llama", tmp_path / "llama"))
    rewrite(tmp_path / "llama", rope_parameters=None, rope_scaling=None, rope_theta=500.0)
    model = convert(tmp_path / "llama").eval()
    assert abs(model(tensor.array(TOKENS)).numpy() - expected).max() < 1e-4


def test_dropout_of_training_comes_along(tmp_path: Path) -> None:
    saved("gpt2-dropouts", tmp_path / "in")
    model = convert(tmp_path / "in")
    blocks = model.backbone.blocks.layers
    assert (model.dropout, {block.dropout for block in blocks}) == (0.2, {0.3})
    export(model, tmp_path / "out")
    config = loaded(tmp_path / "out").config
    assert (config.embd_pdrop, config.resid_pdrop, config.attn_pdrop) == (0.2, 0.3, 0.0)


def test_half_precision_stays(backend: str, tmp_path: Path) -> None:
    theirs("llama").to(torch.bfloat16).save_pretrained(tmp_path / "in")
    model = convert(tmp_path / "in").eval()
    found = {x.dtype.name for x in model.parameters()}
    assert found == ({"bfloat16"} if has_dtype(backend, "bfloat16") else {"float32"})
    there = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "in", dtype="float32")
    expected = logits(there.eval())
    assert abs(model.to(dtype="float32")(tensor.array(TOKENS)).numpy() - expected).max() < 1e-4


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("gpt2", {"model_type": "bert"}, "model_type='bert' is not supported, only gpt2, llama"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights=False is not supported"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention=True is not supported"),
        ("gpt2", {"activation_function": "quick_gelu"}, "activation_function='quick_gelu'"),
        ("gpt2", {"n_embd": None}, "n_embd is missing"),
        ("gpt2", {"n_layer": 10**12}, "n_layer=1000000000000 is not supported, only up to 10000"),
        ("gpt2", {"n_layer": "two"}, "n_layer must be an integer above 0, not 'two'"),
        ("gpt2", {"tie_word_embeddings": 1}, "tie_word_embeddings must be true or false, not 1"),
        ("gpt2", {"attn_pdrop": "a"}, "attn_pdrop must be a number"),
        ("gpt2", {"quantization_config": {"bits": 4}}, "quantized weights are not supported"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "spiral", "rope_theta": 1.0, "factor": 8.0}},
            "rope: rope_type='spiral' is not supported, only default, linear, dynamic, llama3",
        ),
        (
            "llama",
            {"rope_parameters": None, "rope_scaling": {"type": "linear"}},
            "rope: factor is missing",
        ),
        (
            "llama",
            {"rope_parameters": {"rope_type": "default", "mrope_section": [2, 2]}},
            "rope: mrope_section=[2, 2] is not a known field",
        ),
        ("llama", {"attention_multiplier": 0.1}, "attention_multiplier=0.1 is not a known field"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "longrope", "short_factor": [1.0], "factor": 2}},
            "rope: long_factor must be a list of numbers",
        ),
        (
            "qwen2",
            {"rope_parameters": {"full_attention": ROPE}},
            "rope_type={'full_attention': {'rope_type': 'default', 'rope_theta': 500.0}} is not",
        ),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5 is not supported"),
        ("llama", {"head_dim": 0}, "head_dim must be an integer above 0, not 0"),
        ("qwen2", {"layer_types": ["full_attention"]}, "layer_types must be a list of 2 values"),
        (
            "qwen2",
            {"layer_types": ["full_attention", "sliding_attention"]},
            "layer_types: 'sliding_attention' needs a sliding_window in use",
        ),
        (
            "qwen2",
            {"layer_types": ["full_attention", "chunked_attention"]},
            "layer_types: 'chunked_attention' is not supported",
        ),
        (
            "mamba",
            {"intermediate_size": 24},
            "intermediate_size=24 is not supported, only",
        ),
        ("mamba", {"hidden_act": "gelu"}, "hidden_act='gelu' is not supported, only 'silu'"),
    ],
)
def test_what_is_not_supported_is_named(
    name: str, values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    saved(name, tmp_path / "in")
    rewrite(tmp_path / "in", **values)
    with pytest.raises(ConversionError, match=r"config\.json cannot be converted") as caught:
        convert(tmp_path / "in", tmp_path / "out")
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_several_problems_are_reported_at_once(tmp_path: Path) -> None:
    saved("gpt2", tmp_path / "in")
    rewrite(tmp_path / "in", add_cross_attention=True, scale_attn_weights=False)
    with pytest.raises(ConversionError) as caught:
        convert(tmp_path / "in")
    assert len(caught.value.problems) == 2


def test_a_problem_is_reported_once(tmp_path: Path) -> None:
    saved("llama", tmp_path / "in")
    rewrite(tmp_path / "in", hidden_size=None, sliding_window=5)
    with pytest.raises(ConversionError) as caught:
        convert(tmp_path / "in")
    named = [problem.partition("=")[0] for problem in caught.value.problems]
    assert named == ["hidden_size is missing", "sliding_window"]


def test_tensors_that_do_not_fit_are_named(tmp_path: Path) -> None:
    saved("mamba", tmp_path / "in")

    def spoilt(state: dict[str, Any]) -> dict[str, Any]:
        state["backbone.layers.0.mixer.A"] = state.pop("backbone.layers.0.mixer.A_log")
        state["backbone.layers.1.mixer.conv1d.weight"] = torch.zeros(32, 4)
        return state

    rename(tmp_path / "in", spoilt)
    with pytest.raises(ConversionError) as caught:
        convert(tmp_path / "in", tmp_path / "out")
    assert caught.value.problems == [
        "missing: backbone.layers.0.mixer.A_log",
        "unexpected: backbone.layers.0.mixer.A",
        "misshaped: backbone.layers.1.mixer.conv1d.weight has shape (32, 4), the config expects "
        "(32, 1, 4)",
    ]
    assert not (tmp_path / "out").exists()


def test_integers_are_not_weights(tmp_path: Path) -> None:
    saved("gpt2", tmp_path / "in")
    name = "transformer.wte.weight"
    rename(tmp_path / "in", lambda state: {**state, name: state[name].to(torch.int32)})
    with pytest.raises(ConversionError, match=f"{name} has the dtype int32"):
        convert(tmp_path / "in")


def test_a_tied_head_must_be_the_embedding(tmp_path: Path) -> None:
    saved("gpt2", tmp_path / "in")
    rename(tmp_path / "in", lambda state: {**state, "lm_head.weight": torch.zeros(31, 16)})
    with pytest.raises(ConversionError, match=r"lm_head\.weight differs from the embedding"):
        convert(tmp_path / "in")


def test_folders_that_hold_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"there is no config\.json"):
        convert(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ConversionError, match="must hold a JSON object"):
        convert(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConversionError, match="cannot be read"):
        convert(tmp_path)
    shutil.rmtree(tmp_path)
    saved("gpt2", tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ConversionError, match=r"model\.safetensors cannot be read"):
        convert(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ConversionError, match=r"neither model\.safetensors nor"):
        convert(tmp_path)


def test_the_source_is_not_written_over(tmp_path: Path) -> None:
    saved("gpt2", tmp_path / "in")
    before = sorted(path.name for path in (tmp_path / "in").iterdir())
    with pytest.raises(ArgumentError, match="must differ from source"):
        convert(tmp_path / "in", tmp_path / "x" / ".." / "in")
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == before


@pytest.mark.parametrize("pattern", ["(mamba)x2", "(attention[num_heads=4,bias=false] swiglu)x2"])
def test_models_of_patterns_are_written(pattern: str, backend: str, tmp_path: Path) -> None:
    model = models.LanguageModel(pattern, 31, 16).eval()
    export(model, tmp_path / "out")
    expected = model(tensor.array(TOKENS)).numpy()
    assert abs(logits(loaded(tmp_path / "out")) - expected).max() < 1e-4


def transformer(**values: Any) -> models.TransformerModel:
    like_llama = {"gated": True, "activation": "silu", "bias": False}
    return models.TransformerModel(31, 16, **{**like_llama, **values})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: models.LanguageModel("hyena", 31, 16),
            "layer 0 is Hyena, not Mamba",
        ),
        (
            lambda: models.LanguageModel("mamba swiglu", 31, 16),
            "no layer is SelfAttention",
        ),
        (
            lambda: models.LanguageModel("attention", 31, 16),
            "its layers must alternate: SelfAttention, FeedForward",
        ),
        (lambda: transformer(gated=False), "layers 1, 3: bias is (False, False), not (True, True)"),
        (
            lambda: transformer(norm="layer_norm"),
            "the final norm is 'LayerNorm(eps=1e-05)', not 'RMSNorm(eps=1e-05)'",
        ),
        (lambda: transformer(norm="none"), "layers 0, 1, 2, 3: norm is 'none', not 'RMSNorm"),
        (lambda: transformer(positions="alibi"), "layers 0, 2: positions is 'alibi'"),
        (lambda: transformer(activation="elu"), "layers 1, 3: activation is '<function elu"),
        (
            lambda: transformer(positions="learned", max_length=8, gated=False),
            "'gpt2', the nearest family:\n  the final norm is 'RMSNorm(eps=1e-06)', not 'LayerNorm",
        ),
        (
            lambda: transformer(positions="sinusoidal", max_length=8, gated=False),
            "positions is 'sinusoidal', not 'learned'",
        ),
        (
            lambda: models.LanguageModel("attention swiglu", 31, 16, head_bias=True),
            "head_bias is True, not False",
        ),
        (
            lambda: models.LanguageModel("attention swiglu", 31, 16, placement="post"),
            "layers 0, 1: placement is 'post', not 'pre'",
        ),
        (
            lambda: models.LanguageModel(
                "attention swiglu attention[rope_base=500] swiglu", 31, 16
            ),
            "layer 2: rope_base is 500.0, not 10000.0",
        ),
    ],
)
def test_models_without_a_counterpart(
    make: Callable[[], models.LanguageModel], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConversionError) as caught:
        export(make(), tmp_path / "out")
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_only_language_models_are_written(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="expected a LanguageModel, got a Dense"):
        export(nn.layers.Dense(2, 2), tmp_path / "out")  # type: ignore[arg-type]


def test_the_eps_of_norms_reaches_all_of_them(backend: str) -> None:
    """Inputs far smaller than eps come out divided by its root."""
    for made in (
        models.TransformerModel(31, 16, norm_eps=4.0),
        models.MambaModel(31, 16, norm_eps=4.0),
        models.LanguageModel("attention swiglu", 31, 16, norm="layer_norm", norm_eps=4.0),
    ):
        norms = [part for part in made.modules() if hasattr(part, "eps")]
        assert len(norms) == 1 + len(
            [p for p in made.modules() if type(p).__name__ == "ResidualBlock"]
        )
        x = ops.random.normal((1, 16), seed=0) * 1e-3
        centred = x - ops.mean(x) if type(norms[0]).__name__ == "LayerNorm" else x
        for norm in norms:
            assert abs((norm(x) - centred / math.sqrt(4.0)).numpy()).max() < 1e-6
