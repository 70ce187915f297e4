"""First values of parameters, the same to the bit on every backend for one seed."""

from ember_ml.nn.initializers.base import Initializer as Initializer
from ember_ml.nn.initializers.base import get as get
from ember_ml.nn.initializers.fixed import Constant as Constant
from ember_ml.nn.initializers.fixed import Identity as Identity
from ember_ml.nn.initializers.fixed import Ones as Ones
from ember_ml.nn.initializers.fixed import Zeros as Zeros
from ember_ml.nn.initializers.matrices import Orthogonal as Orthogonal
from ember_ml.nn.initializers.matrices import Sparse as Sparse
from ember_ml.nn.initializers.noise import Normal as Normal
from ember_ml.nn.initializers.noise import TruncatedNormal as TruncatedNormal
from ember_ml.nn.initializers.noise import Uniform as Uniform
from ember_ml.nn.initializers.scaled import Glorot as Glorot
from ember_ml.nn.initializers.scaled import He as He
from ember_ml.nn.initializers.scaled import Lecun as Lecun
