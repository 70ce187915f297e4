"""Former name of `ember_ml.nn.sequence_module`."""

from ember_ml.nn.sequence_module import SequenceModule as SequenceModule
from ember_ml.nn.sequence_module import State as State
