"""Cross-entropy in chunks: the values of all logits, without holding them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.autodiff import value_and_grad
from ember_ml.memory import DeferredLogits, chunked_cross_entropy
from ember_ml.memory.growth import merged
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.quantization import quantize
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer, losses
from tests.backends import is_lazy

RNG = np.random.default_rng(0)
HIDDEN = RNG.standard_normal((3, 7, 6)).astype(np.float32)
WEIGHT = RNG.standard_normal((11, 6)).astype(np.float32)
BIAS = RNG.standard_normal(11).astype(np.float32)
TARGETS = np.where(RNG.random((3, 7)) < 0.3, -100, RNG.integers(0, 11, (3, 7)))
SAMPLE_WEIGHT = RNG.random((3, 7)).astype(np.float32)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"label_smoothing": 0.1, "class_weight": list(np.arange(11.0))},
    {"reduction": "sum"},
    {"sample_weight": SAMPLE_WEIGHT, "label_smoothing": 0.2},
    {"ignore_index": 3, "sample_weight": SAMPLE_WEIGHT > 0.5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("chunk_size", [1, 4, None])
def test_equals_cross_entropy(
    options: dict[str, Any], chunk_size: int | None, backend: str
) -> None:
    targets = array(np.where(TARGETS < 0, options.get("ignore_index", -100), TARGETS))

    def chunked(*args: Any) -> Any:
        prediction = DeferredLogits(*args, softcap=3.0)
        return chunked_cross_entropy(prediction, targets, chunk_size=chunk_size, **options)

    def whole(hidden: Any, weight: Any, bias: Any) -> Any:
        logits = hidden @ weight.T + bias
        return losses.cross_entropy(3.0 * ops.tanh(logits / 3.0), targets, **options)

    args = [array(x) for x in (HIDDEN, WEIGHT, BIAS)]
    value, grads = value_and_grad(chunked, argnums=(0, 1, 2))(*args)
    want, want_grads = value_and_grad(whole, argnums=(0, 1, 2))(*args)
    np.testing.assert_allclose(float(value), float(want), rtol=1e-5)
    for grad, other in zip(grads, want_grads, strict=True):
        np.testing.assert_allclose(grad.numpy(), other.numpy(), rtol=1e-4, atol=1e-6)


MODELS: list[dict[str, Any]] = [
    {"head_bias": True},
    {"tie_weights": True, "head_bias": True, "logit_softcap": 5.0},
]


@pytest.mark.parametrize("options", MODELS, ids=["head", "tied"])
def test_training_and_evaluation(options: dict[str, Any], backend: str) -> None:
    tokens = array(RNG.integers(0, 11, (16, 6)))
    results = []
    for loss in ("cross_entropy", {"type": "chunked_cross_entropy", "chunk_size": 5}):
        ops.random.set_seed(0)
        model = LanguageModel("swiglu", 11, 16, **options)
        trainer = Trainer(model, loss, seed=0, progress=False, metrics=["accuracy"], accumulate=2)
        trainer.fit((tokens, tokens), steps=2, batch_size=4)
        scores = trainer.evaluate((tokens, tokens))
        results.append([*trainer.history.losses, scores["loss"], scores["accuracy"]])
        assert trainer.predict(tokens[:2]).shape == (2, 6, 11)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


def test_metrics_of_training_batches() -> None:
    tokens = array(RNG.integers(0, 11, (8, 6)))
    trainer = Trainer(
        LanguageModel("swiglu", 11, 16),
        "chunked_cross_entropy",
        metrics=["accuracy"],
        train_metrics=True,
        progress=False,
    )
    history = trainer.fit((tokens, tokens), steps=1, batch_size=8)
    assert 0.0 <= history.steps[-1]["accuracy"] <= 1.0


def peak(loss: Any, hidden: Any, weight: Any, targets: Any) -> int:
    step = value_and_grad(lambda h, w: loss(DeferredLogits(h, w), targets), argnums=(0, 1))
    evaluate = runtime.load(hidden.backend).autodiff.evaluate
    peaks = []
    for _ in range(3):
        with runtime.load(hidden.backend).memory.record() as recorder:
            value, grads = step(hidden, weight)
            evaluate([x.native for x in (value, *grads)])
        peaks.append(merged(recorder.changes)[0].peak)
        del value, grads
    return min(peaks)


def test_never_holds_all_logits(backend: str) -> None:
    hidden, weight = ops.ones((2048, 8)), ops.ones((2048, 8))
    targets = ops.zeros((2048,), dtype="int64")
    logits = 4 * 2048 * 2048
    whole = peak(lambda p, y: losses.cross_entropy(p.logits(), y), hidden, weight, targets)
    chunked = peak(lambda p, y: chunked_cross_entropy(p, y, chunk_size=32), hidden, weight, targets)
    assert whole > 2 * logits
    assert chunked < (logits if is_lazy(backend) else logits / 4)  # MLX computes ahead


def test_logits_are_accepted() -> None:
    x, y = array(HIDDEN), array(np.maximum(TARGETS, 0) % 6)
    loss = losses.ChunkedCrossEntropy(label_smoothing=0.1)
    assert float(loss(x, y)) == float(losses.CrossEntropy(label_smoothing=0.1)(x, y))


def test_errors() -> None:
    prediction = DeferredLogits(array(HIDDEN), array(WEIGHT))
    with pytest.raises(ShapeError, match=r"\(3, 7\)"):
        chunked_cross_entropy(prediction, array(TARGETS[:, :5]))
    model = LanguageModel("swiglu", 64, 64)
    small, _ = quantize(model, skip=())
    tokens = ops.zeros((2, 4), dtype="int64")
    with pytest.raises(ArgumentError, match="use loss='cross_entropy'"):
        Trainer(small, "chunked_cross_entropy", progress=False).evaluate((tokens, tokens))


def test_torch_modules_return_deferred_logits() -> None:
    torch = pytest.importorskip("torch")
    from ember_ml.backend import use_backend
    from ember_ml.interop import to_torch
    from ember_ml.nn.models.deferred_logits import deferring_logits

    with use_backend("torch"):
        model = to_torch(LanguageModel("swiglu", 11, 16, head_bias=True))
        tokens = torch.randint(0, 11, (2, 5))
        model(tokens).square().sum().backward()
        want = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        with deferring_logits():
            deferred = model(tokens)
        assert isinstance(deferred.hidden, torch.Tensor)
        (deferred.hidden @ deferred.weight.T + deferred.bias).square().sum().backward()
        for parameter, grad in zip(model.parameters(), want, strict=True):
            torch.testing.assert_close(parameter.grad, grad)
