"""The gradient tape for MLX alone.

The tape itself is one for all backends and stands above them, so it is fetched when it is asked
for.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name != "MLXGradientTape":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    tape = importlib.import_module("ember_ml.autodiff").GradientTape
    globals()[name] = type(name, (tape,), {"only_backend": "mlx", "__doc__": tape.__doc__})
    return globals()[name]
