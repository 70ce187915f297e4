"""SciPy and scikit-learn take Ember tensors as they are."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
import warnings
import numpy as np, scipy.special, scipy.fft, scipy.stats, scipy.signal, scipy.cluster.vq
import sklearn
from sklearn.preprocessing import StandardScaler
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge, LogisticRegression
from sklearn.mixture import GaussianMixture
from ember_ml.nn import tensor
sklearn.set_config(array_api_dispatch=True)
rng = np.random.default_rng(0)
n = rng.standard_normal((24, 4)).astype(np.float32)
m = (n @ np.ones(4, np.float32)).astype(np.float32)
k = (m > 0).astype(np.int64)
x, y, c = tensor.array(n), tensor.array(m), tensor.array(k)
"""
CHECK = """
assert isinstance(got, tensor.Tensor), type(got)
np.testing.assert_allclose(np.asarray(got), want, rtol=2e-3, atol=2e-4)
"""


@pytest.mark.parametrize("expressions", [SCIPY, SKLEARN], ids=["scipy", "sklearn"])
def test_consumers(backend, expressions):
    blocks = "".join(
        f"\ntry:\n    got, want = {call}{CHECK.replace(chr(10), chr(10) + '    ')}\n"
        f"except Exception as error:\n    print({name!r}, type(error).__name__, error)\n"
        for name, call in expressions.items()
    )
    out = subprocess.run(
        [sys.executable, "-c", PRELUDE + blocks],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "EMBER_ML_BACKEND": backend},
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout == ""
