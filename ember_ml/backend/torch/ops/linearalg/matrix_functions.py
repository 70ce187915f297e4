"""Determinants and exponentials."""

from __future__ import annotations

import torch

from ember_ml.backend.torch.ops.linearalg.precision import widened

det = widened(torch.linalg.det)
expm = widened(torch.linalg.matrix_exp)
slogdet = widened(torch.linalg.slogdet)
