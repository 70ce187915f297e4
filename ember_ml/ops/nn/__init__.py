"""Neural network ops: activations, normalization, attention, losses."""

from ember_ml._core import namespaces as _namespaces
from ember_ml.ops.nn.activations import *  # noqa: F403
from ember_ml.ops.nn.adjoints import *  # noqa: F403
from ember_ml.ops.nn.attention import *  # noqa: F403
from ember_ml.ops.nn.classification import *  # noqa: F403
from ember_ml.ops.nn.ctc import *  # noqa: F403
from ember_ml.ops.nn.gated_cells import *  # noqa: F403
from ember_ml.ops.nn.gating import *  # noqa: F403
from ember_ml.ops.nn.liquid_cells import *  # noqa: F403
from ember_ml.ops.nn.losses import *  # noqa: F403
from ember_ml.ops.nn.normalization import *  # noqa: F403
from ember_ml.ops.nn.positions import *  # noqa: F403
from ember_ml.ops.nn.probabilities import *  # noqa: F403
from ember_ml.ops.nn.projection import *  # noqa: F403
from ember_ml.ops.nn.quantization import *  # noqa: F403
from ember_ml.ops.nn.recurrent import *  # noqa: F403
from ember_ml.ops.nn.regularization import *  # noqa: F403
from ember_ml.ops.nn.spiking import *  # noqa: F403

__dir__ = _namespaces.without_files(__name__)
