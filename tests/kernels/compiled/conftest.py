"""Compilation of the Triton kernels ahead of time; `make kernels` runs these tests.

Triton's interpreter replaces the compiler: nothing is collected here with TRITON_INTERPRET=1, nor
without Triton.
"""

from __future__ import annotations

import importlib.util
import os

if os.environ.get("TRITON_INTERPRET") == "1" or importlib.util.find_spec("triton") is None:
    collect_ignore_glob = ["test_*.py"]
