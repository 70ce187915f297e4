"""Batches without examples or weights, masked arrays, bfloat16 arrays, losses without gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from ember_ml import ops
from ember_ml.data import ArrayDataset
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback
from ember_ml.training.trainer.nonfinite import NonFiniteError
from tests.backends import has_dtype
from tests.robustness.regression import X, Y, trainer

PARTS = [(X[:8], Y[:8]), (X[:0], Y[:0]), (X[8:20], Y[8:20])]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_empty_batch_is_named(backend: str) -> None:
    match = r"the batch has no examples: inputs of shape \(0, 3\), targets of shape \(0, 1\)"
    with pytest.raises(NonFiniteError, match=match):
        trainer().fit(PARTS, epochs=1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_empty_batch_does_not_count_in_an_evaluation(backend: str) -> None:
    ours = trainer(metrics=["mae"])
    whole = ours.evaluate((X[:20], Y[:20]))
    assert ours.evaluate(PARTS) == pytest.approx(whole, rel=1e-5)


def test_the_loss_of_nothing_is_not_zero(backend: str) -> None:
    nothing = np.zeros((40, 1), "float32")
    assert math.isnan(trainer().evaluate((X, Y, nothing))["loss"])


def test_negative_weights_are_not_taken_for_a_sum(backend: str) -> None:
    ours = trainer(accumulate=2)
    with pytest.raises(ValueError, match=r"sum to -10\.0; weights must not be negative"):
        ours.fit((X, Y, -np.ones((40, 1), "float32")), batch_size=10)
    assert ours.step == 0


def test_masked_elements_are_not_used_silently(backend: str) -> None:
    masked = np.ma.masked_array(X, X > 0)
    with pytest.raises(TypeError, match="array 0: a tensor has no masked elements"):
        trainer().fit((masked, Y))
    with pytest.raises(TypeError, match="a tensor has no masked elements"):
        ops.asarray(masked)
    assert ops.asarray(np.ma.masked_array(X)).shape == X.shape


def test_arrays_in_bfloat16_are_data(backend: str) -> None:
    if not has_dtype(backend, "bfloat16"):
        pytest.skip("the backend has no bfloat16")
    half = ops.astype(ops.asarray(X), "bfloat16")
    exact = ops.astype(half, "float32").numpy()
    for data in (half, half.native):
        ours, other = trainer(), trainer()
        ours.fit((data, Y), epochs=1)
        other.fit((exact, Y), epochs=1)
        assert ours.history.losses == other.history.losses


@pytest.mark.parametrize("loss", [1.0, None, np.float32(1.0), 3], ids=repr)
def test_a_number_is_no_loss(loss: Any, backend: str) -> None:
    ours = trainer()
    ours.loss = lambda prediction, target: loss
    with pytest.raises(TypeError, match="the loss must be a scalar tensor, not"):
        ours.fit((X, Y), epochs=1)
    assert ours.step == 0


def through_numpy(prediction: Any, target: Any) -> Any:
    return ops.mean(ops.stop_gradient(prediction) - target)


def test_a_loss_without_gradients_is_reported(backend: str) -> None:
    ours = trainer(compile=False)
    ours.loss = through_numpy
    with pytest.warns(UserWarning, match="all gradients of epoch 0 are zero"):
        ours.fit((X, Y), epochs=1)


@pytest.mark.parametrize("wrong", ["text", ..., None], ids=repr)
def test_an_array_that_is_none_is_named(wrong: Any) -> None:
    with pytest.raises(TypeError, match="ArrayDataset: array 1: a tensor takes numbers"):
        ArrayDataset(X, wrong)


def test_inputs_without_arrays_are_named() -> None:
    with pytest.raises(ValueError, match="a dict of arrays must not be empty"):
        trainer().fit({}, Y, epochs=1)
    with pytest.raises(TypeError, match="Dense: expected a tensor, got dict"):
        trainer().fit({"a": X}, Y, epochs=1)


def test_torch_tensors_without_dense_values_are_named() -> None:
    with pytest.raises(TypeError, match=r"sparse torch tensor .* use x\.to_dense"):
        trainer().fit(torch.eye(40, 3).to_sparse(), Y, epochs=1)
    with pytest.raises(TypeError, match="meta device has no values"):
        trainer().fit(torch.empty(40, 3, device="meta"), Y, epochs=1)


def test_a_callback_may_clear_a_record(backend: str) -> None:
    class Clear(Callback):
        def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
            record.clear()

    history = trainer(Clear()).fit(X, Y, epochs=2)
    assert [sorted(each) for each in history.epochs] == [["epoch", "seconds", "step"]] * 2
