"""The gradients of a batch, compiled where that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ember_ml import autodiff, ops
from ember_ml._core import recording, runtime, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor, Tensor, wrap
from ember_ml.nn.functional import standing_in, values_of
from ember_ml.nn.parameter import Buffer, Parameter

Compute = Callable[[Any], tuple[Tensor, Any]]


class Found(NamedTuple):
    """What a batch gives."""

    loss: Tensor
    outputs: Any
    gradients: list[Tensor]
    buffers: list[Tensor]


class Gradients:
    """The loss of a batch and its gradients for some parameters.

    Args:
        compute: batch -> (loss, outputs), through the model.
        parameters: what to differentiate for.
        buffers: what the model may change as it runs.
        precision: the dtype in which the model computes.
        compiled: whether the framework compiles it.
    """

    def __init__(
        self,
        compute: Compute,
        parameters: Sequence[Parameter],
        buffers: Sequence[Buffer],
        precision: str = "float32",
        compiled: bool = False,
    ) -> None:
        self._compute = compute
        self._parameters = list(parameters)
        self._buffers = list(buffers)
        self._precision = precision
        self._compiled = compiled
        self._variants: dict[Any, Any] = {}

    def __call__(self, batch: Any, scale: float | None = None) -> Found:
        """The loss, the outputs, the gradients times `scale`, and what the buffers became."""
        values, buffers = values_of(self._parameters), values_of(self._buffers)
        if not self._compiled or recording.tapes():
            return self._find(values, buffers, batch, scale)
        return self._run_compiled(values, buffers, batch, scale)

    def _find(self, values: list[Tensor], buffers: list[Tensor], batch: Any, scale: Any) -> Found:
        batch = self._cast_nest(batch)

        def run(values: list[Tensor]) -> tuple[Tensor, Any]:
            cast = [self._cast(x) for x in values]
            with standing_in(self._buffers, buffers), standing_in(self._parameters, cast):
                loss, outputs = self._compute(batch)
                loss = ops.astype(loss, "float32") if self._precision != "float32" else loss
                scaled = loss if scale is None else loss * scale
                return scaled, (loss, outputs, values_of(self._buffers))

        (_, (loss, outputs, changed)), found = autodiff.value_and_grad(run, has_aux=True)(values)
        return Found(loss, outputs, found, changed)

    def _cast(self, x: Tensor) -> Tensor:
        wrong = self._precision != "float32" and x.dtype.kind == "float"
        return ops.astype(x, self._precision) if wrong else x

    def _cast_nest(self, batch: Any) -> Any:
        if self._precision == "float32":
            return batch
        return tree.map_leaves(
            lambda leaf: self._cast(leaf) if isinstance(leaf, EmberTensor) else leaf, batch
        )

    def _run_compiled(
        self, values: list[Tensor], buffers: list[Tensor], batch: Any, scale: float | None
    ) -> Found:
        leaves, structure = tree.flatten(batch)
        backend = values[0]._backend
        key = (
            structure,
            scale is None,
            tuple((x._tag, x.shape) if isinstance(x, EmberTensor) else x for x in leaves),
            tuple(x._tag for x in values),
        )
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants[key] = self._compile(backend, structure, leaves)
        run, result = variant
        arrays = [x._data for x in (*values, *buffers, *_tensors(leaves))]
        if scale is not None:  # an array: it changes, and the compiled code must not
            arrays.append(convert_to_tensor(scale, dtype="float32", backend=backend)._data)
        outputs = iter([wrap(data, backend) for data in run(*arrays)])
        nest, static = result[0]
        rest = [next(outputs) if leaf is _TENSOR else leaf for leaf in static]
        return Found(*tree.unflatten(nest, rest))

    def _compile(self, backend: str, structure: tree.Structure, leaves: list[Any]) -> Any:
        """The function of arrays, and a place for the structure of its results."""
        result: list[Any] = [None]
        static = [_TENSOR if isinstance(leaf, EmberTensor) else leaf for leaf in leaves]
        first, second = len(self._parameters), len(self._parameters) + len(self._buffers)

        def run(*arrays: Any) -> list[Any]:
            tensors = [wrap(data, backend) for data in arrays]
            given = iter(tensors[second:])
            batch = tree.unflatten(structure, [next(given) if x is _TENSOR else x for x in static])
            scale = next(given, None)
            found = self._find(tensors[:first], tensors[first:second], batch, scale)
            parts, nest = tree.flatten(tuple(found))
            result[0] = nest, [_TENSOR if isinstance(x, EmberTensor) else x for x in parts]
            return [x._data for x in _tensors(parts)]

        return runtime.load(backend).autodiff.compile(run), result


_TENSOR: Any = object()  # stands for a tensor in a structure


def _tensors(leaves: Sequence[Any]) -> list[Tensor]:
    return [leaf for leaf in leaves if isinstance(leaf, EmberTensor)]
