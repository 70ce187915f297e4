"""What a backend's module offers, beside its `ops/` folder and `detect.py`.

Arrays and dtypes here are the framework's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Autodiff(Protocol):
    """A backend's `autodiff.py`: what its framework offers for gradients, batching, compilation.

    What a framework does not offer is None: the frontend has a way of its own.
    """

    ENGINE: str
    """"graph" (it records by itself), "replay" (it differentiates functions) or "rules"."""
    WITHOUT_GRADIENT: frozenset[str]
    """Ops that the framework cannot differentiate: their kernels are given the ops' rules."""
    COMPILES: str
    """Why it does not compile; empty if it does."""
    COMPILES_AT_ONCE: bool
    """Whether compiling takes so little time that it is done unasked."""
    CHECKPOINT_SEES_CLOSURES: bool
    """Whether gradients reach what a checkpointed function reads from elsewhere."""
    gradient_depth: Any
    """() -> how many gradients this thread is inside of, where compiled functions mind."""
    value_and_grad: Any
    """(function giving (value, others), primals) -> (value, others, gradients)."""
    vjp: Any
    """(function, primals) -> (outputs, function from cotangents to gradients)."""
    jvp: Any
    """(function, primals, tangents) -> (outputs, changes), or None where an op has no such."""
    vmap: Any
    """(function, axes, arrays) -> outputs along axis 0, or None where an op cannot be batched."""
    custom: Any
    """(forward, pull, primals) -> outputs, with the gradients pull(primals, cotangents, again)."""
    checkpoint: Any
    """(function, arrays) -> outputs, the values in between to be computed again."""
    compile: Any
    """(function, **options) -> the function compiled."""
    settle: Any
    """(arrays) -> None, when they are computed, where a framework puts that off."""


class GraphAutodiff(Autodiff, Protocol):
    """That of a framework whose arrays carry the graph."""

    def leaf(self, data: Any) -> Any:
        """The value at the root of a new graph, or as a node of the graph it is in."""

    def detach(self, data: Any) -> Any:
        """The value without its graph."""

    def has_graph(self, data: Any) -> bool:
        """Whether a gradient can flow through the array."""

    def keep_graph(self) -> None:
        """A tape is open in this thread: what it records may be differentiated more than once."""

    def is_nested(self) -> bool:
        """Whether this thread is inside of a gradient or transform, to which the graph belongs."""

    def gradient(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any],
        cotangents: Sequence[Any],
        retain: bool = False,
        create: bool = False,
        batched: bool = False,
    ) -> Sequence[Any]:
        """The gradients of the inputs, None where there is no path."""


class ReplayAutodiff(Autodiff, Protocol):
    """That of a framework that differentiates functions."""

    def pull(
        self, function: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The outputs and the gradients of the primals."""

    def with_vjp(
        self, function: Callable[..., Any], pull: Callable[..., Any]
    ) -> Callable[..., Any]:
        """The function with a gradient of its own: pull(primals, cotangents, outputs)."""


class Backend(Protocol):
    """A backend, as the frontend sees it."""

    autodiff: Autodiff

    ARRAY: type
    IS_LAZY: bool
    """Whether arrays are computed only when their values are read."""
    IS_HOST: bool
    """Whether this framework's raw arrays are plain data that goes where the other operands are."""
    DTYPES: dict[str, Any]
    """Name -> native dtype, of the dtypes it has."""
    version: str

    def devices(self) -> list[str]:
        """The devices, the default first."""

    def device_of(self, data: Any) -> str:
        """Where the array is."""

    def to_device(self, data: Any, device: str) -> Any:
        """The array on another device."""

    def adopt(self, data: Any) -> Any:
        """A user's array, made fit to be a tensor's."""

    def from_host(self, array: Any, dtype: Any, device: str, copy: bool | None) -> Any:
        """From a NumPy array."""

    def to_host(self, data: Any) -> Any:
        """To a NumPy array."""

    def to_portable(self, data: Any) -> Any:
        """To a NumPy array of a dtype that holds every value exactly."""

    def from_backend(self, source: Backend, data: Any, dtype: Any, device: str) -> Any:
        """From another backend's array."""

    def scalar(self, value: Any, dtype: Any, device: str) -> Any:
        """A 0-d array."""

    def cast(self, data: Any, dtype: Any) -> Any:
        """The array in another dtype."""

    def copy(self, data: Any) -> Any:
        """A copy with memory of its own."""

    def item(self, data: Any) -> Any:
        """The only element, as a Python scalar."""

    def truth(self, data: Any) -> bool | None:
        """Whether the only element is true; None where its value cannot be read, while tracing."""

    def tolist(self, data: Any) -> Any:
        """Nested lists of Python scalars."""

    def to_dlpack(
        self, data: Any, stream: Any, max_version: Any, dl_device: Any, copy: bool | None
    ) -> Any:
        """The array's DLPack capsule."""

    def from_dlpack(self, source: Any, copy: bool | None) -> Any:
        """From anything that speaks DLPack."""

    def synchronize(self) -> None:
        """Wait for pending work."""

    def wait(self, data: Any) -> None:
        """Wait until the array is computed."""

    def memory_usage(self) -> dict[str, int]:
        """Bytes held on the device, as far as the framework keeps account."""
