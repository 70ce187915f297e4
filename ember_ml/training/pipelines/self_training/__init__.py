"""Self-training: pseudo-labels and consistency training with few labels."""

from ember_ml.training.pipelines.self_training.history import (
    SelfTrainingHistory as SelfTrainingHistory,
)
from ember_ml.training.pipelines.self_training.pipeline import (
    SelfTrainingPipeline as SelfTrainingPipeline,
)
