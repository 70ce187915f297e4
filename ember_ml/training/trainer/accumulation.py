"""Mean of the gradients of several batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, native_arrays
from ember_ml.nn.parameter import Parameter
from ember_ml.training.optimizer.plan import kernels
from ember_ml.training.trainer.gradients import SUM, Gradients


class Accumulation:
    """Weighted mean of the losses and gradients of the batches of one step.

    The weight of a batch is the number of its targets, or the sum of their weights, as in the mean
    over one large batch. Losses that are sums are added instead.

    Attributes:
        count: Number of batches, including those that were left out.
        used: Number of batches in the mean.
        loss: Mean loss.
        terms: Means of the named losses.
        gradients: Mean gradients.
        left_out_loss: Loss of the last batch that was left out.
    """

    def __init__(self) -> None:
        self.count = 0
        self.used = 0
        self.loss = 0.0
        self.terms: dict[str, float] = {}
        self.gradients: Gradients = []
        self.left_out_loss = 0.0
        self._weight = 0.0

    def leave_out(self, loss: float) -> None:
        """Count a batch without using it.

        Args:
            loss: Loss of the batch.
        """
        self.count += 1
        self.left_out_loss = loss

    def discard(self) -> None:
        """Discard the batches so far."""
        self.used, self.loss, self.gradients, self._weight = 0, 0.0, [], 0.0
        self.terms = {}

    def add(
        self, loss: float, gradients: Gradients, weight: float, terms: Mapping[str, float]
    ) -> None:
        """Add a batch.

        Args:
            loss: Mean loss of the batch.
            gradients: Its gradients.
            weight: Its weight; `SUM` if the loss is a sum.
            terms: Its named losses.
        """
        if weight < 0.0 and weight != SUM:
            raise ArgumentError(
                f"Trainer: the weights of a batch sum to {weight}; weights must not be negative"
            )
        self.count += 1
        self.used += 1
        if weight == SUM:
            self.loss += loss
            for name, value in terms.items():
                self.terms[name] = self.terms.get(name, 0.0) + value
            self._combine(gradients, None)
            return
        self._weight += weight
        share = weight / self._weight if self._weight else 0.0
        self.loss += (loss - self.loss) * share
        for name, value in terms.items():
            before = self.terms.get(name, 0.0)
            self.terms[name] = before + (value - before) * share
        self._combine(gradients, share)

    def _combine(self, gradients: Gradients, share: float | None) -> None:
        """Move the gradients towards others by a share; None: add them."""
        if not self.gradients:
            self.gradients = _copies(gradients)
            return
        new: Gradients = [b if a is None else a for a, b in self._pairs(gradients)]
        both = [
            at for at, (a, b) in enumerate(self._pairs(gradients)) if not (a is None or b is None)
        ]
        mine = [x for at in both if (x := self.gradients[at]) is not None]
        others = [x for at in both if (x := gradients[at]) is not None]
        backend = mine[0].backend
        k = kernels(backend)
        first, second = native_arrays(mine), native_arrays(others)
        mixed = k.add_(first, second) if share is None else k.lerp_(first, second, share)
        for at, array in zip(both, mixed, strict=True):
            new[at] = Tensor.from_native(array, backend)
        self.gradients = new

    def _pairs(self, gradients: Gradients) -> list[tuple[Tensor | None, Tensor | None]]:
        return list(zip(self.gradients, gradients, strict=True))

    def arrays(self) -> list[Any]:
        """Return the native arrays of the gradients."""
        return native_arrays([x for x in self.gradients if x is not None])

    def state_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        return {
            "count": self.count,
            "used": self.used,
            "loss": self.loss,
            "terms": self.terms,
            "weight": self._weight,
        }

    def load_state_dict(
        self,
        state: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        parameters: Mapping[str, Parameter],
    ) -> None:
        """Restore a saved state.

        Args:
            state: Result of `state_dict`.
            tensors: Gradients by parameter name.
            parameters: Parameters by name, in the order of their gradients.
        """
        self.count, self.used = int(state["count"]), int(state["used"])
        self.loss, self._weight = float(state["loss"]), float(state["weight"])
        self.terms = dict(state.get("terms", {}))
        self.gradients = [
            convert_to_tensor(tensors[name], device=p.device, backend=p.backend, copy=True)
            if name in tensors
            else None
            for name, p in parameters.items()
        ]
        if all(x is None for x in self.gradients):
            self.gradients = []


def _copies(gradients: Gradients) -> Gradients:
    """Return copies, which later batches may overwrite: gradients may share their memory."""
    return [None if x is None else convert_to_tensor(x, copy=True) for x in gradients]
