"""The trainer."""

from ember_ml.training.trainer.history import History as History
from ember_ml.training.trainer.interrupt import TrainingInterrupted as TrainingInterrupted
from ember_ml.training.trainer.interrupt import TrainingTerminated as TrainingTerminated
from ember_ml.training.trainer.nonfinite import NonFiniteError as NonFiniteError
from ember_ml.training.trainer.nonfinite import NonFiniteWarning as NonFiniteWarning
from ember_ml.training.trainer.trainer import Trainer as Trainer
