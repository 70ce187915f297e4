"""Temperature scaling against SciPy; the calibration error against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.training.calibration import expected_calibration_error, fit_temperature

RNG = np.random.default_rng(3)


def sample(scale):
    logits = RNG.standard_normal((400, 6)) * 2
    labels = np.array([RNG.choice(6, p=softmax(row)) for row in logits])
    return scale * logits, labels


@pytest.mark.parametrize("scale", [0.25, 1.0, 4.0])
def test_the_temperature_of_scipy(scale):
    logits, labels = sample(scale)

    def loss(log_temperature):
        scores = log_softmax(logits / np.exp(log_temperature), axis=1)
        return -scores[np.arange(len(labels)), labels].mean()

    best = minimize_scalar(loss, bounds=(-4, 4), method="bounded", options={"xatol": 1e-9})
    found = fit_temperature(logits, labels)
    assert found == pytest.approx(np.exp(best.x), rel=1e-5)
    assert found == pytest.approx(scale, rel=0.3)
    before, after = (
        expected_calibration_error(softmax(logits / t, axis=1), labels) for t in (1.0, found)
    )
    assert scale == 1.0 or after < before / 2


def test_the_temperature_is_bounded():
    assert fit_temperature([[1.0, 0.0]], [0]) == pytest.approx(0.05)
    assert fit_temperature([[1.0, 0.0]], [1]) == pytest.approx(20.0)


@pytest.mark.parametrize("bins", [5, 15])
def test_the_calibration_error_by_its_definition(backend, bins):
    logits, labels = sample(2.0)
    p = softmax(logits, axis=1).astype("float32")
    confidence, right = p.max(axis=1).astype("float64"), p.argmax(axis=1) == labels
    error = 0.0
    for low in np.arange(bins):
        inside = (confidence > low / bins) & (confidence <= (low + 1) / bins)
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    assert expected_calibration_error(p, labels, bins) == pytest.approx(error, abs=1e-9)


def test_bad_shapes_are_refused():
    with pytest.raises(ShapeError, match="fit_temperature: scores and labels"):
        fit_temperature([[1.0, 0.0]], [0, 1])
    with pytest.raises(ArgumentError, match="no examples"):
        expected_calibration_error(np.zeros((0, 2)), [])
