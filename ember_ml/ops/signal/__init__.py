"""Signals: windows, frames, spectra, convolutions, pooling."""

from ember_ml.ops.signal import (
    convolution,
    filtering,
    framing,
    pooling,
    resizing,
    spectra,
    transposed,
    windows,
)
from ember_ml.ops.signal.convolution import *  # noqa: F403
from ember_ml.ops.signal.filtering import *  # noqa: F403
from ember_ml.ops.signal.framing import *  # noqa: F403
from ember_ml.ops.signal.pooling import *  # noqa: F403
from ember_ml.ops.signal.resizing import *  # noqa: F403
from ember_ml.ops.signal.spectra import *  # noqa: F403
from ember_ml.ops.signal.transposed import *  # noqa: F403
from ember_ml.ops.signal.windows import *  # noqa: F403

__all__ = [
    *convolution.__all__,
    *filtering.__all__,
    *framing.__all__,
    *pooling.__all__,
    *resizing.__all__,
    *spectra.__all__,
    *transposed.__all__,
    *windows.__all__,
]
