"""Detection of NaN and infinite losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ember_ml import ops
from ember_ml._core.errors import EmberError
from ember_ml._core.tensor import Tensor


class NonFiniteError(EmberError, FloatingPointError):
    """Raised when the loss is NaN or infinite.

    Attributes:
        step: Number of the step.
        parameters: Names of the parameters whose values, or gradients, are not finite.
    """

    def __init__(self, step: int, loss: float, parameters: Sequence[str], where: str) -> None:
        self.step = step
        self.parameters = list(parameters)
        nonfinite = f"{where} of {_listed(self.parameters)}" if self.parameters else "no parameter"
        super().__init__(
            f"the loss is {loss} at step {step}; not finite: {nonfinite}. A lower learning rate, "
            "clip_norm=1.0 or a look at the batch may help"
        )


def _listed(names: list[str]) -> str:
    """Return the first names and the number of others."""
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def not_finite(tensors: Mapping[str, Tensor]) -> list[str]:
    """Return the names of the tensors with NaN or infinite elements."""
    return [name for name, x in tensors.items() if not bool(ops.isfinite(x).all())]


def explain(
    step: int, loss: float, parameters: Mapping[str, Tensor], gradients: Mapping[str, Tensor]
) -> NonFiniteError:
    """Return the error for a loss, which names the parameters or gradients that are not finite."""
    names = not_finite(parameters)
    if names:
        return NonFiniteError(step, loss, names, "the values")
    return NonFiniteError(step, loss, not_finite(gradients), "the gradients")
