"""What several rules need."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import EmberTensor


def conj(x: Any) -> Any:
    """The conjugate; of a real tensor or a number that is not complex, itself."""
    if isinstance(x, EmberTensor):
        return ops.conj(x) if "complex" in x._tag else x
    return x.conjugate() if type(x) is complex else x
