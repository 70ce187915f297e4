"""Strategies: several processes train as one, and each has the parts it should have."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed import tasks

LAYERS = ["attention", "mamba", "hyena", "gla", "rwkv", "lstm", "moe"]


def assert_equal_training(results: list[dict], expected: dict, tolerance: float = 1e-5) -> None:
    """Compare losses, norms, evaluations and whole parameters with those of one process."""
    for result in results:
        np.testing.assert_allclose(result["losses"], expected["losses"], rtol=tolerance)
        np.testing.assert_allclose(result["norms"], expected["norms"], rtol=1e-4)
        assert result["evaluation"].keys() == expected["evaluation"].keys()
        for name, value in expected["evaluation"].items():
            np.testing.assert_allclose(result["evaluation"][name], value, rtol=1e-4)
        assert result["parameters"].keys() == expected["parameters"].keys()
        for name, value in expected["parameters"].items():
            np.testing.assert_allclose(
                result["parameters"][name], value, atol=tolerance, rtol=0, err_msg=name
            )


@pytest.mark.parametrize("pattern", LAYERS)
@pytest.mark.parametrize("strategy", ["dp", "fsdp"])
def test_two_processes_train_as_one(pools, strategy: str, pattern: str) -> None:
    expected = tasks.alone("train", pattern=pattern)
    results = pools(2).run("tests.distributed.tasks:train", pattern=pattern, strategy=strategy)
    assert_equal_training(results, expected)
    for rank, result in enumerate(results):
        for name, shape in expected["shapes"].items():
            rows = -(-shape[0] // 2)
            part = rows if rank == 0 else shape[0] - rows
            wanted = [part, *shape[1:]] if strategy == "fsdp" else shape
            assert result["shapes"][name] == wanted, name
