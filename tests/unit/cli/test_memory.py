"""`ember memory`: the table, and what would fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.commands import ember, ember_json

RUN = """
model: {type: language_model, layers: attention swiglu, hidden_size: 16}
data: {type: in_context_recall, vocab_size: 8, seq_len: 16, num_train: 16}
batch_size: 16
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(RUN)
    return path


def test_table_and_options(run: Path) -> None:
    result = ember("memory", run, "--limit", "400KB", "--measure").stdout
    for part in ("optimizer state", "backbone.blocks.1", "peak", "estimate / measured 1.0"):
        assert part in result
    assert "batch size 16 does not fit into 400 KB; the largest batch size that fits is" in result
    for option in ("remat", "chunked loss", "8-bit optimizer state", "accumulate"):
        assert option in result
    assert "trainer.loss=chunked_cross_entropy" in result


def test_json(run: Path) -> None:
    found = ember_json("memory", run, "--limit", "1GB", "trainer.remat=blocks", "batch_size=4")
    assert found["fits"]
    assert found["batch_size"] == 4
    assert found["largest_batch"] > 4
    assert found["peak"] > found["parameters"] + found["optimizer_state"]
    options = {option["name"]: option for option in found["options"]}
    assert "remat" not in options
    assert options["chunked loss"]["changes"]["loss"]["type"] == "losses/chunked_cross_entropy"
    assert options["accumulate"]["batch_size"] == 2
    packed = options["8-bit optimizer state"]["changes"]["optimizer"]
    assert packed["state_bits"] == 8


def test_errors(run: Path) -> None:
    assert "such as 8GB" in ember("memory", run, "--limit", "many", code=2).stderr
    assert "there are embedding" in ember("memory", run, "trainer.remat=foo", code=2).stderr
    assert "nothing.yaml" in ember("memory", run.parent / "nothing.yaml", code=2).stderr
