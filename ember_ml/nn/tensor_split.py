"""How a layer is split among processes that compute it together (tensor parallelism).

A layer that can be split describes it in `Module.tensor_split`; `ember_ml.distributed` divides the
layer and connects the parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ember_ml._core.tensor import Tensor
from ember_ml.nn.splitting import Split


class Region:
    """Part of a layer that each process computes with its own parameters; here, of one process.

    Gradients inside the region are those of one process: they are summed where values enter it.

    Attributes:
        size: Number of processes.
    """

    size: int = 1

    def enter(self, x: Tensor) -> Tensor:
        """Return a value that all processes have, for use in the region."""
        return x

    def leave(self, x: Tensor) -> Tensor:
        """Return the sum of the processes' values, for use outside of the region."""
        return x

    def total(self, x: Tensor) -> Tensor:
        """Return the sum of the processes' values, for use in the region."""
        return self.enter(self.leave(x))

    def join(self, x: Tensor) -> Tensor:
        """Return the processes' values, joined along the last axis, for use outside."""
        return x


WHOLE = Region()
"""The region of a layer that is not split."""


@dataclass(frozen=True)
class TensorSplit:
    """How a layer is split.

    Names are relative to the layer. A parameter that is None, such as a bias, is ignored.

    Args:
        splits: Name of a parameter or buffer -> how it divides.
        sizes: Attributes to divide by the number of processes, such as "num_heads"; those that
            errors name come first.
        enter: Modules whose first argument enters the region. Their gradients are summed.
        leave: Modules whose output is the process's term of a sum.
        total: Modules inside the region whose output is the process's term of a sum.
        join: Modules whose output is the process's part of the last axis.
        once: Biases that each process adds to its term of a sum; the sum has them once.
        shared: Parameters, or modules with parameters, that each process has whole and uses in the
            region. Their gradients are summed.
        regions: Modules whose code calls their `region`; "" is the layer.
        offsets: Attribute -> size: the attribute becomes the index of the process's first part of
            that size, such as the first head.
        is_optional: Whether a layer whose sizes are not divisible is replicated. Default: False,
            an error.
    """

    splits: Mapping[str, Split]
    sizes: tuple[str, ...] = ()
    enter: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    join: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    offsets: Mapping[str, str] = field(default_factory=dict)
    is_optional: bool = False


def split_between(
    columns: Mapping[str, Split] | tuple[str, ...],
    row: str,
    *,
    sizes: tuple[str, ...] = (),
    splits: Mapping[str, Split] | None = None,
    total: tuple[str, ...] = (),
    shared: tuple[str, ...] = (),
    regions: tuple[str, ...] = (),
    offsets: Mapping[str, str] | None = None,
) -> TensorSplit:
    """Return the split of a layer between dense layers: the first by output, the last by input.

    Args:
        columns: Dense layers that read the input, by name -> how their outputs divide; or their
            names, if the outputs divide evenly.
        row: Dense layer that computes the output.
        sizes: As in `TensorSplit`.
        splits: Further parameters and buffers -> how they divide.
        total: As in `TensorSplit`.
        shared: As in `TensorSplit`.
        regions: As in `TensorSplit`.
        offsets: As in `TensorSplit`.
    """
    outputs = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, Split(0))
    dense = {f"{name}.{part}": x for name, x in outputs.items() for part in ("weight", "bias")}
    return TensorSplit(
        {**dense, f"{row}.weight": Split(1), **(splits or {})},
        sizes,
        enter=tuple(outputs),
        leave=(row,),
        total=total,
        once=(f"{row}.bias",),
        shared=shared,
        regions=regions,
        offsets=offsets or {},
    )
