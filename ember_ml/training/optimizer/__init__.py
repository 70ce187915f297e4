"""Optimizers."""

from ember_ml.training.optimizer.adafactor import Adafactor as Adafactor
from ember_ml.training.optimizer.adagrad import Adadelta as Adadelta
from ember_ml.training.optimizer.adagrad import Adagrad as Adagrad
from ember_ml.training.optimizer.adam import Adam as Adam
from ember_ml.training.optimizer.adam import AdamW as AdamW
from ember_ml.training.optimizer.base import Optimizer as Optimizer
from ember_ml.training.optimizer.base import StepValues as StepValues
from ember_ml.training.optimizer.groups import Group as Group
from ember_ml.training.optimizer.lamb import LAMB as LAMB
from ember_ml.training.optimizer.lion import Lion as Lion
from ember_ml.training.optimizer.muon import Muon as Muon
from ember_ml.training.optimizer.plan import Slot as Slot
from ember_ml.training.optimizer.rmsprop import RMSprop as RMSprop
from ember_ml.training.optimizer.schedule_free import ScheduleFreeAdamW as ScheduleFreeAdamW
from ember_ml.training.optimizer.sgd import SGD as SGD
