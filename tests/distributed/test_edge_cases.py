"""Unusual models and misuse: the result of one process, or an error that says what to do."""

from __future__ import annotations

import numpy as np
import pytest

import ember_ml
from ember_ml._core import tree
from tests.distributed import edge_cases

CASES = "tests.distributed.edge_cases:"


def assert_like_one_process(pools, function: str, strategy: str, **options) -> None:
    with ember_ml.use_backend("torch"):
        expected = getattr(edge_cases, function)(None, **options)
    for result in pools(2).run(CASES + function, strategy=strategy, **options):
        pairs = zip(tree.leaves_of(result), tree.leaves_of(expected), strict=True)
        for actual, value in pairs:
            np.testing.assert_allclose(actual, value, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("strategy", ["dp", "fsdp"])
@pytest.mark.filterwarnings("ignore:skipped")
def test_a_skipped_batch_leaves_buffers_finite(pools, strategy: str) -> None:
    assert_like_one_process(pools, "train", strategy, bad_row=9, on_nonfinite="skip")


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_checkpoints_of_parameters_with_fewer_rows_than_processes(
    pools, tmp_path, optimizer: str
) -> None:
    with ember_ml.use_backend("torch"):
        expected = edge_cases.train(None, optimizer=optimizer)
    options = {"optimizer": optimizer, "folder": str(tmp_path / "run")}
    for result in pools(2).run(f"{CASES}train", strategy="fsdp", **options):
        for name, value in expected["parameters"].items():
            np.testing.assert_allclose(result["parameters"][name], value, rtol=1e-8, atol=1e-10)


def test_penalties_on_parameters_have_gradients(pools) -> None:
    assert_like_one_process(pools, "train", "dp", trainer="penalized")


def test_two_trainers_of_one_model(pools) -> None:
    assert_like_one_process(pools, "two_trainers", "dp")


def test_trainers_of_one_mesh_share_its_groups(pools) -> None:
    """The threads of a group run until the process ends, also without a trainer."""
    assert pools(2).run(f"{CASES}shared_groups") == [[True, False]] * 2


def test_mixed_precision_of_floating_point_inputs(pools) -> None:
    with ember_ml.use_backend("torch"):
        expected = edge_cases.train(None, precision="bfloat16")
    for result in pools(2).run(f"{CASES}train", strategy="dp", precision="bfloat16"):
        np.testing.assert_allclose(result["losses"], expected["losses"], rtol=0.02)
        assert result["evaluation"]["loss"] == pytest.approx(
            expected["evaluation"]["loss"], rel=0.02
        )


WRONG = [
    ({"strategy": "dp", "model": {"has_unused": True}},
     "does not depend on unused.weight, unused.bias; freeze unused parameters, or set"),
    ({"strategy": "fsdp", "model": {"scale_shape": []}}, "the parameter scale is a scalar"),
    ({"strategy": "dp", "trainer": "inner"}, "compute must call the model itself"),
    ({"strategy": "fsdp", "trainer": "inner"}, "Dense: this process has only parts"),
    ({"strategy": "fsdp", "trainer": "penalized"}, "uses hidden.weight outside of a call"),
    ({"strategy": "fsdp", "action": "copy"}, "Network: this process has only parts"),
    ({"strategy": "fsdp", "action": "second trainer"}, "another trainer has divided this model"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), WRONG, ids=lambda x: str(x)[:60])
def test_misuse_is_explained(pools, options: dict, message: str) -> None:
    for text in pools(2).run(f"{CASES}failure", **options):
        assert message in text


@pytest.mark.parametrize("strategy", ["fsdp", "pp"])
def test_generation_with_parts_of_a_model_is_refused(pools, strategy: str) -> None:
    for text in pools(2).run(f"{CASES}generate", strategy=strategy):
        assert "load it with ember_ml.load" in text


def test_a_batch_that_is_not_finite_in_one_process(pools) -> None:
    first, second = pools(2).run(f"{CASES}non_finite", strategy="dp")
    assert "not finite in this batch: inputs (dataset index 1)" in first
    assert "see the message of another process" in second


def test_fit_continues_after_an_interrupted_fit(pools, tmp_path) -> None:
    options = {"strategy": "dp", "folder": str(tmp_path / "run")}
    for first, second in pools(2).run(f"{CASES}interrupted_fit", **options):
        assert first < 6
        assert second == 6
