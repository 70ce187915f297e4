"""Features of time series against tsfresh, statsmodels and SciPy."""

from __future__ import annotations

import typing

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import signal, stats
from statsmodels.tsa.stattools import acf
from tsfresh.feature_extraction import feature_calculators as tsfresh

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.configs.errors import ConfigError
from ember_ml.nn import features
from ember_ml.nn.features.timeseries import Feature
from tests.backends import has_dtype

SUNSPOTS = sm.datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()
SERIES = np.stack([SUNSPOTS[:100], SUNSPOTS[100:200], np.sin(np.arange(100.0)) - 0.2])
LENGTHS = [100, 37, 64]
RAGGED = [x[:length] for x, length in zip(SERIES, LENGTHS, strict=True)]
LAGS = 3


def magnitudes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    frequencies, power = signal.periodogram(x, scaling="spectrum", detrend="constant")
    power[1:] /= 2  # SciPy counts each frequency but 0 and the Nyquist frequency twice
    if len(x) % 2 == 0:
        power[-1] *= 2
    return frequencies, np.sqrt(power)


def centroid(x: np.ndarray) -> float:
    (value,) = tsfresh.fft_aggregated(x - x.mean(), [{"aggtype": "centroid"}])
    return value[1] / len(x)


def spread(x: np.ndarray) -> float:
    (value,) = tsfresh.fft_aggregated(x - x.mean(), [{"aggtype": "variance"}])
    return np.sqrt(value[1]) / len(x)


REFERENCES = {
    "mean": np.mean,
    "std": tsfresh.standard_deviation,
    "var": tsfresh.variance,
    "min": np.min,
    "max": np.max,
    "median": np.median,
    "sum": np.sum,
    "energy": tsfresh.abs_energy,
    "rms": tsfresh.root_mean_square,
    "skew": tsfresh.skewness,
    "kurtosis": tsfresh.kurtosis,
    "mean_abs_change": tsfresh.mean_abs_change,
    "slope": lambda x: stats.linregress(np.arange(len(x)), x).slope,
    "zero_crossings": lambda x: tsfresh.number_crossing_m(x, 0),
    "acf": lambda x: acf(x, adjusted=True, nlags=LAGS)[1:],
    "spectral": lambda x: [REFERENCES[name](x) for name in list(REFERENCES)[-4:]],
    "spectral_centroid": centroid,
    "spectral_spread": spread,
    "spectral_entropy": lambda x: stats.entropy(magnitudes(x)[1]) / np.log(len(magnitudes(x)[1])),
    "spectral_peak": lambda x: magnitudes(x)[0][np.argmax(magnitudes(x)[1])],
}


def tolerance(backend: str) -> float:
    return 1e-9 if has_dtype(backend, "float64") else 2e-4


def test_every_feature_has_a_reference() -> None:
    assert set(REFERENCES) == set(typing.get_args(Feature))


@pytest.mark.parametrize("name", REFERENCES)
def test_features_equal_the_references(backend: str, name: str) -> None:
    extractor = features.TimeSeriesFeatures([name], lags=LAGS)
    limit = tolerance(backend)
    for x, lengths in ((list(SERIES), None), (RAGGED, LENGTHS)):
        want = np.stack([np.atleast_1d(REFERENCES[name](one)) for one in x])
        got = extractor(SERIES, lengths=lengths)
        assert got.shape == (3, len(extractor.names))
        np.testing.assert_allclose(got.numpy(), want, rtol=limit, atol=limit)


def test_the_reference_of_lags_is_the_one_of_tsfresh() -> None:
    want = [tsfresh.autocorrelation(SERIES[0], lag) for lag in range(1, LAGS + 1)]
    np.testing.assert_allclose(REFERENCES["acf"](SERIES[0]), want, rtol=1e-9)


def test_padding_has_no_influence(backend: str) -> None:
    extractor = features.TimeSeriesFeatures(["mean", "std", "acf", "spectral"], lengths=True)
    want = np.concatenate([extractor([one]).numpy() for one in RAGGED])
    padded = np.full((3, 100), np.nan)
    for row, one in zip(padded, RAGGED, strict=True):
        row[: len(one)] = one
    mask = ~np.isnan(padded)
    for got in (
        extractor(padded, lengths=LENGTHS),
        extractor(padded, lengths=np.array(LENGTHS)),
        extractor(padded, mask=mask),
        extractor(RAGGED),
        extractor.extract([ops.array(one.astype("float32")) for one in RAGGED]),
    ):
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-4, atol=2e-4)
    with pytest.raises(ArgumentError, match="pass lengths, mask or a list"):
        extractor(SERIES)


def test_windows_are_series_of_their_own(backend: str) -> None:
    extractor = features.TimeSeriesFeatures(["mean", "acf", "slope"], window=30, hop=20, lags=2)
    whole = features.TimeSeriesFeatures(["mean", "acf", "slope"], lags=2)
    got = extractor(SERIES)
    assert got.shape == (3, extractor.num_windows(100), 4) == (3, 4, 4)
    want = np.stack([whole(SERIES[:, at : at + 30]).numpy() for at in (0, 20, 40, 60)], 1)
    limit = tolerance(backend)
    np.testing.assert_allclose(got.numpy(), want, rtol=limit, atol=limit)
    ragged = extractor(SERIES, lengths=LENGTHS).numpy()
    assert [extractor.num_windows(length) for length in LENGTHS] == [4, 1, 2]
    np.testing.assert_allclose(ragged[2, :2], want[2, :2], rtol=limit, atol=limit)
    assert (ragged[1, 1:] == 0).all()
    assert (ragged[2, 2:] == 0).all()


def test_channels_come_one_after_the_other(backend: str) -> None:
    x = np.stack([SERIES, SERIES[::-1]], -1)
    extractor = features.TimeSeriesFeatures(["mean", "std"], in_features=2)
    assert extractor.names == extractor.feature_names == ("x0.mean", "x0.std", "x1.mean", "x1.std")
    want = np.stack([x.mean(1)[:, 0], x.std(1)[:, 0], x.mean(1)[:, 1], x.std(1)[:, 1]], 1)
    np.testing.assert_allclose(extractor(x).numpy(), want, rtol=1e-5)
    np.testing.assert_allclose(extractor(list(x)).numpy(), want, rtol=1e-5)
    windows = features.TimeSeriesFeatures(["mean", "std"], in_features=2, window=100)
    np.testing.assert_allclose(windows(x).numpy()[:, 0], want, rtol=1e-5)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0, 1e5])
@pytest.mark.parametrize("length", [1, 2, 3, 50])
def test_constant_and_short_series_are_finite(backend: str, value: float, length: int) -> None:
    names = [name for name in REFERENCES if name != "spectral"]
    extractor = features.TimeSeriesFeatures(names, lags=2)
    x = np.full((2, length), value, dtype="float32")
    got = dict(zip(extractor.names, extractor(x)[0].tolist(), strict=True))
    assert np.isfinite(list(got.values())).all()
    zero = ("skew", "kurtosis", "slope", "mean_abs_change", "zero_crossings", "acf_1", "acf_2")
    for name in (*zero, "spectral_centroid", "spectral_entropy", "spectral_peak"):
        assert got[name] == pytest.approx(0.0, abs=1e-3), name
    ramp = features.TimeSeriesFeatures(names, lags=2)(np.arange(length, dtype="float32")[None])
    assert np.isfinite(ramp.numpy()).all()


def test_the_sample_rate_is_the_unit_of_frequencies(backend: str) -> None:
    x = np.sin(2 * np.pi * 50 * np.arange(400) / 400)[None].astype("float32")
    extractor = features.TimeSeriesFeatures(["spectral_peak", "slope"], sample_rate=400.0)
    peak, slope = extractor(x)[0].tolist()
    assert peak == pytest.approx(50.0)
    want = stats.linregress(np.arange(400) / 400, x[0]).slope
    assert slope == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "x", "options", "error", "message"),
    [
        ({}, SERIES[0], {}, ShapeError, r"expected shape \(batch, time\), got \(100,\)"),
        ({"in_features": 2}, SERIES, {}, ShapeError, r"\(batch, time, 2\)"),
        ({"in_features": 2}, SERIES[..., None], {}, ShapeError, "expected 2 features"),
        ({}, SERIES, {"lengths": [1, 2]}, ShapeError, "expected 3 lengths"),
        ({}, SERIES, {"lengths": [1, 0, 3]}, ArgumentError, "series 1 has length 0"),
        ({}, SERIES, {"lengths": [1, 2, 101]}, ArgumentError, "series 2 has length 101"),
        ({}, SERIES, {"mask": np.ones((3, 5))}, ShapeError, r"mask of shape \(3, 100\)"),
        (
            {},
            SERIES[:, :3],
            {"mask": np.array([[1, 0, 1]] * 3)},
            ArgumentError,
            "True first, then False",
        ),
        ({"window": 101}, SERIES, {}, ArgumentError, r"series 0 has 100 value\(s\); at least 101"),
        ({}, SERIES[:, :0], {}, ArgumentError, r"has 0 value\(s\)"),
        (
            {},
            np.where(np.eye(3)[:, [1]] > 0, np.nan, SERIES),
            {},
            ArgumentError,
            "series 1 has NaN",
        ),
        ({}, [SERIES[0], np.full(7, np.inf)], {}, ArgumentError, "series 1 has NaN or infinite"),
    ],
)
def test_bad_input_is_named(
    backend: str, arguments: dict, x: object, options: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        features.TimeSeriesFeatures(["mean"], **arguments)(x, **options)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ConfigError, match="features"):
        features.TimeSeriesFeatures(["average"])
    for arguments, message in (
        ({"features": []}, "must not be empty"),
        ({"hop": 2}, "hop needs a window"),
    ):
        with pytest.raises(ArgumentError, match=message):
            features.TimeSeriesFeatures(**arguments)
