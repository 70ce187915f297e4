"""Decoders: spikes or voltages of a sequence to one number per neuron."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.sequence_mixing.base import mask_padding, real_lengths
from ember_ml.registry import register


class Decoder(Layer):
    """Layer that reduces the time axis: (batch, time, features) -> (batch, features).

    Subclasses implement `decode`.
    """

    def decode(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the reduced sequence; the arguments are those of `forward`."""
        raise NotImplementedError

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return one number per neuron, (batch, features).

        Args:
            x: Spikes or voltages, (batch, time, features), at least one position long.
            mask: Padding mask, (batch, time), False for padding, which is ignored.
        """
        self.check_tensor(x)
        if x.ndim != 3 or not x.shape[1]:
            raise ShapeError(
                f"{type(self).__name__}: expected an input of shape (batch, time, features) with "
                f"at least one position, got {x.shape}"
            )
        if mask is not None and mask.shape != x.shape[:2]:
            raise ShapeError(
                f"{type(self).__name__}: expected a mask of shape (batch, time) = {x.shape[:2]}, "
                f"got {mask.shape}"
            )
        return self.decode(x, mask)


@register("layers/rate_decoder")
class RateDecoder(Decoder):
    """Rate code: the number of spikes of each neuron, per step unless `count`.

    Args:
        count: Whether to return counts instead of rates. Default: False.

    Shape: (batch, time, features) -> (batch, features).

    Example:
        >>> nn.layers.RateDecoder()(ops.array([[[1.0, 0.0], [1.0, 1.0]]])).tolist()
        [[1.0, 0.5]]
    """

    def __init__(self, count: bool = False) -> None:
        self.count = count

    def decode(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the rates or counts; see `forward`."""
        total = ops.sum(mask_padding(x, mask), axis=1)
        if self.count:
            return total
        if mask is None:
            return total / x.shape[1]
        return total / ops.cast(ops.maximum(real_lengths(mask), 1), x.dtype)[:, None]


@register("layers/latency_decoder")
class LatencyDecoder(Decoder):
    r"""Latency code: 1 for a spike in the first step, falling to 0 for a neuron that does not fire.

    .. math:: y = \frac{1}{T} \Big( T - \sum_t \prod_{s \le t} (1 - z_s) \Big)

    The product form has gradients, so that a network learns to fire earlier.

    Shape: (batch, time, features) -> (batch, features).

    Example:
        >>> nn.layers.LatencyDecoder()(ops.array([[[1.0, 0.0], [1.0, 1.0]]])).tolist()
        [[1.0, 0.5]]
    """

    def decode(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return how early neurons fire; see `forward`."""
        silent = ops.ones_like(x[:, 0])
        waited = ops.zeros_like(silent)
        for at, z in enumerate(ops.unstack(mask_padding(x, mask), 1)):
            silent = silent * (1.0 - z)
            waited = waited + (
                silent
                if mask is None
                else mask_padding(silent[:, None], mask[:, at : at + 1])[:, 0]
            )
        if mask is None:
            return 1.0 - waited / x.shape[1]
        return 1.0 - waited / ops.cast(ops.maximum(real_lengths(mask), 1), x.dtype)[:, None]


@register("layers/max_decoder")
class MaxDecoder(Decoder):
    """Largest voltage over time, the usual read-out of `LeakyIntegrator`.

    Shape: (batch, time, features) -> (batch, features).

    Example:
        >>> nn.layers.MaxDecoder()(ops.array([[[1.0, -3.0], [2.0, -1.0]]])).tolist()
        [[2.0, -1.0]]
    """

    def decode(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the largest values; see `forward`."""
        if mask is not None:
            low = ops.finfo(x.dtype).min
            x = ops.where(ops.astype(mask, bool_)[:, :, None], x, low)
        return ops.max(x, axis=1)
