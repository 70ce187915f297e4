"""Signal processing: windows, frames, spectra, convolutions, pooling."""

from ember_ml._core import namespaces as _namespaces
from ember_ml.ops.signal.adjoints import *  # noqa: F403
from ember_ml.ops.signal.convolution import *  # noqa: F403
from ember_ml.ops.signal.filtering import *  # noqa: F403
from ember_ml.ops.signal.framing import *  # noqa: F403
from ember_ml.ops.signal.long_convolution import *  # noqa: F403
from ember_ml.ops.signal.pooling import *  # noqa: F403
from ember_ml.ops.signal.resizing import *  # noqa: F403
from ember_ml.ops.signal.spectra import *  # noqa: F403
from ember_ml.ops.signal.transposed import *  # noqa: F403
from ember_ml.ops.signal.windows import *  # noqa: F403

__dir__ = _namespaces.without_files(__name__)
