"""Statistics of samples."""

from ember_ml._core import namespaces as _namespaces
from ember_ml.ops.counting import bincount as bincount
from ember_ml.ops.counting import histogram as histogram
from ember_ml.ops.cumulative import cummax as cummax
from ember_ml.ops.cumulative import cummin as cummin
from ember_ml.ops.cumulative import cumprod as cumprod
from ember_ml.ops.cumulative import cumsum as cumsum
from ember_ml.ops.quantiles import median as median
from ember_ml.ops.quantiles import percentile as percentile
from ember_ml.ops.quantiles import quantile as quantile
from ember_ml.ops.reduction import argmax as argmax
from ember_ml.ops.reduction import argmin as argmin
from ember_ml.ops.reduction import logsumexp as logsumexp
from ember_ml.ops.reduction import max as max
from ember_ml.ops.reduction import mean as mean
from ember_ml.ops.reduction import min as min
from ember_ml.ops.reduction import prod as prod
from ember_ml.ops.reduction import std as std
from ember_ml.ops.reduction import sum as sum
from ember_ml.ops.reduction import var as var
from ember_ml.ops.sorting import argsort as argsort
from ember_ml.ops.sorting import sort as sort
from ember_ml.ops.sorting import topk as topk
from ember_ml.ops.stats.moments import corrcoef as corrcoef
from ember_ml.ops.stats.moments import cov as cov
from ember_ml.ops.stats.moments import gaussian as gaussian
from ember_ml.ops.stats.moments import kurtosis as kurtosis
from ember_ml.ops.stats.moments import skew as skew
from ember_ml.ops.stats.moments import standardize as standardize

__dir__ = _namespaces.without_files(__name__)
