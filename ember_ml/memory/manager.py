"""Gradient checkpointing of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor, TensorLike
from ember_ml.autodiff.transforms.checkpointing import checkpoint


def checkpoint_function(fn: Callable[..., Any], *args: Any) -> Any:
    """Return `fn(*args)`; the backward pass computes the values inside fn again.

    Gradients are those of fn, and flow to the arguments and to the tensors that fn closes over.

    Args:
        fn: Function of tensors and trees of tensors.
        args: Its arguments.

    Example:
        >>> from ember_ml.memory import manager
        >>> f = lambda x: manager.checkpoint_function(lambda x: ops.exp(x) * x, x)
        >>> float(ember_ml.autodiff.grad(f)(tensor.array(0.0)))
        1.0
    """
    return checkpoint(fn)(*args)


class GradientCheckpointing:
    """Gradient checkpointing on every backend.

    Example:
        >>> from ember_ml.memory import GradientCheckpointing
        >>> GradientCheckpointing().checkpoint(lambda x: ops.exp(x), [0.0, 0.0]).tolist()
        [1.0, 1.0]
    """

    def checkpoint(self, fn: Callable[..., Any], *args: TensorLike) -> Any:
        """Return `fn(*args)`; the backward pass computes the values inside fn again.

        Args:
            fn: Function of tensors.
            args: Its arguments, which are converted to tensors.
        """
        tensors = [x if isinstance(x, EmberTensor) else convert_to_tensor(x) for x in args]
        return checkpoint_function(fn, *tensors)
