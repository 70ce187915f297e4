"""The array API standard's name for `ember_ml.ops.linearalg`."""

from ember_ml.ops import linearalg
from ember_ml.ops.linearalg import *  # noqa: F403

__all__ = linearalg.__all__
