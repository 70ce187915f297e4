"""The tensor class, its dtypes, and functions that create tensors."""

from ember_ml._core.tensor import Tensor as Tensor
from ember_ml._core.tensor import TensorLike as TensorLike
from ember_ml._core.types import DTypeLike as DTypeLike
from ember_ml.nn.tensor.common import *  # noqa: F403
from ember_ml.nn.tensor.common.dtypes import *  # noqa: F403
