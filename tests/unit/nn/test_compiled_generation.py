"""Generation with compiled steps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError
from ember_ml.backend import use_backend
from ember_ml.nn import models
from ember_ml.nn.models.decoding import compiled
from ember_ml.nn.tensor import array
from tests.backends import TRACING, compiles
from tests.robustness.scale import spread

PROMPTS = [[1, 2, 3, 4], [5], [6, 7], [8, 9, 10, 11]]
LAYERS = [
    "attention swiglu",
    "attention[window=2,positions=alibi]",
    "mamba gru",
    "rwkv6-time-mixer lru",
]


@pytest.fixture(autouse=True)
def quick_compiler(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Let torch trace without generating code, which takes a minute."""
    if "backend" in request.fixturenames:
        options = TRACING.get(request.getfixturevalue("backend"), {})
        monkeypatch.setattr(compiled, "OPTIONS", {"trusted": True, **options})
    yield
    if "torch._dynamo" in sys.modules:
        sys.modules["torch"].compiler.reset()


def language_model(layers: str, **options: Any) -> Any:
    ops.random.set_seed(0)
    return models.LanguageModel(layers, 32, 16, **options).eval()


@pytest.mark.parametrize("layers", LAYERS)
def test_tokens_are_those_of_plain_steps(layers: str, backend: str) -> None:
    if not compiles(backend):
        pytest.skip("the backend does not compile")
    model = language_model(layers)
    for options in ({}, {"temperature": 1.2, "seed": 3}):
        plain = model.generate(PROMPTS, 6, **options)
        made = model.generate(PROMPTS, 6, compile=True, **options)
        assert made.tokens == plain.tokens
    longer = [prompt * 5 for prompt in PROMPTS]
    assert model.generate(longer, 6, compile=True).tokens == model.generate(longer, 6).tokens
    step = compiled.compiled_step(model)
    assert step.num_compiled == 1  # other lengths and options are not compiled again


def test_new_weights_are_used_without_compiling_again(backend: str) -> None:
    if not compiles(backend):
        pytest.skip("the backend does not compile")
    model = language_model("attention swiglu")
    before = model.generate([1, 2], 8, compile=True).tolist()
    for at, parameter in enumerate(model.parameters()):
        parameter.assign(parameter + ops.random.normal(parameter.shape, seed=at))
    after = model.generate([1, 2], 8, compile=True).tolist()
    assert after == model.generate([1, 2], 8).tolist()
    assert after != before
    assert compiled.compiled_step(model).num_compiled == 1


@pytest.mark.parametrize("layers", spread(LAYERS[:2], 2, start=1))
def test_the_cache_grows_with_the_sequence(
    layers: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiles(backend):
        pytest.skip("the backend does not compile")
    monkeypatch.setattr(compiled, "MIN_CAPACITY", 4)
    monkeypatch.setattr(compiled, "MAX_ROOM", 3)
    model = language_model(layers)
    for prompts in ([[1, 2, 3]], PROMPTS):
        plain = model.complete(prompts, 7, compile=False)
        assert model.complete(prompts, 7, compile=True) == plain


def test_the_cache_does_not_reserve_what_may_not_be_needed(backend: str) -> None:
    model = language_model("attention swiglu")
    decoder = compiled.CompiledDecoder(model)
    _, state = decoder.prefill(array([[1, 2, 3]]), [3])
    sizes = [x.size for x in tree.leaves_of(decoder.ready(state, 3, 10**15)) if x.ndim == 4]
    assert sizes
    assert max(sizes) <= 2 * 16 * (compiled.MAX_ROOM + 3)


def test_what_cannot_be_compiled_says_why(backend: str) -> None:
    model = language_model("hyena", max_length=16)
    plain = language_model("gru").train()
    scaled = {
        "type": "attention",
        "rope_scaling": {"type": "dynamic", "factor": 2.0, "original_length": 8},
    }
    if not compiles(backend):
        with pytest.raises(ArgumentError, match="compile=True"):
            plain.eval().generate([1], 2, compile=True)
        return
    with pytest.raises(ArgumentError, match="compile=True: ConvState has no form of constant"):
        model.generate([1], 2, compile=True)
    with pytest.raises(ArgumentError, match="training mode; call eval"):
        plain.generate([1], 2, compile=True)
    with pytest.raises(ArgumentError, match="depends on the length"):
        language_model([scaled]).generate([1], 2, compile=True)


def test_models_are_freed() -> None:
    import gc
    import weakref

    with use_backend("numpy"):
        model = language_model("gru")
        compiled.compiled_step(model)
        gone = weakref.ref(model)
        del model
        gc.collect()
        assert gone() is None
