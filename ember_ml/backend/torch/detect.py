"""Detection of the PyTorch backend."""

from __future__ import annotations


def detect() -> tuple[int, str, str]:
    """Return (rank among the backends, device, reason)."""
    import torch

    if torch.cuda.is_available():
        return 100, "cuda", f"PyTorch sees the CUDA device {torch.cuda.get_device_name()}"
    if torch.backends.mps.is_available():
        return 80, "mps", "PyTorch sees Apple's Metal"
    return 70, "cpu", "PyTorch is installed, without an accelerator"
