"""The synthetic tasks."""

from ember_ml.mad.tasks.base import Task as Task
from ember_ml.mad.tasks.base import TaskError as TaskError
from ember_ml.mad.tasks.copying import Compression as Compression
from ember_ml.mad.tasks.copying import Memorization as Memorization
from ember_ml.mad.tasks.copying import SelectiveCopying as SelectiveCopying
from ember_ml.mad.tasks.fuzzy import FuzzyInContextRecall as FuzzyInContextRecall
from ember_ml.mad.tasks.recall import InContextRecall as InContextRecall
from ember_ml.mad.tasks.recall import NoisyInContextRecall as NoisyInContextRecall
