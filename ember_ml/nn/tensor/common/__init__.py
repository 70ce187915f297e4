"""The tensor class, and ops that create and reshape tensors."""

from ember_ml._core.convert import convert_to_tensor as convert_to_tensor
from ember_ml._core.tensor import EmberTensor as EmberTensor
from ember_ml.ops import arange as arange
from ember_ml.ops import array as array
from ember_ml.ops import asarray as asarray
from ember_ml.ops import cast as cast
from ember_ml.ops import concatenate as concatenate
from ember_ml.ops import empty as empty
from ember_ml.ops import expand_dims as expand_dims
from ember_ml.ops import eye as eye
from ember_ml.ops import full as full
from ember_ml.ops import full_like as full_like
from ember_ml.ops import linspace as linspace
from ember_ml.ops import ones as ones
from ember_ml.ops import ones_like as ones_like
from ember_ml.ops import reshape as reshape
from ember_ml.ops import split as split
from ember_ml.ops import squeeze as squeeze
from ember_ml.ops import stack as stack
from ember_ml.ops import tile as tile
from ember_ml.ops import transpose as transpose
from ember_ml.ops import zeros as zeros
from ember_ml.ops import zeros_like as zeros_like
