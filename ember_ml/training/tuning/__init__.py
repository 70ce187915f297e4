"""Hyperparameter search: search spaces, samplers, pruning, and searches during training."""

from ember_ml.training.tuning.errors import HistoryError as HistoryError
from ember_ml.training.tuning.errors import HistoryWarning as HistoryWarning
from ember_ml.training.tuning.errors import TrialPruned as TrialPruned
from ember_ml.training.tuning.errors import TuningError as TuningError
from ember_ml.training.tuning.execution import run_trial as run_trial
from ember_ml.training.tuning.history import TuningHistory as TuningHistory
from ember_ml.training.tuning.meta_features import meta_features as meta_features
from ember_ml.training.tuning.module import SelfTuningModule as SelfTuningModule
from ember_ml.training.tuning.pareto import pareto_front as pareto_front
from ember_ml.training.tuning.prune_trial import PruneTrial as PruneTrial
from ember_ml.training.tuning.pruning import ASHA as ASHA
from ember_ml.training.tuning.pruning import Pruner as Pruner
from ember_ml.training.tuning.ranges import Choice as Choice
from ember_ml.training.tuning.ranges import Float as Float
from ember_ml.training.tuning.ranges import Integer as Integer
from ember_ml.training.tuning.samplers import AutoSampler as AutoSampler
from ember_ml.training.tuning.samplers import MeanScoreSampler as MeanScoreSampler
from ember_ml.training.tuning.samplers import MetaModelSampler as MetaModelSampler
from ember_ml.training.tuning.samplers import RandomSampler as RandomSampler
from ember_ml.training.tuning.samplers import Sampler as Sampler
from ember_ml.training.tuning.samplers import Search as Search
from ember_ml.training.tuning.samplers import TPESampler as TPESampler
from ember_ml.training.tuning.space import SearchSpace as SearchSpace
from ember_ml.training.tuning.train_objective import TrainObjective as TrainObjective
from ember_ml.training.tuning.trial import Trial as Trial
