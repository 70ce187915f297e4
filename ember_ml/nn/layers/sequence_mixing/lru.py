"""The linear recurrent unit."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dtype import bool_, complex_of
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Fraction, NonNegative, Probability, Size
from ember_ml.nn.initializers import Normal, Uniform
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, mask_padding, new_zeros
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


@register("layers/lru")
class LRU(SequenceMixer):
    r"""Linear recurrent unit: a diagonal complex recurrence with eigenvalues in the unit disk.

    .. math::
        h_t = \lambda \odot h_{t-1} + \gamma \odot B x_t, \qquad
        y_t = \mathrm{Re}(C h_t) + D \odot x_t

    with lambda = exp(-exp(nu) + i exp(theta)); gamma is initialized to sqrt(1 - abs(lambda)^2).

    Args:
        features: Number of input and output features.
        d_state: Number of complex states. Default: `features`.
        r_min: Smallest initial absolute value of lambda, less than `r_max`. Default: 0.
        r_max: Largest initial absolute value of lambda, at most 1. Default: 1.
        max_phase: Largest initial phase of lambda, in radians. Default: 6.283.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/lru", features=4)(ops.ones((2, 5, 4))).shape
        (2, 5, 4)

    Reference: Orvieto et al., "Resurrecting Recurrent Neural Networks for Long Sequences", 2023.
    """

    def __init__(
        self,
        features: Size,
        d_state: Size | None = None,
        r_min: Probability = 0.0,
        r_max: Fraction = 1.0,
        max_phase: NonNegative = 6.283,
    ) -> None:
        if r_min >= r_max:
            raise ArgumentError(f"LRU: r_min ({r_min}) must be less than r_max ({r_max})")
        self.features = features
        self.d_state = d_state = d_state or features
        # uniform in the ring; clipped because the logarithms at its borders are not finite
        square = ops.clip(Uniform(r_min**2, r_max**2)((d_state,)), 1e-8, 1.0 - 1e-6)
        phase = Uniform(0.0, max_phase)((d_state,))
        self.nu = Parameter(ops.log(-0.5 * ops.log(square)), decay=False)
        self.theta = Parameter(ops.log(ops.maximum(phase, 1e-8)), decay=False)
        self.gamma_log = Parameter(0.5 * ops.log(1.0 - square), decay=False)
        self.write = Parameter(Normal(0.0, (2 * features) ** -0.5)((2, d_state, features)))
        self.read = Parameter(Normal(0.0, d_state**-0.5)((2, features, d_state)))
        self.skip = Parameter(Normal(0.0, 1.0)((features,)), decay=False)

    @property
    def state_size(self) -> int:
        """Number of real values in the state of one example."""
        return 2 * self.d_state

    def _eigenvalues(self) -> Tensor:
        """Return lambda."""
        nu, theta = (upcast_half(v) for v in (self.nu, self.theta))
        size, angle = ops.exp(-ops.exp(nu)), ops.exp(theta)
        return _complex(size * ops.cos(angle), size * ops.sin(angle))

    def _update(self, x: Tensor) -> Tensor:
        """Return gamma B x."""
        scaled = self.write * ops.expand_dims(ops.exp(self.gamma_log), 1)
        flat = ops.linear(x, ops.reshape(scaled, (2 * self.d_state, self.features)))
        real, imag = ops.split(upcast_half(flat), 2, axis=-1)
        return _complex(real, imag)

    def _read_out(self, h: Tensor, x: Tensor) -> Tensor:
        flat = ops.cast(ops.concat([ops.real(h), -ops.imag(h)], axis=-1), x.dtype)
        weight = ops.concat([self.read[0], self.read[1]], axis=-1)
        return ops.linear(flat, weight) + self.skip * x

    def mix(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Mix the sequence."""
        x = mask_padding(x, mask)
        factors = self._eigenvalues()
        if state is not None and mask is not None:  # a factor of 1 leaves the state unchanged
            factors = ops.where(ops.astype(mask, bool_)[:, :, None], factors, 1.0)
        h, last = ops.linear_recurrence(factors, self._update(x), state)
        return self._read_out(h, x), None if state is None else last

    def initial_state(self, batch: int) -> Tensor:
        """Return the state before the first position: complex zeros."""
        return new_zeros(self.skip, (batch, self.d_state), complex_of(self.skip.dtype))

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        h = self._eigenvalues() * state + self._update(x)
        return self._read_out(h, x), h


def _complex(real: Tensor, imag: Tensor) -> Tensor:
    dtype = complex_of(real.dtype)
    return ops.cast(real, dtype) + 1j * ops.cast(imag, dtype)
