"""Exponentials, logarithms and roots, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import cbrt as cbrt
from numpy import exp as exp
from numpy import exp2 as exp2
from numpy import expm1 as expm1
from numpy import log as log
from numpy import log1p as log1p
from numpy import log2 as log2
from numpy import log10 as log10
from numpy import logaddexp as logaddexp
from numpy import logaddexp2 as logaddexp2
from numpy import sqrt as sqrt


def rsqrt(x: Any) -> Any:
    return np.reciprocal(np.sqrt(x))


RIGHT_SCALARS = LEFT_SCALARS = {"logaddexp": logaddexp, "logaddexp2": logaddexp2}
