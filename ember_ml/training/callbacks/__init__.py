"""Callbacks of the trainer."""

from ember_ml.training.callbacks.base import Callback as Callback
from ember_ml.training.callbacks.checkpointing import Checkpoint as Checkpoint
from ember_ml.training.callbacks.early_stopping import EarlyStopping as EarlyStopping
from ember_ml.training.callbacks.logging import CSVLogger as CSVLogger
from ember_ml.training.callbacks.logging import LRMonitor as LRMonitor
from ember_ml.training.callbacks.logging import TensorBoardLogger as TensorBoardLogger
from ember_ml.training.callbacks.progress import Progress as Progress
