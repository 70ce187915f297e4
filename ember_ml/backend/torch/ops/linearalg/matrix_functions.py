"""Determinants and exponentials."""

from __future__ import annotations

import torch

from ember_ml.backend.torch import determinants
from ember_ml.backend.torch.ops.linearalg.precision import square, widened

det = widened(square(determinants.det))
expm = widened(square(torch.linalg.matrix_exp))
slogdet = widened(square(torch.linalg.slogdet))
