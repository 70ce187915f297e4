"""What neural networks are made of: activations, normalization, attention, losses."""

from __future__ import annotations

from ember_ml.ops.nn import (
    activations,
    attention,
    classification,
    ctc,
    gating,
    losses,
    normalization,
    positions,
    probabilities,
    projection,
    regularization,
)
from ember_ml.ops.nn.activations import *  # noqa: F403
from ember_ml.ops.nn.attention import *  # noqa: F403
from ember_ml.ops.nn.classification import *  # noqa: F403
from ember_ml.ops.nn.ctc import *  # noqa: F403
from ember_ml.ops.nn.gating import *  # noqa: F403
from ember_ml.ops.nn.losses import *  # noqa: F403
from ember_ml.ops.nn.normalization import *  # noqa: F403
from ember_ml.ops.nn.positions import *  # noqa: F403
from ember_ml.ops.nn.probabilities import *  # noqa: F403
from ember_ml.ops.nn.projection import *  # noqa: F403
from ember_ml.ops.nn.regularization import *  # noqa: F403

__all__: list[str] = []
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += classification.__all__
__all__ += ctc.__all__
__all__ += gating.__all__
__all__ += losses.__all__
__all__ += normalization.__all__
__all__ += positions.__all__
__all__ += probabilities.__all__
__all__ += projection.__all__
__all__ += regularization.__all__
