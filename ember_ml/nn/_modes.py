"""Whether modules behave as in training or as in use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.nn.module import Module


@contextlib.contextmanager
def in_use(module: Module) -> Iterator[None]:
    """Have it and all inside of it behave as in use within the block, and as before after it."""
    modes = [(inner, inner.training) for inner in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for inner, training in modes:
            inner.training = training
