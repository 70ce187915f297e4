"""SciPy and scikit-learn take Ember tensors as they are."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

from ember_ml.backend import available

SCIPY = {
    "logsumexp": "scipy.special.logsumexp(x[0]), scipy.special.logsumexp(n[0])",
    "rfft": "scipy.fft.rfft(x), scipy.fft.rfft(n)",
    "ttest_ind": "scipy.stats.ttest_ind(x[0], x[1]).statistic, "
    "scipy.stats.ttest_ind(n[0], n[1]).statistic",
    "fftconvolve": "scipy.signal.fftconvolve(x[0], x[1]), scipy.signal.fftconvolve(n[0], n[1])",
    "kmeans2": "scipy.cluster.vq.kmeans2(x, x[:2])[0], scipy.cluster.vq.kmeans2(n, n[:2])[0]",
}
SKLEARN = {
    "StandardScaler": "StandardScaler().fit(x).transform(x), StandardScaler().fit(n).transform(n)",
    "PCA": "abs(PCA(2, svd_solver='full').fit(x).transform(x)), "
    "abs(PCA(2, svd_solver='full').fit(n).transform(n))",
    "Ridge": "Ridge(solver='svd').fit(x, y).predict(x), Ridge(solver='svd').fit(n, m).predict(n)",
    "LogisticRegression": "LogisticRegression(solver='lbfgs').fit(x, c).decision_function(x), "
    "LogisticRegression(solver='lbfgs').fit(n, k).decision_function(n)",
    "GaussianMixture": "GaussianMixture(2, init_params='random', random_state=0).fit(x)"
    ".means_.sum(), "
    "GaussianMixture(2, init_params='random', random_state=0).fit(n).means_.sum()",
}
PRELUDE = """
import json
import numpy as np, scipy.special, scipy.fft, scipy.stats, scipy.signal, scipy.cluster.vq
import sklearn
from sklearn.preprocessing import StandardScaler
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge, LogisticRegression
from sklearn.mixture import GaussianMixture
from ember_ml.nn import tensor
from ember_ml import use_backend
sklearn.set_config(array_api_dispatch=True)
rng = np.random.default_rng(0)
n = rng.standard_normal((24, 4)).astype(np.float32)
m = (n @ np.ones(4, np.float32)).astype(np.float32)
k = (m > 0).astype(np.int64)
"""
CHECK = """
with use_backend({backend!r}):
    x, y, c = tensor.array(n), tensor.array(m), tensor.array(k)
    try:
        got, want = {call}
        assert isinstance(got, tensor.Tensor), type(got)
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-3, atol=2e-4)
    except Exception as error:
        result = repr(error)
    else:
        result = "equal"
    print(json.dumps([{backend!r}, {name!r}, result]))
"""


@functools.cache
def outcomes() -> dict[tuple[str, str], str]:
    """Return what a process in which all calls run on all backends prints for each."""
    checks = [
        CHECK.format(backend=backend, name=name, call=call)
        for backend in available()
        for name, call in (SCIPY | SKLEARN).items()
    ]
    out = subprocess.run(
        [sys.executable, "-c", PRELUDE + "".join(checks)],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.returncode == 0, out.stderr
    rows = [json.loads(line) for line in out.stdout.splitlines()]
    return {(backend, name): result for backend, name, result in rows}


@pytest.mark.parametrize("name", SCIPY | SKLEARN)
def test_consumers(backend: str, name: str) -> None:
    assert outcomes()[backend, name] == "equal"
