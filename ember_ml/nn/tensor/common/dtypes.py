"""The dtypes, and conversion from and to names and dtypes of other libraries."""

from __future__ import annotations

from typing import TypeAlias

from ember_ml._core.convert import as_dtype
from ember_ml._core.dtype import EmberDType as EmberDType
from ember_ml._core.dtype import bfloat16 as bfloat16
from ember_ml._core.dtype import bool_ as bool_
from ember_ml._core.dtype import complex64 as complex64
from ember_ml._core.dtype import complex128 as complex128
from ember_ml._core.dtype import float16 as float16
from ember_ml._core.dtype import float32 as float32
from ember_ml._core.dtype import float64 as float64
from ember_ml._core.dtype import from_name
from ember_ml._core.dtype import int8 as int8
from ember_ml._core.dtype import int16 as int16
from ember_ml._core.dtype import int32 as int32
from ember_ml._core.dtype import int64 as int64
from ember_ml._core.dtype import uint8 as uint8
from ember_ml._core.dtype import uint16 as uint16
from ember_ml._core.dtype import uint32 as uint32
from ember_ml._core.dtype import uint64 as uint64
from ember_ml._core.tensor import DTypeLike

DType: TypeAlias = EmberDType


def dtype(value: DTypeLike) -> EmberDType:
    """Return the dtype for a name, a Python type or a dtype of any framework."""
    return as_dtype(value)


get_dtype = dtype


def to_dtype_str(value: DTypeLike) -> str:
    """Return the name of a dtype."""
    return as_dtype(value).name


def from_dtype_str(name: str) -> EmberDType:
    """Return the dtype with a name."""
    return from_name(name)
