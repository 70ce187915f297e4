"""Feature pipelines of audio and text."""

from __future__ import annotations

import collections

import librosa
import numpy as np
import pytest

import ember_ml
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.configs import Config
from ember_ml.data.text import Tokenize, Tokenizer
from ember_ml.nn import features
from ember_ml.nn.features import NotFittedError
from ember_ml.nn.pipeline import (
    AudioFeaturePipeline,
    ClassLabels,
    FeaturePipeline,
    Pipeline,
    TextFeaturePipeline,
)

RNG = np.random.default_rng(0)
WAVES = (RNG.normal(size=(3, 2000)) * np.linspace(0.1, 1, 2000)).astype("float32")
TEXTS = ["the cat sat on the mat", "a dog", "the dog sat", "cats and dogs and cats"]


@pytest.mark.parametrize("kind", ["log_mel", "mfcc"])
def test_audio_features_against_librosa(kind, backend):
    pipeline = AudioFeaturePipeline(8000, kind, 13, n_fft=256, hop=100, standardize=False)
    found = pipeline.run(WAVES).numpy()
    mel = librosa.feature.melspectrogram(
        y=WAVES, sr=8000, n_fft=256, hop_length=100, n_mels=13 if kind == "log_mel" else 40
    )
    expected = np.stack([librosa.power_to_db(each) for each in mel])
    if kind == "mfcc":
        expected = np.stack([librosa.feature.mfcc(S=each, n_mfcc=13) for each in expected])
    np.testing.assert_allclose(found, expected.swapaxes(1, 2), atol=2e-3)
    assert len(pipeline.feature_names) == 13


def test_pooled_and_standardized_audio_features(backend, tmp_path):
    pipeline = AudioFeaturePipeline(8000, "mfcc", 5, n_fft=256, hop=100, pool="statistics")
    with pytest.raises(NotFittedError, match="stage 'standardize'"):
        pipeline.run(WAVES)
    frames = AudioFeaturePipeline(8000, "mfcc", 5, n_fft=256, hop=100, standardize=False)
    raw = frames.run(WAVES).numpy()
    pooled = np.concatenate([raw.mean(axis=1), raw.std(axis=1)], axis=1)
    expected = (pooled - pooled.mean(axis=0)) / pooled.std(axis=0)
    found = pipeline.fit([WAVES[:1], WAVES[1:]]).run(WAVES).numpy()
    np.testing.assert_allclose(found, expected, atol=5e-3)
    assert pipeline.feature_names[5] == "std_mfcc_0"
    ember_ml.save(pipeline, tmp_path / "audio")
    for other in ember_ml.backend.available():
        loaded = ember_ml.load(tmp_path / "audio", backend=other)
        assert isinstance(loaded, AudioFeaturePipeline)
        np.testing.assert_allclose(loaded.run(WAVES).numpy(), found, atol=5e-3)


def test_text_features(backend, tmp_path):
    tokenizer = Tokenizer.train(TEXTS, "bpe", 290)
    pipeline = TextFeaturePipeline(tokenizer)
    ids = pipeline.run(TEXTS)
    assert ids.backend == backend
    for row, text in zip(ids.tolist(), TEXTS, strict=True):
        own = tokenizer.encode(text)
        assert row == own + [tokenizer.pad_id] * (len(row) - len(own))
    assert pipeline.inverse(ids) == TEXTS
    counts = TextFeaturePipeline(tokenizer, output="counts")
    found = counts.run(TEXTS).numpy()
    for row, text in zip(found, TEXTS, strict=True):
        counted = collections.Counter(tokenizer.encode(text))
        assert {at: n for at, n in enumerate(row) if n} == counted
    ember_ml.save(counts, tmp_path / "text")
    assert (tmp_path / "text" / "tokenize.tokenizer.json").exists()
    for other in ember_ml.backend.available():
        loaded = ember_ml.load(tmp_path / "text", backend=other)
        assert isinstance(loaded, TextFeaturePipeline)
        assert loaded["tokenize"].tokenizer == tokenizer
        np.testing.assert_array_equal(loaded.run(TEXTS).numpy(), found)
        assert loaded.fit(["zzz"])["tokenize"].tokenizer == tokenizer  # it was given


def test_a_tokenizer_trained_by_fit(tmp_path):
    pipeline = TextFeaturePipeline(kind="char", vocab_size=40, max_length=6)
    with pytest.raises(NotFittedError, match="stage 'tokenize'"):
        pipeline.run(TEXTS)
    with pytest.raises(ArgumentError, match=r"stage 'tokenize' .* cannot be fitted batch by batch"):
        pipeline.partial_fit(TEXTS)
    pipeline.fit([TEXTS[:2], TEXTS[2:]])
    assert pipeline.run(TEXTS).shape == (4, 6)
    assert pipeline["tokenize"].tokenizer == Tokenizer.train(TEXTS, "char", 40)
    ember_ml.save(pipeline, tmp_path / "text")
    loaded = ember_ml.load(tmp_path / "text")
    assert loaded.run(["a dog"]).tolist() == pipeline.run(["a dog"]).tolist()
    assert loaded.fit(["xyz"]).inverse(loaded.run(["xyz"])) == ["xyz"]


def test_configs_describe_the_pipelines():
    for pipeline in (
        AudioFeaturePipeline(8000, "mfcc", pool="statistics"),
        TextFeaturePipeline(kind="char", output="counts"),
        FeaturePipeline("f", [features.Standardize()], finite=False),
    ):
        again = Config.from_yaml(pipeline.config.to_yaml()).create()
        assert type(again) is type(pipeline)
        assert again.config == pipeline.config
        assert list(again.stages) == list(pipeline.stages)


def test_fixed_pipelines_take_no_further_stages():
    audio = AudioFeaturePipeline(8000, standardize=False)
    with pytest.raises(ArgumentError, match=r"Pipeline\(stages=\[AudioFeaturePipeline"):
        audio.add_stage(features.PCA(2))
    stages = Pipeline("both", [audio, features.PCA(2)]).fit(WAVES)
    assert stages.run(WAVES).shape[-1] == 2


def test_nan_in_features_are_named():
    x = np.ones((5, 3), "float32")
    x[2, 1] = np.nan
    pipeline = FeaturePipeline("f", [features.Standardize(nan="ignore")]).fit(x)
    with pytest.raises(ArgumentError, match=r"'f' returned NaN .* feature\(s\) x1 of 1 of 5 exam"):
        pipeline.run(x)
    allowed = FeaturePipeline("f", [features.Standardize(nan="ignore")], finite=False).fit(x)
    assert np.isnan(allowed.extract(x).numpy()).sum() == 1
    with pytest.raises(ArgumentTypeError, match="must return a tensor of features, not a list"):
        FeaturePipeline("f", [ClassLabels(["a", "b", "c"])]).run(x)


def test_an_unseen_category_names_stage_and_value():
    pipeline = Pipeline("p", [features.OneHot()]).fit([["red"], ["blue"]])
    with pytest.raises(ValueError, match="green") as caught:
        pipeline.run([["green"]])
    assert caught.value.__notes__ == ["in stage 'one_hot' of Pipeline 'p'"]


def test_what_is_no_text_is_refused():
    tokenize = Tokenize(Tokenizer.train(TEXTS, "char"))
    with pytest.raises(ArgumentTypeError, match="expected a list of texts"):
        tokenize.extract([1, 2])
    with pytest.raises(ArgumentError, match="no padding token"):
        Tokenize(Tokenizer.train(TEXTS, "char", special_tokens={"unk": "?"}))
