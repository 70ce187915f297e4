"""Activations: functions of a tensor that stand between layers.

Each is there as a function (`relu`) and as a module (`ReLU`); `get` finds them by name.
"""

from ember_ml.nn.activations.along_axis import GLU as GLU
from ember_ml.nn.activations.along_axis import LogSoftmax as LogSoftmax
from ember_ml.nn.activations.along_axis import Softmax as Softmax
from ember_ml.nn.activations.along_axis import Softmin as Softmin
from ember_ml.nn.activations.along_axis import Sparsemax as Sparsemax
from ember_ml.nn.activations.base import Activation as Activation
from ember_ml.nn.activations.base import get as get
from ember_ml.nn.activations.fixed import SELU as SELU
from ember_ml.nn.activations.fixed import HardSigmoid as HardSigmoid
from ember_ml.nn.activations.fixed import HardSwish as HardSwish
from ember_ml.nn.activations.fixed import Identity as Identity
from ember_ml.nn.activations.fixed import LeCunTanh as LeCunTanh
from ember_ml.nn.activations.fixed import LogSigmoid as LogSigmoid
from ember_ml.nn.activations.fixed import Mish as Mish
from ember_ml.nn.activations.fixed import ReLU as ReLU
from ember_ml.nn.activations.fixed import ReLU6 as ReLU6
from ember_ml.nn.activations.fixed import ReLUSquared as ReLUSquared
from ember_ml.nn.activations.fixed import Sigmoid as Sigmoid
from ember_ml.nn.activations.fixed import SiLU as SiLU
from ember_ml.nn.activations.fixed import Softsign as Softsign
from ember_ml.nn.activations.fixed import Tanh as Tanh
from ember_ml.nn.activations.fixed import TanhShrink as TanhShrink
from ember_ml.nn.activations.functions import *  # noqa: F403
from ember_ml.nn.activations.parametric import CELU as CELU
from ember_ml.nn.activations.parametric import ELU as ELU
from ember_ml.nn.activations.parametric import GELU as GELU
from ember_ml.nn.activations.parametric import HardShrink as HardShrink
from ember_ml.nn.activations.parametric import HardTanh as HardTanh
from ember_ml.nn.activations.parametric import LeakyReLU as LeakyReLU
from ember_ml.nn.activations.parametric import PReLU as PReLU
from ember_ml.nn.activations.parametric import Sine as Sine
from ember_ml.nn.activations.parametric import Softplus as Softplus
from ember_ml.nn.activations.parametric import SoftShrink as SoftShrink
from ember_ml.nn.activations.parametric import Threshold as Threshold
