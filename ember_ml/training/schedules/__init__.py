"""Learning rate schedules: factors on the learning rates of an optimizer."""

from ember_ml.training.schedules.base import Schedule as Schedule
from ember_ml.training.schedules.base import get as get
from ember_ml.training.schedules.chained import Chained as Chained
from ember_ml.training.schedules.plateau import Plateau as Plateau
from ember_ml.training.schedules.simple import Constant as Constant
from ember_ml.training.schedules.simple import Exponential as Exponential
from ember_ml.training.schedules.simple import InverseSqrt as InverseSqrt
from ember_ml.training.schedules.simple import Linear as Linear
from ember_ml.training.schedules.simple import Polynomial as Polynomial
from ember_ml.training.schedules.simple import Step as Step
from ember_ml.training.schedules.simple import Warmup as Warmup
from ember_ml.training.schedules.waves import Cosine as Cosine
from ember_ml.training.schedules.waves import OneCycle as OneCycle
