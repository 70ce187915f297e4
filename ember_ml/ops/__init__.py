"""All operations, in one namespace.

It holds the names of the array API standard, the common names of NumPy and PyTorch, and more.
`ops.fft`, `ops.linearalg` (also `ops.linalg`), `ops.nn`, `ops.random`, `ops.signal` and `ops.stats`
are namespaces; the contents of `nn` and `signal` are also available here.
"""

from ember_ml._core import namespaces as _namespaces
from ember_ml._core.dtype import bfloat16 as bfloat16
from ember_ml._core.dtype import bool_ as bool  # noqa: F401
from ember_ml._core.dtype import bool_ as bool_
from ember_ml._core.dtype import complex64 as complex64
from ember_ml._core.dtype import complex128 as complex128
from ember_ml._core.dtype import float16 as float16
from ember_ml._core.dtype import float32 as float32
from ember_ml._core.dtype import float64 as float64
from ember_ml._core.dtype import int8 as int8
from ember_ml._core.dtype import int16 as int16
from ember_ml._core.dtype import int32 as int32
from ember_ml._core.dtype import int64 as int64
from ember_ml._core.dtype import uint8 as uint8
from ember_ml._core.dtype import uint16 as uint16
from ember_ml._core.dtype import uint32 as uint32
from ember_ml._core.dtype import uint64 as uint64
from ember_ml.ops import fft as fft
from ember_ml.ops import linalg as linalg
from ember_ml.ops import linearalg as linearalg
from ember_ml.ops import nn as nn
from ember_ml.ops import random as random
from ember_ml.ops import signal as signal
from ember_ml.ops import stats as stats
from ember_ml.ops.bitwise import *
from ember_ml.ops.comparison import *
from ember_ml.ops.complex_numbers import *
from ember_ml.ops.contraction import *
from ember_ml.ops.control_flow import *
from ember_ml.ops.counting import *
from ember_ml.ops.creation import *
from ember_ml.ops.cumulative import *
from ember_ml.ops.devices import *
from ember_ml.ops.dtypes import *
from ember_ml.ops.elementwise import *
from ember_ml.ops.exponential import *
from ember_ml.ops.floating import *
from ember_ml.ops.gradients import *
from ember_ml.ops.indexing import *
from ember_ml.ops.info import *
from ember_ml.ops.info import __array_api_version__ as __array_api_version__
from ember_ml.ops.info import __array_namespace_info__ as __array_namespace_info__
from ember_ml.ops.joining import *
from ember_ml.ops.linear_attention import *
from ember_ml.ops.linearalg import cholesky as cholesky
from ember_ml.ops.linearalg import det as det
from ember_ml.ops.linearalg import diag as diag
from ember_ml.ops.linearalg import diag_embed as diag_embed
from ember_ml.ops.linearalg import diagonal as diagonal
from ember_ml.ops.linearalg import eig as eig
from ember_ml.ops.linearalg import eigh as eigh
from ember_ml.ops.linearalg import eigvals as eigvals
from ember_ml.ops.linearalg import inv as inv
from ember_ml.ops.linearalg import lstsq as lstsq
from ember_ml.ops.linearalg import norm as norm
from ember_ml.ops.linearalg import pinv as pinv
from ember_ml.ops.linearalg import qr as qr
from ember_ml.ops.linearalg import slogdet as slogdet
from ember_ml.ops.linearalg import solve as solve
from ember_ml.ops.linearalg import svd as svd
from ember_ml.ops.linearalg import trace as trace
from ember_ml.ops.manipulation import *
from ember_ml.ops.nan_reduction import *
from ember_ml.ops.nn.activations import *
from ember_ml.ops.nn.attention import *
from ember_ml.ops.nn.classification import *
from ember_ml.ops.nn.ctc import *
from ember_ml.ops.nn.gating import *
from ember_ml.ops.nn.losses import *
from ember_ml.ops.nn.normalization import *
from ember_ml.ops.nn.positions import *
from ember_ml.ops.nn.probabilities import *
from ember_ml.ops.nn.projection import *
from ember_ml.ops.nn.quantization import *
from ember_ml.ops.nn.recurrent import *
from ember_ml.ops.nn.regularization import *
from ember_ml.ops.nn.spiking import *
from ember_ml.ops.padding import *
from ember_ml.ops.quantiles import *
from ember_ml.ops.recurrence import *
from ember_ml.ops.reduction import *
from ember_ml.ops.rounding import *
from ember_ml.ops.scatter import *
from ember_ml.ops.selective_scan import *
from ember_ml.ops.sets import *
from ember_ml.ops.signal.convolution import *
from ember_ml.ops.signal.filtering import *
from ember_ml.ops.signal.framing import *
from ember_ml.ops.signal.long_convolution import *
from ember_ml.ops.signal.pooling import *
from ember_ml.ops.signal.resizing import *
from ember_ml.ops.signal.spectra import *
from ember_ml.ops.signal.transposed import *
from ember_ml.ops.signal.windows import *
from ember_ml.ops.slicing import *
from ember_ml.ops.sorting import *
from ember_ml.ops.special import *
from ember_ml.ops.trigonometric import *
from ember_ml.ops.vectorize import *

__dir__ = _namespaces.without_files(
    __name__, "fft", "linalg", "linearalg", "nn", "random", "signal", "stats"
)
