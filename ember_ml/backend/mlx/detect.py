"""Detection of the MLX backend."""

from __future__ import annotations

import platform


def detect() -> tuple[int, str, str]:
    """Return (rank among the backends, device, reason)."""
    import mlx.core as mx

    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return 90, str(mx.default_device().type).rpartition(".")[2], "MLX on Apple silicon"
    return (
        60,
        str(mx.default_device().type).rpartition(".")[2],
        "MLX is installed, not on Apple silicon",
    )
