"""Whether modules behave as in training or as in use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.nn.module import Module


@contextlib.contextmanager
def in_use(modules: Iterable[Module]) -> Iterator[None]:
    """Have modules behave as in use within the block, and as before after it.

    Args:
        modules: such as `model.modules()`; whoever does it often keeps the list.
    """
    changed = [module for module in modules if module.training]
    for module in changed:
        module.training = False
    try:
        yield
    finally:
        for module in changed:
            module.training = True
