"""Pipelines that train models."""

from ember_ml.training.pipelines.training import TrainingPipeline as TrainingPipeline
