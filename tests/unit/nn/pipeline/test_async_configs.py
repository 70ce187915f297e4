"""Asynchronous pipelines from configs and YAML."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import configs, nn
from ember_ml.nn.pipeline import AsyncPipeline, AsyncStage, Batch, Pipeline

YAML = """
type: pipelines/async
buffer: 8
ordered: true
stages:
  first: {type: layers/dense, in_features: 3, out_features: 4}
  second:
    type: pipelines/async_stage
    stage: {type: layers/dense, in_features: 4, out_features: 2}
    batch_size: 4
    max_wait: 0.001
    on_error: skip
    max_failures: 3
"""


def test_a_pipeline_is_written_in_yaml(backend: str) -> None:
    config = configs.Config.from_yaml(YAML)
    pipe = config.create()
    assert isinstance(pipe, AsyncPipeline)
    assert list(pipe.stages) == ["first", "second"]
    items = list(np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32))
    expected = [pipe.stages["second"](pipe.stages["first"](x)).numpy() for x in items]
    for result, wanted in zip(pipe.run(items), expected, strict=True):
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert pipe.stats().stages[1].batch_sizes.keys() <= {1, 2, 3, 4}


def test_a_config_survives_a_round_trip(on_numpy: None) -> None:
    pipe = configs.Config.from_yaml(YAML).create()
    pipe.add_stage({"type": "layers/dense", "in_features": 2, "out_features": 2})
    again = configs.Config.from_yaml(pipe.config.to_yaml())
    assert again == pipe.config
    assert again.stages["second"].max_failures == 3
    copy = again.create()
    assert copy.config == pipe.config
    assert (copy.buffer, copy.overload) == (8, "wait")


def test_functions_keep_their_options_but_cannot_be_written(on_numpy: None) -> None:
    pipe = AsyncPipeline(buffer=4).add_stage(abs, concurrency=3, timeout=2.0)
    pipe.add_stage(nn.layers.Dense(1, 1), name="model", batch=Batch(2, key=len))
    copy = pipe.config.create()
    assert copy._stages == pipe._stages
    with pytest.raises(ValueError, match="stages"):
        pipe.config.to_yaml()


def test_a_pipeline_is_a_stage_of_an_asynchronous_one(on_numpy: None) -> None:
    inner = Pipeline("scale").add_stage(lambda x: x * 2.0).add_stage(nn.layers.Dense(3, 2))
    items = list(np.ones((5, 3), np.float32))
    expected = inner.run(np.ones((5, 3), np.float32)).tolist()
    pipe = AsyncPipeline([AsyncStage(inner, batch_size=4)], buffer=8)
    np.testing.assert_allclose([each.tolist() for each in pipe.run(items)], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"buffer": 0}, "buffer"),
        ({"stages": {"a": {"type": "layers/nothing"}}}, "no layers named 'nothing'"),
        ({"stages": [{"type": "pipelines/async_stage", "stage": "layers/dense"}]}, "in_features"),
        ({"stage": []}, "stage"),
    ],
)
def test_bad_configs_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configs.Config.from_dict({"type": "pipelines/async", **values})
