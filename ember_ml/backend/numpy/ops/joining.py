"""Tensors put together and taken apart."""

from numpy import concatenate as concat  # noqa: F401
from numpy import stack as stack
