"""Pipelines: stages, names, slices, fits, streams and errors."""

from __future__ import annotations

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.configs import Config, ConfigError
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import Identity, layers
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.features import FeatureExtractor, NotFittedError, Standardize
from ember_ml.nn.pipeline import Pipeline
from tests.unit.nn.pipeline.stages import Center, WholeOnly

X = np.random.default_rng(0).normal(3.0, 2.0, (24, 4)).astype("float32")


def double(x):
    return x * 2.0


def test_the_snippet_of_the_seed(backend):
    class Preprocessor(nn.Module):
        def forward(self, x):
            return ops.abs(x)

    class Normalizer:
        def __call__(self, x):
            return x / ops.max(x)

    raw_data = X
    pipeline = Pipeline("feature_extraction")
    pipeline.add_stage(Preprocessor())
    pipeline.add_stage(FeatureExtractor())
    pipeline.add_stage(Normalizer())

    features = pipeline.run(raw_data)
    assert features.backend == backend
    np.testing.assert_allclose(features.numpy(), abs(X) / abs(X).max(), rtol=1e-6)


def test_stages_have_unique_names_and_can_be_selected():
    center = Center()
    pipeline = Pipeline("p").add_stage(center).add_stage(double).add_stage(double)
    pipeline.add_stage(layers.Dense(4, 2)).add_stage(Identity(), "end")
    assert list(pipeline.stages) == ["center", "double", "double_2", "dense", "end"]
    assert pipeline["center"] is pipeline[0] is pipeline.stages["center"] is center
    assert pipeline[-1] is pipeline["end"]
    part = pipeline[1:3]
    assert isinstance(part, Pipeline)
    assert list(part.stages) == ["double", "double_2"]
    assert part.run(3.0) == 12.0
    assert len(pipeline) == 5
    assert "dense" in pipeline
    with pytest.raises(ArgumentError, match="'p': there is a stage named 'end' already"):
        pipeline.add_stage(double, "end")
    with pytest.raises(KeyError, match="did you mean 'dense'"):
        pipeline["dens"]
    with pytest.raises(IndexError, match="there is no stage 7; there are 5"):
        pipeline[7]
    with pytest.raises(ConfigError, match="without dots"):
        pipeline.add_stage(double, "a.b")
    assert len(pipeline) == 5


def test_fit_reads_the_data_once_for_each_stage_that_learns():
    reads = []

    class Batches:
        def __iter__(self):
            reads.append("start")
            return iter([(X[:10], "targets"), (X[10:], "targets")])

    pipeline = Pipeline(stages=[Center(), double, Center()]).fit(Batches())
    assert reads == ["start", "start"]
    whole = Pipeline(stages=[Center(), double, Center()]).fit(X)
    np.testing.assert_allclose(pipeline.run(X).numpy(), whole.run(X).numpy(), atol=1e-6)
    np.testing.assert_allclose(whole.run(X).numpy(), 2 * (X - X.mean(axis=0)), atol=1e-5)


@pytest.mark.parametrize("kind", ["list", "dataset", "labelled", "loader", "array", "nested list"])
def test_every_kind_of_data(kind, backend):
    labelled = ArrayDataset(X, np.arange(24))
    data = {
        "list": [X[:7], X[7:]],
        "dataset": ArrayDataset(X),
        "labelled": labelled,
        "loader": DataLoader(labelled, 5),
        "array": X,
        "nested list": X.tolist(),
    }[kind]
    pipeline = Pipeline(stages=[Center(), Pipeline("inner", [double, Center()])]).fit(data)
    np.testing.assert_allclose(pipeline.run(X).numpy(), 2 * (X - X.mean(axis=0)), atol=1e-5)


def test_a_generator_fits_one_stage():
    pipeline = Pipeline(stages=[double, Center()]).fit(X[at : at + 6] for at in range(0, 24, 6))
    np.testing.assert_allclose(pipeline.run(X).numpy(), 2 * (X - X.mean(axis=0)), atol=1e-5)
    two = Pipeline(stages={"a": Center(), "b": Pipeline(stages=[Center()])})
    with pytest.raises(ArgumentError, match=r"read once, but 2 fits need the data \(stages a, b\)"):
        two.fit(x for x in [X])


def test_a_second_fit_forgets_the_first():
    pipeline = Pipeline(stages=[Center(), double, Center()])
    again = pipeline.fit(X[:5]).fit(X).run(X)
    once = Pipeline(stages=[Center(), double, Center()]).fit(X).run(X)
    np.testing.assert_array_equal(again.numpy(), once.numpy())


def test_a_failed_fit_changes_no_stage():
    pipeline = Pipeline(stages=[Center(), double, Center()]).fit(X)
    before = pipeline.run(X).numpy()
    calls = []

    def batches():
        class Twice:
            def __iter__(self):
                calls.append(0)
                yield 5 * X
                if len(calls) > 1:
                    raise OSError("the disk is gone")

        return Twice()

    with pytest.raises(OSError, match="gone"):
        pipeline.fit(batches())
    np.testing.assert_array_equal(pipeline.run(X).numpy(), before)


def test_partial_fit_names_a_stage_that_lacks_it_and_changes_nothing():
    pipeline = Pipeline("p", {"center": Center(), "whole": WholeOnly()})
    with pytest.raises(ArgumentError, match=r"'p'.partial_fit: stage 'whole' \(WholeOnly\)"):
        pipeline.partial_fit(X)
    assert not pipeline.is_fitted
    pipeline = pipeline[:1].partial_fit((X[:9], "targets")).partial_fit(X[9:])
    np.testing.assert_allclose(pipeline.run(X).numpy(), X - X.mean(axis=0), atol=1e-5)


def test_streamed_equals_whole(backend):
    pipeline = Pipeline(stages=[Center(), double]).fit(X)
    whole = pipeline.run(X).numpy()
    sources = {
        "array": (X, 7),
        "batches": ([X[:5], X[5:]], None),
        "examples": (iter(X), 7),
        "dataset": (ArrayDataset(X), 7),
        "loader": (DataLoader(ArrayDataset(X), 9), None),
    }
    for name, (source, size) in sources.items():
        parts = list(pipeline.stream(source, batch_size=size))
        assert len(parts) > 1, name
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-6, err_msg=name)


def test_a_stream_reads_one_batch_at_a_time():
    read = []

    def source():
        for at in range(3):
            read.append(at)
            yield X

    results = Pipeline(stages=[double]).stream(source())
    assert read == []
    next(results)
    assert read == [0]


def test_the_rest_of_a_tuple_is_returned_with_the_result():
    pipeline = Pipeline(stages=[double, Pipeline(stages=[double])])
    inputs, targets = pipeline.run((X, "targets"))
    assert targets == "targets"
    np.testing.assert_array_equal(inputs, 4 * X)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_map_of_a_dataset(backend, workers):
    pipeline = Pipeline(stages=[Center(), double]).fit(X)
    dataset = ArrayDataset(X, np.arange(24)).map(pipeline, batched=True)
    loader = DataLoader(dataset, 10, num_workers=workers)
    batches = [(x.numpy(), y.numpy()) for x, y in loader]
    np.testing.assert_allclose(
        np.concatenate([x for x, _ in batches]), pipeline.run(X).numpy(), rtol=1e-6
    )
    assert np.concatenate([y for _, y in batches]).tolist() == list(range(24))


def test_the_inverse(backend):
    pipeline = Pipeline(stages=[Center(), Pipeline(stages=[Center()])]).fit(X)
    np.testing.assert_allclose(pipeline.inverse(pipeline.run(X)).numpy(), X, rtol=1e-5)
    pipeline.add_stage(double)
    with pytest.raises(NotImplementedError, match=r"stage 'double' \(the function double\) has no"):
        pipeline.inverse(X)


def test_run_before_fit_names_the_stage():
    pipeline = Pipeline("digits", {"first": double, "second": Center()})
    for call in (pipeline.run, pipeline, pipeline.inverse, pipeline.stream):
        with pytest.raises(
            NotFittedError, match=r"Pipeline 'digits': stage 'second' \(Center\) is not fitted"
        ):
            call(X)


def test_a_stage_that_returns_nothing():
    pipeline = Pipeline("digits").add_stage(double).add_stage(lambda x: None, "nothing")
    with pytest.raises(ArgumentError, match="'digits': stage 'nothing' returned None"):
        pipeline.run(X)


def test_an_error_of_a_stage_names_stage_and_pipeline():
    pipeline = Pipeline("outer").add_stage(Pipeline("inner", {"center": Center()})).fit(X)
    with pytest.raises(ShapeError, match="expected 4 features") as caught:
        pipeline.run(X[:, :3])
    assert caught.value.__notes__ == [
        "in stage 'center' of Pipeline 'inner'",
        "in stage 'pipeline' of Pipeline 'outer'",
    ]


@pytest.mark.parametrize("data", [[], iter([])])
def test_empty_data(data):
    with pytest.raises(ArgumentError, match="no batches") as caught:
        Pipeline("digits", [Center()]).fit(data)
    assert caught.value.__notes__ == ["in stage 'center' of Pipeline 'digits'"]


@pytest.mark.parametrize("stage", [3, None, Center, [Center()]])
def test_what_is_no_stage_is_refused(stage):
    with pytest.raises(ArgumentTypeError, match=r"'p'\.add_stage"):
        Pipeline("p").add_stage(stage)


def test_a_pipeline_is_no_stage_of_itself():
    pipeline = Pipeline("p")
    with pytest.raises(ArgumentError, match="stage of itself"):
        pipeline.add_stage(Pipeline("q", [pipeline]))


def test_functions_cannot_be_saved(tmp_path):
    pipeline = Pipeline("p", {"dense": layers.Dense(4, 2), "twice": double})
    for model in (pipeline, nn.Sequential(pipeline), Pipeline(stages=[pipeline])):
        with pytest.raises(CheckpointError, match=r"'p': stage 'twice' \(the function double\)"):
            ember_ml.save(model, tmp_path / "model")
    assert not any(tmp_path.iterdir())


def test_configs_and_yaml(tmp_path):
    text = """
type: pipelines/pipeline
name: digits
stages:
  embed: {type: layers/dense, in_features: 4, out_features: 3}
  inner:
    type: pipelines/pipeline
    stages: [features/extractor, features/extractor]
"""
    pipeline = Config.from_yaml(text).create()
    assert pipeline.name == "digits"
    assert list(pipeline.stages) == ["embed", "inner"]
    assert list(pipeline["inner"].stages) == ["extractor", "extractor_2"]
    again = Config.from_yaml(pipeline.config.to_yaml()).create()
    assert again.config == pipeline.config
    assert again.run(X).shape == (24, 3)
    with pytest.raises(ConfigError, match=r"stages.embed.in_features"):
        Config.from_yaml(text.replace("in_features: 4", "in_features: 0"))
    with pytest.raises(ConfigError, match="stages"):
        Config.from_dict({"type": "pipelines/pipeline", "stages": "features/extractor"})


def test_saved_and_loaded_on_any_backend(tmp_path, backend):
    with ember_ml.use_backend("numpy"):
        pipeline = Pipeline("p", [layers.Dense(4, 3), FeatureExtractor()])
        expected = pipeline.run(X).numpy()
        ember_ml.save(pipeline, tmp_path / "p")
    loaded = ember_ml.load(tmp_path / "p", backend=backend)
    with ember_ml.use_backend("numpy"):  # the pipeline computes on its own backend
        found = loaded.run(X)
    assert found.backend == backend
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert loaded.name == "p"
    assert list(loaded.stages) == ["dense", "extractor"]


def test_a_stage_that_learns_can_be_added_once(on_numpy):
    scale = Standardize()
    pipeline = Pipeline("twice").add_stage(scale)
    with pytest.raises(ArgumentError, match=r"is stage 'standardize' already.* another instance"):
        pipeline.add_stage(scale)
    assert list(pipeline.stages) == ["standardize"]
    pipeline.add_stage(ops.abs).add_stage(ops.abs)
