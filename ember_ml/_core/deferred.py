"""Creation of models whose values are then loaded from a file, without initializing them.

Inside `deferred(limit)`, random draws return placeholders: one sample, broadcast to the shape
without memory. Everything else that constructors compute is computed. Values that depend on a
placeholder are placeholders again. The global random generators do not advance.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml._core import recording, runtime, tree
from ember_ml._core.errors import EmberError
from ember_ml._core.op import OPS
from ember_ml._core.tensor import EmberTensor, wrap

if TYPE_CHECKING:
    from ember_ml._core.op import Op
    from ember_ml._core.random_stream import Stream

_SMALL = 4096
"""Maximum number of elements of a stored result that depends on a placeholder."""
_OVERHEAD = 512
"""Minimum number of bytes to count for a draw or a variable, which bounds their number."""
_VARIABLES_PER_TENSOR = 8
_SPARE_VARIABLES = 1000
"""Limit on the number of variables, some of which may be buffers that are not saved."""


class SizeLimitError(EmberError, MemoryError):
    """Values that are larger than the file to load."""


class Deferral:
    """Recorder that replaces random draws by placeholders and bounds what constructors allocate.

    Args:
        limit: Largest size in bytes of a computed value; twice that for all draws and variables.
        tensors: Number of tensors in the file, which bounds the number of variables.
    """

    causal = None
    quick = None

    def __init__(self, limit: int, tensors: int) -> None:
        from ember_ml._core.random_stream import Stream

        self.limit = limit
        self._tensors = tensors
        self._variables_left = _VARIABLES_PER_TENSOR * tensors + _SPARE_VARIABLES
        self._stream = Stream(0)
        self._placeholders: dict[int, EmberTensor] = {}
        self._claimed = 0

    def log_of(self, operands: list[EmberTensor]) -> None:
        """Return None: no values are tracked for gradients."""

    def is_placeholder(self, x: EmberTensor) -> bool:
        """Return whether the value is not the one that the constructor computes."""
        return id(x) in self._placeholders

    def reserve(self, elements: int, what: str) -> None:
        """Raise a SizeLimitError if a value is larger than the limit.

        Args:
            elements: Number of elements, of 4 bytes each.
            what: Description of the value for the error message.
        """
        if 4 * elements > self.limit:
            raise SizeLimitError(f"{what} has {elements:,} elements")

    def reserve_created(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise a SizeLimitError if a creation op would return a tensor larger than the limit.

        Args:
            name: Name of the op.
            args: Its arguments.
            kwargs: Its keyword arguments.
        """
        numbers = [n for n in tree.leaves_of((args, kwargs)) if isinstance(n, (int, float))]
        if name == "arange":
            start, stop, step = (*([0] if len(numbers) == 1 else []), *numbers, 1)[:3]
            elements = int(abs(stop - start) / (abs(step) or 1))
        elif name in ("eye", "tri", "identity"):
            sizes = [n for n in numbers[:2] if isinstance(n, int)]
            elements = math.prod(sizes) if len(sizes) == 2 else sizes[0] ** 2
        elif name in ("zeros", "ones", "empty"):
            shape = kwargs.get("shape", args[0] if args else ())
            elements = math.prod(tree.leaves_of(shape))
        else:  # linspace and its siblings
            elements = max([n for n in numbers if isinstance(n, int)], default=0)
        self.reserve(elements, f"the result of {name}")

    def claim(self, variable: EmberTensor, source: object) -> None:
        """Count a new variable.

        Args:
            variable: The variable.
            source: Value that it was created from.
        """
        self._count(variable.size * variable.dtype.itemsize, f"a variable of {variable.shape}")
        self._variables_left -= 1
        if self._variables_left < 0:
            raise SizeLimitError(
                f"the model has many more variables than the file has tensors ({self._tensors})"
            )
        if isinstance(source, EmberTensor) and self.is_placeholder(source):
            self._placeholders[id(variable)] = variable

    def draw(
        self,
        name: str,
        shape: Any,
        parameters: tuple[Any, ...],
        dtype: str,
        stream: Stream | None,
        *,
        continuous: bool,
    ) -> Any:
        """Return the host array of a random draw, or a single sample of it.

        Args:
            name: Name of the distribution.
            shape: Shape of the draw.
            parameters: Parameters of the distribution.
            dtype: Name of the dtype.
            stream: Stream of an explicit seed. Default: a stream that no other code reads.
            continuous: Whether the distribution is continuous. One sample then replaces the draw,
                unless there is an explicit seed.
        """
        lengths = shape if isinstance(shape, tuple) else (shape,)
        self._count(4 * math.prod(lengths), f"a random draw of shape {lengths}")
        if stream is None and continuous:
            shape = (1,) * len(lengths)
        return getattr(stream or self._stream, name)(shape, *parameters, dtype=dtype)

    def placeholder(self, x: EmberTensor, shape: tuple[int, ...]) -> EmberTensor:
        """Return a sample broadcast to a shape without memory."""
        out: EmberTensor = OPS["manipulation.broadcast_to"].plain(x, shape)
        self._placeholders[id(out)] = out
        return out

    def call(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], tapes: tuple[Any, ...]
    ) -> Any:
        """Compute an op; results that depend on a placeholder are placeholders."""
        operands = [x for x in tree.leaves_of((args, kwargs)) if isinstance(x, EmberTensor)]
        self.reserve(_elements(op, operands, args[1:]), f"the result of {op.label}")
        out = op.plain(*args, **kwargs)
        if not any(self.is_placeholder(x) for x in operands):
            return out
        return tree.map_leaves(self._replaced, out)

    def _replaced(self, x: object) -> object:
        """Replace a result that depends on a placeholder by a placeholder."""
        if not isinstance(x, EmberTensor):
            return x
        if x.size > _SMALL and not runtime.LOADED[x.backend].IS_LAZY:
            module = runtime.LOADED[x.backend]
            first = wrap(module.copy(x.native[(slice(0, 1),) * x.ndim]), x.backend)
            return self.placeholder(first, x.shape)
        self._placeholders[id(x)] = x
        return x

    def _count(self, size: int, what: str) -> None:
        self._claimed += max(size, _OVERHEAD)
        if size > self.limit or self._claimed > 2 * self.limit:
            raise SizeLimitError(f"{what} needs {size:,} bytes")


def _elements(op: Op, operands: Sequence[EmberTensor], rest: tuple[Any, ...]) -> int:
    """Return the number of elements of an op's result, or an upper bound for common ops."""
    shapes = [x.shape for x in operands]
    if op.name in ("outer", "kron"):
        return math.prod(math.prod(shape) for shape in shapes)
    if op.name in ("filled", "tile", "repeat", "pad"):
        counts = [n for n in tree.leaves_of(rest) if isinstance(n, int) and n > 0]
        return math.prod(counts) * sum(math.prod(shape) for shape in shapes)
    if op.name == "matmul" and all(len(shape) > 1 for shape in shapes):
        lead = max(math.prod(shape[:-2]) for shape in shapes)
        return lead * shapes[0][-2] * shapes[-1][-1]
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    if op.kind == "binary":
        return math.prod(max(lengths) for lengths in zip(*padded, strict=True))
    return sum(math.prod(shape) for shape in shapes)


def current() -> Deferral | None:
    """Return the deferral of this thread."""
    for recorder in recording.current():
        if isinstance(recorder, Deferral):
            return recorder
    return None


def reserve(elements: int, what: str) -> None:
    """Raise a SizeLimitError if a value on the host is larger than the file to load allows.

    Constructors call it before they create lists or arrays of a configured length.

    Args:
        elements: Number of elements, of 4 bytes each.
        what: Description for the error message.
    """
    if recording.OPEN and (deferral := current()) is not None:
        deferral.reserve(elements, what)


@contextlib.contextmanager
def deferred(limit: int, tensors: int = 10_000) -> Iterator[Deferral]:
    """Create models with placeholders for random values within the `with` block.

    Args:
        limit: Largest size in bytes of a computed value; twice that for all draws and variables.
        tensors: Number of tensors in the file, which bounds the number of variables.

    Raises:
        SizeLimitError: If a value or all variables need more memory.
    """
    deferral = Deferral(limit, tensors)
    with recording.only(deferral):
        yield deferral
