"""Pipelines that extract features."""

from ember_ml.nn.pipeline.feature.audio import AudioFeaturePipeline as AudioFeaturePipeline
from ember_ml.nn.pipeline.feature.base import FeaturePipeline as FeaturePipeline
from ember_ml.nn.pipeline.feature.text import TextFeaturePipeline as TextFeaturePipeline
