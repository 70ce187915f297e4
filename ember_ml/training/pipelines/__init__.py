"""Pipelines that train models."""

from ember_ml.training.pipelines.self_training import SelfTrainingHistory as SelfTrainingHistory
from ember_ml.training.pipelines.self_training import SelfTrainingPipeline as SelfTrainingPipeline
from ember_ml.training.pipelines.training import TrainingPipeline as TrainingPipeline
