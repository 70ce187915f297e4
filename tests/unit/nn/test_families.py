"""Every family of the conversion, against transformers with random weights."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import transformers

import ember_ml
from ember_ml import nn, ops
from ember_ml.nn import models, tensor
from ember_ml.nn.models.convert import FAMILIES, ConversionError, convert, export

TOKENS = [[1, 2, 3, 4, 5, 6, 7], [9, 30, 7, 22, 5, 4, 0]]
WIDTHS = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
DECODER = {
    **WIDTHS,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rms_norm_eps": 0.01,
}
MIXED = ["sliding_attention", "full_attention"]
GEMMA = {
    **DECODER,
    "head_dim": 16,
    "query_pre_attn_scalar": 20,
    "sliding_window": 3,
    "layer_types": MIXED,
}
MAMBA = {**WIDTHS, "state_size": 3, "layer_norm_epsilon": 0.02}
MAMBA2 = {**MAMBA, "num_heads": 8, "head_dim": 8, "n_groups": 2}
NEOX = {**DECODER, "num_key_value_heads": 4, "layer_norm_eps": 0.02}
NEOX.pop("rms_norm_eps")
NEOX.pop("num_key_value_heads")
GRIFFIN = {
    **DECODER,
    "num_hidden_layers": 3,
    "num_key_value_heads": 1,
    "attention_window_size": 4,
}
GRIFFIN.pop("max_position_embeddings")
JAMBA = {
    **DECODER,
    "num_hidden_layers": 4,
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "num_experts": 4,
    "mamba_d_state": 3,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONG = {"rope_type": "longrope", "short_factor": [1.1, 1.3], "long_factor": [2.0, 3.0]}


OLD_LONG = {"type": "longrope", "short_factor": [1.1, 1.3, 1.5, 2.0], "long_factor": [3.0] * 4}


def rope(**values: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 500.0, **values}}


CASES: dict[str, dict[str, dict[str, Any]]] = {
    "gpt2": {"": {**WIDTHS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}},
    "llama": {
        "": {**DECODER, "head_dim": 12},
        "linear": {**DECODER, **rope(rope_type="linear", factor=3.0)},
        "yarn": {**DECODER, **rope(**YARN, beta_fast=4.0)},
        "yarn-factors": {**DECODER, **rope(**YARN, mscale=1.5, mscale_all_dim=0.5)},
        "llama3": {**DECODER, **rope(**LLAMA3)},
        "dynamic": {**DECODER, **rope(rope_type="dynamic", factor=2.0)},
    },
    "mistral": {"": {**DECODER, "sliding_window": 3, "head_dim": 16}},
    "qwen2": {
        "": DECODER,
        "windows": {
            **DECODER,
            "use_sliding_window": True,
            "sliding_window": 3,
            "max_window_layers": 1,
        },
    },
    "qwen3": {
        "": {**DECODER, "head_dim": 16},
        "bias": {**DECODER, "head_dim": 8, "attention_bias": True, **rope(**YARN)},
    },
    "smollm3": {
        "": {**DECODER, "no_rope_layers": [1, 0]},
        "window": {
            **DECODER,
            "no_rope_layer_interval": 2,
            "use_sliding_window": True,
            "sliding_window": 3,
            "attention_bias": True,
        },
    },
    "olmo2": {"": DECODER, "bias": {**DECODER, "attention_bias": True, "hidden_act": "gelu"}},
    "phi3": {
        "": DECODER,
        "partial": {**DECODER, "sliding_window": 4, **rope(partial_rotary_factor=0.5)},
        "long": {
            **DECODER,
            "original_max_position_embeddings": 32,
            **rope(**LONG, partial_rotary_factor=0.5),
        },
    },
    "gemma2": {
        "": GEMMA,
        "limits": {**GEMMA, "attn_logit_softcapping": 0.5, "final_logit_softcapping": 2.0},
        "unlimited": {**GEMMA, "attn_logit_softcapping": None, "final_logit_softcapping": None},
    },
    "gemma3_text": {
        "": GEMMA,
        "scaled": {
            **GEMMA,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 900.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
            },
        },
    },
    "gpt_neox": {
        "": NEOX,
        "sequential": {
            **NEOX,
            "use_parallel_residual": False,
            "attention_bias": False,
            **rope(partial_rotary_factor=0.5),
        },
        "scaled": {**NEOX, **rope(rope_type="linear", factor=2.0, partial_rotary_factor=1.0)},
    },
    "mixtral": {
        "": {**DECODER, "num_local_experts": 4},
        "window": {
            **DECODER,
            "num_local_experts": 3,
            "num_experts_per_tok": 3,
            "sliding_window": 3,
        },
    },
    "mamba": {"": MAMBA, "conv": {**MAMBA, "use_conv_bias": False, "use_bias": True}},
    "falcon_mamba": {
        "": {**MAMBA, "mixer_rms_eps": 0.03},
        "rank": {**MAMBA, "time_step_rank": 3, "use_conv_bias": False},
    },
    "mamba2": {
        "": MAMBA2,
        "bias": {**MAMBA2, "use_bias": True, "use_conv_bias": False, "conv_kernel": 3},
    },
    "recurrent_gemma": {
        "": GRIFFIN,
        "wide": {
            **GRIFFIN,
            "num_key_value_heads": 4,
            "block_types": ["attention", "recurrent"],
            "conv1d_width": 3,
            "attention_bias": True,
            "logits_soft_cap": 3.0,
            **rope(partial_rotary_factor=1.0),
        },
    },
    "jamba": {
        "": JAMBA,
        "dense": {**JAMBA, "num_experts": 1, "mamba_dt_rank": 3, "mamba_conv_bias": False},
    },
}
"""model_type -> variants of its config."""
VARIANTS = [(family, variant) for family, variants in CASES.items() for variant in variants]


def theirs(family: str, variant: str = "", **changes: Any) -> Any:
    """Return a small model of transformers in which every value affects the output."""
    config = transformers.CONFIG_MAPPING[family](**{**CASES[family][variant], **changes})
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    torch.manual_seed(0)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            around = 1.0 if "norm" in key or "ln_" in key else 0.0
            weight.copy_(around + 0.3 * torch.randn_like(weight))
    return model.eval()


@functools.cache
def reference(family: str, variant: str) -> tuple[Any, Any, list[list[int]]]:
    """Return the model of transformers, its logits and its tokens."""
    model = theirs(family, variant)
    return model, logits(model), greedy(model)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Return the folder of a saved model of transformers."""

    @functools.cache
    def save(family: str, variant: str) -> Path:
        folder = tmp_path_factory.mktemp("in") / "model"
        reference(family, variant)[0].save_pretrained(folder)
        return folder

    return save


def logits(model: Any, tokens: list[list[int]] = TOKENS) -> Any:
    with torch.no_grad():
        return model(torch.tensor(tokens)).logits.numpy()


def greedy(model: Any) -> list[list[int]]:
    tokens = torch.tensor(TOKENS)
    mask = torch.ones_like(tokens)
    made = model.generate(tokens, attention_mask=mask, max_new_tokens=8, do_sample=False)
    return made.tolist()


def after_prefill(model: Any) -> list[list[int]]:
    """Continue the tokens after one pass over all of them."""
    tokens = tensor.array(TOKENS)
    scores, state = model.prefill(tokens)
    for _ in range(8):
        token = ops.argmax(scores, axis=-1)
        tokens = ops.concat([tokens, token[:, None]], axis=1)
        scores, state = model.step(token, state)
    made: list[list[int]] = tokens.tolist()
    return made


def loaded(folder: Path) -> Any:
    """Load the checkpoint with transformers, and check that all tensors fit."""
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager"
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys"))
    return model.eval()


def rewrite(folder: Path, **values: Any) -> None:
    """Change values of a config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_every_family_has_a_case() -> None:
    assert set(CASES) == set(FAMILIES)


@pytest.mark.parametrize("page", ["docs/models.md", "docs/cli.md"])
def test_the_guides_name_every_family(page: str) -> None:
    text = (Path(__file__).parents[3] / page).read_text()
    assert [family.title for family in FAMILIES.values() if family.title not in text] == []


@pytest.mark.parametrize(("family", "variant"), VARIANTS)
def test_logits_and_tokens(
    family: str, variant: str, backend: str, saved: Callable[[str, str], Path]
) -> None:
    _, expected, tokens = reference(family, variant)
    assert abs(expected).max() > 0.5
    model = convert(saved(family, variant)).eval()
    assert abs(model(tensor.array(TOKENS)).numpy() - expected).max() < 1e-4
    assert model.generate(TOKENS, max_new_tokens=8).tolist() == tokens


@pytest.mark.parametrize(("family", "variant"), VARIANTS)
def test_weights_there_and_back(
    family: str, variant: str, tmp_path: Path, saved: Callable[[str, str], Path]
) -> None:
    expected = reference(family, variant)[1]
    model = convert(saved(family, variant))
    export(model, tmp_path / "out", family)
    before, after = (
        safetensors.torch.load_file(folder / "model.safetensors")
        for folder in (saved(family, variant), tmp_path / "out")
    )
    assert before.keys() == after.keys()
    for name, value in before.items():
        torch.testing.assert_close(after[name], value, rtol=0, atol=3e-7)
    again = loaded(tmp_path / "out")
    assert again.config.model_type == family
    assert abs(logits(again) - expected).max() < 1e-5
    export(model, tmp_path / "default")  # another family may describe the same model
    assert abs(logits(loaded(tmp_path / "default")) - expected).max() < 1e-5


@pytest.mark.parametrize(("family", "variant"), VARIANTS)
def test_load_takes_both_kinds_of_folders(
    family: str, variant: str, tmp_path: Path, saved: Callable[[str, str], Path]
) -> None:
    expected = reference(family, variant)[1]
    convert(saved(family, variant), tmp_path / "ember")
    for folder in (saved(family, variant), tmp_path / "ember"):
        model = ember_ml.load(folder).eval()
        assert abs(model(tensor.array(TOKENS)).numpy() - expected).max() < 1e-4


@pytest.mark.parametrize(
    ("family", "variant", "changes"),
    [
        ("llama", "dynamic", {"max_position_embeddings": 4}),
        ("phi3", "long", {"original_max_position_embeddings": 4}),
    ],
)
def test_sequences_longer_than_the_original(
    family: str, variant: str, changes: dict[str, Any], backend: str, tmp_path: Path
) -> None:
    there = theirs(family, variant, **changes)
    there.save_pretrained(tmp_path / "in")
    model = convert(tmp_path / "in").eval()
    for length in (3, 4, 5, 7):
        tokens = [row[:length] for row in TOKENS]
        expected = logits(there, tokens)
        assert abs(model(tensor.array(tokens)).numpy() - expected).max() < 1e-4
    assert after_prefill(model) == greedy(there)
    share = there.config.rope_parameters.get("partial_rotary_factor", 1.0)
    part = {"partial_rotary_factor": share}
    plain = theirs(family, variant, **{**changes, **rope(rope_type="default", **part)})
    plain.load_state_dict(there.state_dict())
    assert abs(logits(plain) - logits(there)).max() > 1e-3


def test_load_into_a_model_and_by_its_class(tmp_path: Path) -> None:
    there = theirs("qwen3")
    there.save_pretrained(tmp_path / "in")
    model = models.LanguageModel.from_pretrained(tmp_path / "in").eval()
    twin = model.config.create().eval()
    assert abs(twin(tensor.array(TOKENS)).numpy() - logits(there)).max() > 0.1
    assert ember_ml.load(tmp_path / "in", into=twin) is twin
    assert abs(twin(tensor.array(TOKENS)).numpy() - logits(there)).max() < 1e-4
    with pytest.raises(ValueError, match="holds a LanguageModel, not a MambaModel"):
        models.MambaModel.load(tmp_path / "in")


def test_load_names_an_unknown_family(tmp_path: Path) -> None:
    theirs("llama").save_pretrained(tmp_path / "in")
    rewrite(tmp_path / "in", model_type="bert")
    with pytest.raises(ConversionError, match="model_type='bert' is not supported, only gpt2"):
        ember_ml.load(tmp_path / "in")


def test_fields_that_do_not_matter_can_be_ignored(tmp_path: Path) -> None:
    theirs("llama").save_pretrained(tmp_path / "in")
    rewrite(tmp_path / "in", my_note="hello", unused=None)
    with pytest.raises(ConversionError, match=r"my_note='hello' is not a known field.*ignore="):
        convert(tmp_path / "in")
    assert convert(tmp_path / "in", ignore=["my_note"]).vocab_size == 64


def test_a_family_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    theirs("qwen3").save_pretrained(tmp_path / "in")
    model = convert(tmp_path / "in")
    with pytest.raises(ConversionError, match="written as 'llama'") as caught:
        export(model, tmp_path / "out", "llama")
    assert caught.value.problems == ["layers 0, 2: qk_norm is ('head', 0.01), not ('none', None)"]
    with pytest.raises(ValueError, match="family='gpt5' must be one of gpt2, llama"):
        export(model, tmp_path / "out", "gpt5")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("family", "variant", "values"),
    [
        ("gpt2", "", {"n_ctx": 32, "task_specific_params": {"x": {"max_length": 5}}}),
        ("llama", "", {"rope_parameters": None, "rope_theta": 700.0, "rope_scaling": LLAMA3}),
        ("llama", "", {"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 3.0}}),
        ("mistral", "", {"sliding_window": None, "rope_parameters": None, "rope_theta": 30.0}),
        ("qwen2", "", {"sliding_window": 4, "max_window_layers": 1, "layer_types": None}),
        ("qwen2", "windows", {"layer_types": None}),
        ("smollm3", "", {"pretraining_tp": 2, "max_window_layers": 28, "no_rope_layers": None}),
        ("phi3", "", {"full_attn_mod": 1, "interpolate_factor": 1, "attention_bias": False}),
        ("phi3", "long", {"rope_parameters": None, "rope_scaling": OLD_LONG}),
        ("gemma2", "", {"layer_types": None, "hidden_act": "gelu_pytorch_tanh"}),
        ("gemma3_text", "", {"rope_parameters": None, "rope_theta": 9e4, "sliding_window": 4}),
        (
            "gemma3_text",
            "",
            {
                "rope_parameters": None,
                "rope_scaling": {"rope_type": "linear", "factor": 4.0},
                "rope_local_base_freq": 50.0,
                "sliding_window_pattern": 2,
                "layer_types": None,
            },
        ),
        ("gpt_neox", "", {"rope_parameters": None, "rotary_pct": 0.5, "rotary_emb_base": 70}),
        (
            "mamba",
            "",
            {"d_model": 32, "d_inner": 64, "n_layer": 2, "rms_norm": True, "ssm_cfg": {}},
        ),
        ("falcon_mamba", "", {"expand": 16, "intermediate_size": 64, "time_step_rank": 2}),
        ("recurrent_gemma", "", {"_block_types": ["recurrent", "recurrent", "attention"]}),
        ("mamba2", "", {"norm_before_gate": True, "time_step_rank": 7}),
        ("jamba", "", {"mamba_inner_layernorms": True, "num_logits_to_keep": 1, "n_ctx": 64}),
        ("recurrent_gemma", "", {"rope_parameters": None, "rope_theta": 40.0}),
    ],
)
def test_fields_of_published_checkpoints(
    family: str, variant: str, values: dict[str, Any], tmp_path: Path
) -> None:
    """Fields as older versions of transformers wrote them mean the same as there."""
    theirs(family, variant).save_pretrained(tmp_path / "in")
    rewrite(tmp_path / "in", **values)
    path = tmp_path / "in" / "config.json"
    given = json.loads(path.read_text())
    kept = {name: x for name, x in given.items() if x is not None or name.endswith("_token_id")}
    path.write_text(json.dumps(kept))
    expected = logits(loaded(tmp_path / "in"))
    model = convert(tmp_path / "in").eval()
    assert abs(model(tensor.array(TOKENS)).numpy() - expected).max() < 1e-4


@pytest.mark.parametrize(
    "family",
    ["gemma2", "gemma3_text", "gpt_neox", "jamba", "mamba2", "mixtral", "olmo2", "recurrent_gemma"],
)
def test_gradients(family: str, backend: str, tmp_path: Path) -> None:
    there = theirs(family)
    there.save_pretrained(tmp_path / "in")
    there(torch.tensor(TOKENS), use_cache=False).logits.square().mean().backward()
    expected = there.get_input_embeddings().weight.grad.numpy()
    model = convert(tmp_path / "in").eval()
    tokens = tensor.array(TOKENS)
    _, grads = nn.value_and_grad(model, lambda: ops.mean(ops.square(model(tokens))))()
    found = grads["embedding.weight"].numpy()
    assert abs(expected).max() > 1e-3
    assert abs(found - expected).max() < 1e-4 * max(1.0, abs(expected).max())
