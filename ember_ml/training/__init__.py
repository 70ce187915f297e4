"""Training: losses, metrics, optimizers, schedules, and the trainer that combines them."""

from typing import TYPE_CHECKING

from ember_ml._core import namespaces as _namespaces

if TYPE_CHECKING:
    from ember_ml.configs.training import TrainerConfig as TrainerConfig
    from ember_ml.training import callbacks as callbacks
    from ember_ml.training import losses as losses
    from ember_ml.training import metrics as metrics
    from ember_ml.training import optimizer as optimizer
    from ember_ml.training import pipelines as pipelines
    from ember_ml.training import profiling as profiling
    from ember_ml.training import schedules as schedules
    from ember_ml.training import selection as selection
    from ember_ml.training import sweeps as sweeps
    from ember_ml.training import tuning as tuning
    from ember_ml.training.clipping import clip_by_norm as clip_by_norm
    from ember_ml.training.clipping import clip_by_value as clip_by_value
    from ember_ml.training.clipping import global_norm as global_norm
    from ember_ml.training.ema import EMA as EMA
    from ember_ml.training.profiling.options import ProfileOptions as ProfileOptions
    from ember_ml.training.profiling.profiler import profile as profile
    from ember_ml.training.trainer import History as History
    from ember_ml.training.trainer import NonFiniteError as NonFiniteError
    from ember_ml.training.trainer import NonFiniteWarning as NonFiniteWarning
    from ember_ml.training.trainer import Trainer as Trainer
    from ember_ml.training.trainer import TrainingInterrupted as TrainingInterrupted
    from ember_ml.training.trainer import TrainingTerminated as TrainingTerminated

__getattr__, __dir__ = _namespaces.attach(
    __name__,
    {
        "EMA": "ember_ml.training.ema",
        "History": "ember_ml.training.trainer",
        "NonFiniteError": "ember_ml.training.trainer",
        "NonFiniteWarning": "ember_ml.training.trainer",
        "ProfileOptions": "ember_ml.training.profiling.options",
        "Trainer": "ember_ml.training.trainer",
        "TrainerConfig": "ember_ml.configs.training",
        "TrainingInterrupted": "ember_ml.training.trainer",
        "TrainingTerminated": "ember_ml.training.trainer",
        "callbacks": "ember_ml.training.callbacks",
        "clip_by_norm": "ember_ml.training.clipping",
        "clip_by_value": "ember_ml.training.clipping",
        "global_norm": "ember_ml.training.clipping",
        "losses": "ember_ml.training.losses",
        "metrics": "ember_ml.training.metrics",
        "optimizer": "ember_ml.training.optimizer",
        "pipelines": "ember_ml.training.pipelines",
        "profile": "ember_ml.training.profiling",
        "profiling": "ember_ml.training.profiling",
        "schedules": "ember_ml.training.schedules",
        "selection": "ember_ml.training.selection",
        "sweeps": "ember_ml.training.sweeps",
        "tuning": "ember_ml.training.tuning",
    },
)
