"""The contract of a backend: what its folder offers, checked by mypy in each backend.

A backend is a package `ember_ml/backend/<name>/` and a row in `selection.BACKENDS`:

    __init__.py         the members of `Backend`
    autodiff.py         the members of `Autodiff`; `GraphAutodiff` or `ReplayAutodiff` by engine
    optimization.py     the members of `Optimization`
    memory.py           the members of `Memory`
    profiling.py        the members of `Profiling`
    detect.py           `detect() -> (rank, device, reason)`, for the automatic selection
    ops/                native functions in files of the names in `ember_ml/ops`, with `Variants`
    ops/random/native.py    the members of `Random`

The arrays and dtypes are the framework's own. A native function of a composite op may return None:
the op's body then computes the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

Array: TypeAlias = Any
"""Array of the framework."""
DType: TypeAlias = Any
"""Dtype object of the framework."""
HostArray: TypeAlias = Any
"""NumPy array."""

if TYPE_CHECKING:
    Native: TypeAlias = Callable[..., Any]
    """Function of native arrays."""
    ArrayFunction: TypeAlias = Callable[..., list[Array]]
    """Function of arrays, one argument each, that returns a list of arrays."""
    ValueAndGrad: TypeAlias = Callable[
        [Callable[..., tuple[Array, list[Array]]], Sequence[Array]],
        tuple[Array, list[Array], list[Array]],
    ]
    Vjp: TypeAlias = Callable[
        [ArrayFunction, Sequence[Array]],
        tuple[Sequence[Array], Callable[[list[Array]], Sequence[Array]]],
    ]
    Jvp: TypeAlias = Callable[
        [ArrayFunction, Sequence[Array], Sequence[Array]],
        tuple[Sequence[Array], Sequence[Array]] | None,
    ]
    Vmap: TypeAlias = Callable[
        [ArrayFunction, Sequence[int | None], Sequence[Array]], Sequence[Array]
    ]
    Pullback: TypeAlias = Callable[[Sequence[Array], Sequence[Array], bool], Sequence[Array]]
    CustomVjp: TypeAlias = Callable[[ArrayFunction, Pullback, Sequence[Array]], Sequence[Array]]
    Checkpoint: TypeAlias = Callable[[ArrayFunction, Sequence[Array]], Sequence[Array]]
    Compile: TypeAlias = Callable[..., Callable[..., Any]]
    ScanStep: TypeAlias = Callable[
        [Sequence[Array], Sequence[Array]], tuple[Sequence[Array], Sequence[Array]]
    ]
    Scan: TypeAlias = Callable[
        [ScanStep, Sequence[Array], Sequence[Array], int, bool],
        tuple[Sequence[Array], Sequence[Array]] | None,
    ]


class Variants(NamedTuple):
    """Native functions for special operands, by op name: the `VARIANTS` of a file in `ops/`.

    Args:
        by_dtype: Dtype name -> function, which replaces the op's function for that dtype.
        right_scalars: Function (array, number) of a binary op. Ops without one get an array.
        left_scalars: Function (number, array) of a binary op.
    """

    by_dtype: Mapping[str, Mapping[str, Native]] = {}
    right_scalars: Mapping[str, Native] = {}
    left_scalars: Mapping[str, Native] = {}


class Random(Protocol):
    """State of a backend's own generator; the draws are ops (`ember_ml.ops.random.native`)."""

    @property
    def seed(self) -> Callable[[int], object]:
        """Restart the generator from a seed."""

    def get_state(self) -> Any:
        """Return the state as a tree that JSON can hold."""

    def set_state(self, state: Any) -> None:
        """Restore a state from `get_state`."""


class Autodiff(Protocol):
    """What the framework offers for gradients, batching and compilation.

    A transform that the framework lacks is None: the frontend then uses its own. A function that
    returns None for a call (`jvp`, `scan`) leaves that call to the frontend.
    """

    @property
    def ENGINE(self) -> Literal["graph", "replay", "rules"]:  # noqa: N802
        """How a tape computes gradients.

        By the framework's graph, by a replay of the recorded program in the framework's `vjp`, or
        by the VJP rules of the ops.
        """

    WITHOUT_GRADIENT: frozenset[str]
    """Ops that the framework cannot differentiate; they get the VJP rules of the ops."""
    COMPILE_UNAVAILABLE: str
    """Reason why functions cannot be compiled; empty if they can."""
    COMPILES_QUICKLY: bool
    """Whether compilation is fast enough to be done by default."""
    CHECKPOINT_SEES_CLOSURES: bool
    """Whether gradients reach the values that a checkpointed function closes over."""

    def gradient_depth(self) -> int:
        """Return the number of gradients that this thread is computing, one inside the other.

        0 if compiled functions need not know.
        """

    def differentiates_by_rules(self) -> bool:
        """Return whether the VJP rules of the ops must compute a gradient that starts here.

        True inside a transform of a framework whose transforms cannot be nested.
        """

    def is_batching(self) -> bool:
        """Return whether functions close over arrays without their batch axis here.

        True inside a `vmap` that replaces the arrays after the function has run.
        """

    @property
    def value_and_grad(self) -> ValueAndGrad | None:
        """(function, primals) -> (value, others, gradients); function returns (value, others)."""

    @property
    def vjp(self) -> Vjp | None:
        """(function, primals) -> (outputs, function from cotangents to gradients)."""

    @property
    def jvp(self) -> Jvp | None:
        """(function, primals, tangents) -> (outputs, output tangents)."""

    @property
    def vmap(self) -> Vmap | None:
        """(function, axes, arrays) -> outputs, batched along axis 0."""

    @property
    def custom_vjp(self) -> CustomVjp | None:
        """(forward, pullback, primals) -> outputs with pullback(primals, cotangents, rerun).

        `rerun` says that the pullback must not reuse values of the forward pass.
        """

    @property
    def checkpoint(self) -> Checkpoint | None:
        """(function, arrays) -> outputs; the gradient recomputes the values in between."""

    @property
    def compile(self) -> Compile | None:
        """(function, trusted=False, **options) -> compiled function.

        `trusted` says that the function depends on its arguments alone, so that nothing else needs
        to be checked at each call.
        """

    @property
    def scan(self) -> Scan | None:
        """(step, carry, xs, length, reverse) -> (last carry, ys); xs and ys along axis 0.

        For frameworks that would otherwise compile every step of a loop; called only where no tape
        records.
        """

    def evaluate(self, arrays: Sequence[Array]) -> None:
        """Evaluate the arrays if the framework is lazy."""

    def is_compiling(self) -> bool:
        """Return whether a compiler that cannot compile locks is tracing the caller."""

    def is_tracing_error(self, error: BaseException) -> bool:
        """Return whether the error says that an op cannot run under `vmap` or `compile`."""


class GraphAutodiff(Autodiff, Protocol):
    """`Autodiff` of a framework whose arrays carry the graph (`ENGINE = "graph"`)."""

    def leaf(self, data: Array) -> Array:
        """Return the value as the root of a new graph, or as a node of the graph it is in."""

    def detach(self, data: Array) -> Array:
        """Return the value without its graph."""

    def has_graph(self, data: Array) -> bool:
        """Return whether a gradient can flow through the array."""

    def keep_graph(self) -> None:
        """Keep the graph of the current gradient: an open tape may differentiate it again."""

    def is_transforming(self) -> bool:
        """Return whether this thread is inside a transform where arrays cannot carry a graph."""

    def is_nested(self) -> bool:
        """Return whether this thread is inside a gradient or transform, which owns the graph."""

    def gradient(
        self,
        outputs: Sequence[Array],
        inputs: Sequence[Array],
        cotangents: Sequence[Array],
        retain: bool = False,
        create: bool = False,
        batched: bool = False,
    ) -> Sequence[Array | None]:
        """Return the gradients of the inputs; None for inputs that the outputs do not depend on.

        Args:
            outputs: Differentiated arrays.
            inputs: Arrays whose gradients are returned.
            cotangents: Gradients of the outputs.
            retain: Whether to keep the graph for another call.
            create: Whether to record the gradients, for second derivatives.
            batched: Whether the cotangents have a leading batch axis.
        """


class ReplayAutodiff(Autodiff, Protocol):
    """`Autodiff` of a framework that differentiates functions (`ENGINE = "replay"`)."""

    @property
    def compile(self) -> Compile:
        """(function, **options) -> compiled function."""

    def run_vjp(
        self, function: ArrayFunction, primals: Sequence[Array], cotangents: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        """Return the outputs and the gradients of the primals."""

    def attach_vjp(
        self, function: Native, pullback: Callable[[Sequence[Array], Any, Any], Sequence[Array]]
    ) -> Native:
        """Return the function with the gradients pullback(primals, cotangents, outputs)."""


class MemoryChange(NamedTuple):
    """Change of the memory in use, during a part of a recorded computation."""

    mark: str
    """Mark at the end of the part; empty if there is none."""
    change: int
    """Allocated bytes minus freed bytes."""
    peak: int
    """Largest growth since the start of the part, at least 0."""


class MemoryRecorder(Protocol):
    """Record of the memory that a computation allocates and frees."""

    changes: list[MemoryChange]
    """The changes in order, after the end of the recording."""

    def mark(self, name: str) -> None:
        """Mark a place in the recording."""

    def restart(self) -> None:
        """Forget the changes so far; what was allocated since the start may be freed later."""


class Memory(Protocol):
    """A backend's `memory.py`: counts of the framework's allocator."""

    SEES_MARKS: bool
    """Whether changes are known between marks; not if results are computed later."""
    SEES_ALLOCATIONS: bool
    """Whether each allocation is a change of its own."""

    def record(self) -> AbstractContextManager[MemoryRecorder]:
        """Return a context that records the memory in use, in this thread."""

    def keep_freed(self) -> None:
        """Let the allocator keep the memory of freed arrays for later ones."""


class BackwardTimer(Protocol):
    """Receiver of the times of the backward pass of a call."""

    def start(self) -> None:
        """Start to measure."""

    def stop(self) -> None:
        """Add the time since `start`."""

    def add(self, seconds: float) -> None:
        """Add a time that was measured separately from the backward pass."""


class BackwardObserver(Protocol):
    """Measures the backward passes of calls during one training step."""

    def follow(
        self,
        native: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        out: Any,
        timer: BackwardTimer,
    ) -> None:
        """Measure the backward pass of a call that has just been computed.

        Args:
            native: Native function.
            args: Its arguments.
            kwargs: Its keyword arguments.
            out: Its result.
            timer: Receives the times.
        """


class Profiling(Protocol):
    """A backend's `profiling.py`: how calls are measured."""

    METHOD: str
    """How calls and their backward passes are measured, as sentences for reports."""

    @property
    def observer(self) -> Callable[[], BackwardObserver] | None:
        """Return an observer for one step; None if VJP rules compute the backward pass."""

    def wait(self, out: Any) -> None:
        """Wait until a result of an op is computed; nested sequences are allowed."""

    def untracked(self) -> AbstractContextManager[Any]:
        """Return a context in which calls do not become a part of the framework's graph."""


class Backend(Protocol):
    """Module of a backend, as the frontend sees it."""

    @property
    def autodiff(self) -> Autodiff:
        """Gradients, batching and compilation."""

    @property
    def optimization(self) -> Optimization:
        """Arithmetic on lists of arrays, for optimizers."""

    @property
    def memory(self) -> Memory:
        """Counts of the allocator."""

    @property
    def profiling(self) -> Profiling:
        """Measurement of calls."""

    @property
    def random(self) -> Random:
        """State of the backend's own random generator."""

    @property
    def ARRAY(self) -> type:  # noqa: N802
        """Class of the arrays, for isinstance; it may be abstract."""

    IS_LAZY: bool
    """Whether arrays are computed only when their values are read."""
    IS_HOST: bool
    """Whether raw arrays of the framework are plain data that follows the other operands."""
    DTYPES: dict[str, Any]
    """Name -> native dtype. Dtypes that the framework lacks are missing."""
    version: str
    """Version of the framework."""

    @property
    def read_plain(self) -> Callable[[Array, Any], Array]:
        """(array, key) -> array[key], for a key of ints, slices, None and Ellipsis.

        It raises any exception for an invalid key, and for one that the framework reads
        differently from NumPy; the frontend then checks the key and calls `getitem`.
        """

    def devices(self) -> list[str]:
        """Return the devices, the default first."""

    def device_of(self, data: Array) -> str:
        """Return the device of the array."""

    def to_device(self, data: Array, device: str) -> Array:
        """Return the array on another device."""

    def adopt(self, data: Array) -> Array:
        """Return a handle on a user's array that no other tensor has."""

    def read_array(
        self, fill: Callable[[memoryview], object], count: int, dtype: DType, device: str
    ) -> Array:
        """Return a new 1-D array whose bytes `fill` provides, in one or several calls.

        Args:
            fill: Fills a writable buffer with the next bytes.
            count: Number of elements.
            dtype: Dtype of the elements.
            device: Device of the array.
        """

    def from_host(self, array: HostArray, dtype: DType, device: str, copy: bool | None) -> Array:
        """Return an array with the values of a NumPy array.

        Args:
            array: Values.
            dtype: Native dtype of the result.
            device: Device of the result.
            copy: True always copies, False never does and raises if it has to, None as needed.
        """

    def to_host(self, data: Array) -> HostArray:
        """Return a NumPy array, sharing memory where possible."""

    def to_portable(self, data: Array) -> HostArray:
        """Return a NumPy array of a dtype that holds every value exactly."""

    def from_backend(self, source: Backend, data: Array, dtype: DType, device: str) -> Array:
        """Return an array with the values of another backend's array."""

    def scalar(self, value: complex, dtype: DType, device: str) -> Array:
        """Return a 0-d array."""

    def cast(self, data: Array, dtype: DType) -> Array:
        """Return the array in another dtype."""

    def copy(self, data: Array) -> Array:
        """Return a copy that shares no memory."""

    def overwrite(self, data: Array, update: Array, axis: int, start: int | Array) -> Array:
        """Return the array with a slice replaced; the memory of the array may be reused.

        Args:
            data: Array that the caller does not use again.
            update: New values, of the shape of the array but for one axis.
            axis: Axis along which the update is shorter.
            start: First place of the update along the axis: a number, or an array of shape (1,)
                for an update of length 1.
        """

    def item(self, data: Array) -> Any:
        """Return the only element as a Python number."""

    def truth(self, data: Array) -> bool | None:
        """Return whether the only element is true; None if it has no value yet, while tracing."""

    def tolist(self, data: Array) -> Any:
        """Return nested lists of Python numbers."""

    def to_dlpack(
        self, data: Array, stream: Any, max_version: Any, dl_device: Any, copy: bool | None
    ) -> object:
        """Return the DLPack capsule of the array."""

    def from_dlpack(self, source: Any, copy: bool | None) -> Array:
        """Return an array from an object with `__dlpack__`."""

    def synchronize(self) -> None:
        """Wait for pending work."""

    def wait(self, data: Array) -> None:
        """Wait until the array is computed."""

    def memory_usage(self) -> dict[str, int]:
        """Return the bytes in use on the device, as far as the framework counts them."""


Arrays: TypeAlias = Sequence[Array]
STATE_BLOCK = 256
"""Number of elements of optimizer state in 8 bits that share a scale."""
StepNumber: TypeAlias = float | Array
"""A number of an optimizer's step; a 0-d array while a compiler traces the step."""


class Optimization(Protocol):
    """A backend's `optimization.py`: arithmetic on lists of arrays, for optimizers.

    Each function returns a list with one result for each array of its lists. A function whose name
    ends in "_" may overwrite the arrays of its first list.
    """

    CHUNK_BYTES: int | None
    """Maximum size of the parameters that one call updates; None: no limit."""

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a compiled function of (params, grads, state, values), or the function itself."""

    def fused(self, name: str, values: Sequence[StepNumber]) -> Callable[..., Any] | None:
        """Return a kernel (params, grads, state, options, values) for a whole update, or None."""

    def shapes(self, xs: Arrays) -> list[tuple[int, ...]]:
        """Return the shapes, in a form that can be compared."""

    def epsilon(self, xs: Arrays) -> float:
        """Return the machine epsilon of the first array's dtype."""

    def full(self, like: Array, shape: tuple[int, ...], value: float, dtype: str) -> Array:
        """Return a constant array on the device of `like`."""

    def copy(self, xs: Arrays) -> list[Array]:
        """Return copies that share no memory with `xs`."""

    def own(self, xs: Arrays) -> list[Array]:
        """Return arrays that may be overwritten: copies if their memory is shared."""

    def cast(self, xs: Arrays, dtype: str) -> list[Array]:
        """Return the arrays in a dtype; those that have it already are returned as they are."""

    def scale(self, xs: Arrays, factor: StepNumber) -> list[Array]:
        """Return factor * x."""

    def scale_(self, xs: Arrays, factor: StepNumber) -> list[Array]:
        """Return factor * x."""

    def scale_each_(self, xs: Arrays, factors: Sequence[float]) -> list[Array]:
        """Return factor * x, with one factor for each array."""

    def shift_(self, xs: Arrays, amount: float) -> list[Array]:
        """Return x + amount."""

    def add(self, xs: Arrays, ys: Arrays, factor: StepNumber = 1.0) -> list[Array]:
        """Return x + factor * y."""

    def add_(self, xs: Arrays, ys: Arrays, factor: StepNumber = 1.0) -> list[Array]:
        """Return x + factor * y."""

    def multiply_(self, xs: Arrays, ys: Arrays) -> list[Array]:
        """Return x * y; y may be 0-d."""

    def divide(self, xs: Arrays, ys: Arrays) -> list[Array]:
        """Return x / y; y may be 0-d."""

    def divide_(self, xs: Arrays, ys: Arrays) -> list[Array]:
        """Return x / y; y may be 0-d."""

    def lerp_(self, xs: Arrays, ys: Arrays, weight: StepNumber) -> list[Array]:
        """Return x + weight * (y - x)."""

    def addcmul_(self, xs: Arrays, ys: Arrays, zs: Arrays, factor: float) -> list[Array]:
        """Return x + factor * y * z."""

    def addcdiv_(self, xs: Arrays, ys: Arrays, zs: Arrays, factor: StepNumber) -> list[Array]:
        """Return x + factor * y / z."""

    def maximum_(self, xs: Arrays, ys: Arrays) -> list[Array]:
        """Return the elementwise maximum."""

    def clamp_(
        self, xs: Arrays, low: float | None = None, high: float | None = None
    ) -> list[Array]:
        """Return x limited to [low, high]."""

    def sqrt(self, xs: Arrays) -> list[Array]:
        """Return the square roots."""

    def sign_(self, xs: Arrays) -> list[Array]:
        """Return the signs."""

    def norms(self, xs: Arrays) -> list[Array]:
        """Return the Euclidean norm of each array, 0-d."""

    def root_mean_square(self, xs: Arrays) -> list[Array]:
        """Return the root mean square of each array, 0-d."""

    def global_norm(self, xs: Arrays) -> Array:
        """Return the Euclidean norm of all arrays together, 0-d."""

    def norm_parts(self, xs: Arrays) -> list[Array]:
        """Return arrays from which `read_norm` reads the Euclidean norm of all arrays together."""

    def read_norm(self, parts: Arrays) -> float:
        """Return the norm as a number; the parts are evaluated."""

    def clip_factor(self, norm: Array, most: float) -> Array:
        """Return min(1, most / norm), 0-d."""

    def scale_by(self, xs: Arrays, factor: Array | float) -> list[Array]:
        """Return factor * x in the dtype of x; the factor is a number or a 0-d array."""

    def trust_ratios(self, xs: Arrays, ys: Arrays) -> list[Array]:
        """Return x / y of 0-d arrays; 1 where one of them is zero."""

    def mean_squares(self, xs: Arrays, axis: int) -> list[Array]:
        """Return the mean of the squares along an axis, with keepdims."""

    def means(self, xs: Arrays, axis: int) -> list[Array]:
        """Return the mean along an axis, with keepdims."""

    def matmul(self, xs: Arrays, ys: Arrays) -> list[Array]:
        """Return the matrix products."""

    def addmm(self, xs: Arrays, ys: Arrays, zs: Arrays, scale: float, factor: float) -> list[Array]:
        """Return scale * x + factor * (y @ z)."""

    def transpose(self, xs: Arrays) -> list[Array]:
        """Return the transposed matrices."""

    def encode_state(self, xs: Arrays, like: Arrays) -> tuple[list[Array], list[Array]]:
        """Return 8-bit codes, in rows of STATE_BLOCK elements, and the scale of each row.

        The scale s is the maximum magnitude. Of signed codes, an element x is stored as
        127 sign(x) sqrt(|x| / s); of unsigned ones as 255 (x / s)^(1/4), at least 1 if x is not 0.

        Args:
            xs: float32 arrays.
            like: Arrays of the dtype of the codes, int8 or uint8.
        """

    def decode_state(
        self, codes: Arrays, scales: Arrays, shapes: Sequence[tuple[int, ...]]
    ) -> list[Array]:
        """Return new float32 arrays of the given shapes from codes and scales."""


class Group(Protocol):
    """Processes that communicate, and the place of this one among them."""

    @property
    def rank(self) -> int:
        """Number of this process in the group."""

    @property
    def size(self) -> int:
        """Number of processes."""


class Topology(Protocol):
    """The groups of a mesh."""

    @property
    def groups(self) -> Mapping[str, Any]:
        """The groups of this process by axis; "data" shares batches, "world" has all processes."""


class Distributed(Protocol):
    """Communication between processes, of backends that have it."""

    AXES: tuple[str, ...]
    """Mesh axes that the backend has, the slowest first; empty without communication."""
    COMBINES_AXES: bool
    """Whether several axes may be longer than 1."""
    MODULES: str | None
    """Module that wraps models for the axes that need it; None if gradients are averaged."""
    LAUNCHER: str | None
    """Module that starts processes, a `Launcher`; None if the backend trains in one process."""

    def start(self, rank: int, size: int, local_rank: int, timeout: float) -> str:
        """Join the other processes, and return the device of this one."""

    def stop(self) -> None:
        """Leave the other processes."""

    def store(self) -> Any:
        """Return the key-value store of all processes; None if there is none."""

    def is_connection_error(self, error: Exception) -> bool:
        """Return whether an error comes from the connection to other processes."""

    def connect(self, sizes: Mapping[str, int], device: str, timeout: float) -> Any:
        """Return the `Topology` of a mesh with these lengths of its axes."""

    def all_sum(self, x: Array, group: Any) -> Array:
        """Return the sum of the arrays of all processes; no gradient flows."""

    def all_gather(self, x: Array, group: Any) -> list[Array]:
        """Return the arrays of all processes, of one shape; no gradient flows."""

    def broadcast(self, x: Array, source: int, group: Any) -> Array:
        """Return the array of one process of the group."""

    def barrier(self, group: Any) -> None:
        """Wait for all processes of the group."""

    def mean_gradients(self, gradients: Sequence[Array], group: Any) -> list[Array]:
        """Return the means of the gradients of all processes."""

    def reduce(self, x: Array, group: Any) -> Array:
        """Return the sum over the group; gradients pass unchanged."""

    def spread(self, x: Array, group: Any) -> Array:
        """Return the value, which is the same in each process; gradients are summed."""

    def gather(self, x: Array, group: Any, axis: int) -> Array:
        """Return the parts of all processes, joined along an axis; gradients are sliced."""


class Launcher(Protocol):
    """Starts the processes of a job, of backends that have communication."""

    RESTARTS: bool
    """Whether it restarts all processes after one of them has failed."""
    MACHINES: bool
    """Whether it starts the processes of several machines, if each runs it."""

    def count_devices(self) -> int:
        """Return the number of processes that this machine has devices for."""

    def run(
        self, command: Sequence[str], nproc: int, nnodes: str, endpoint: str | None, restarts: int
    ) -> tuple[int, str]:
        """Run a command in each process; return the exit code and the reason of a failure."""
