"""The synthetic tasks of MAD, one file each."""

from ember_ml.mad.tasks.base import Task as Task
from ember_ml.mad.tasks.base import TaskError as TaskError
from ember_ml.mad.tasks.compression import Compression as Compression
from ember_ml.mad.tasks.draws import Draws as Draws
from ember_ml.mad.tasks.fuzzy_in_context_recall import FuzzyInContextRecall as FuzzyInContextRecall
from ember_ml.mad.tasks.in_context_recall import InContextRecall as InContextRecall
from ember_ml.mad.tasks.memorization import Memorization as Memorization
from ember_ml.mad.tasks.noisy_in_context_recall import NoisyInContextRecall as NoisyInContextRecall
from ember_ml.mad.tasks.selective_copying import SelectiveCopying as SelectiveCopying
