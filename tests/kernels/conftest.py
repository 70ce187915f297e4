"""Numbers of the Triton kernels in Triton's interpreter; `make kernels` runs these tests.

Without TRITON_INTERPRET=1, the interpreter is not available and nothing is collected here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

if os.environ.get("TRITON_INTERPRET") != "1":
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def uninitialized_memory_is_nan() -> Iterator[None]:
    """Fill the results of `torch.empty` with NaN: every element must be written."""
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(0)
    yield
    torch.use_deterministic_algorithms(False)
