"""Metrics that accumulate over batches on the device; `compute` transfers the result."""

from ember_ml.training.metrics.accuracy import Accuracy as Accuracy
from ember_ml.training.metrics.accuracy import BinaryAccuracy as BinaryAccuracy
from ember_ml.training.metrics.accuracy import TopKAccuracy as TopKAccuracy
from ember_ml.training.metrics.base import Metric as Metric
from ember_ml.training.metrics.base import get as get
from ember_ml.training.metrics.confusion import ConfusionMatrix as ConfusionMatrix
from ember_ml.training.metrics.function import FunctionMetric as FunctionMetric
from ember_ml.training.metrics.means import MAE as MAE
from ember_ml.training.metrics.means import MSE as MSE
from ember_ml.training.metrics.means import RMSE as RMSE
from ember_ml.training.metrics.means import CosineSimilarity as CosineSimilarity
from ember_ml.training.metrics.means import Mean as Mean
from ember_ml.training.metrics.means import Perplexity as Perplexity
from ember_ml.training.metrics.moments import R2 as R2
from ember_ml.training.metrics.moments import Pearson as Pearson
from ember_ml.training.metrics.per_class import F1 as F1
from ember_ml.training.metrics.per_class import Precision as Precision
from ember_ml.training.metrics.per_class import Recall as Recall
from ember_ml.training.metrics.ranking import AUROC as AUROC
