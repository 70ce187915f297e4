"""All processes of a run: their groups, and what they tell each other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from ember_ml._core import recording, runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.namespaces import import_module
from ember_ml._core.tensor import Tensor, wrap
from ember_ml.backend.interface import Distributed
from ember_ml.distributed.environment import Environment, read_environment
from ember_ml.distributed.errors import DistributedError
from ember_ml.distributed.mesh import AXES, Mesh
from ember_ml.distributed.watch import Watch, watch_of

TIMEOUT = 600.0
"""Seconds that a process waits for another one."""


def capabilities(backend: str) -> tuple[str, ...]:
    """Return the mesh axes that a backend has: some of "pp", "dp", "fsdp" and "tp".

    Args:
        backend: Name of the backend.

    Example:
        >>> from ember_ml.distributed import capabilities
        >>> capabilities("numpy")
        ()
    """
    return tuple(_engine(backend).AXES)


def _engine(backend: str) -> Distributed:
    module: Any = runtime.load(backend)
    engine: Any = import_module(f"{module.__name__}.distributed")
    return cast("Distributed", engine)


class Group:
    """Processes that communicate, and collectives on their tensors.

    Args:
        engine: Collectives of the backend.
        native: The backend's group.
        backend: Name of the backend.
        watch: Explains errors of collectives; None if this process is alone.
    """

    def __init__(
        self, engine: Distributed, native: Any, backend: str, watch: Watch | None = None
    ) -> None:
        self._engine: Any = engine if watch is None else _Watched(engine, watch)
        self._backend = backend
        self.native = native
        self.rank: int = native.rank
        self.size: int = native.size

    def __repr__(self) -> str:
        return f"Group({self.rank} of {self.size})"

    def all_sum(self, x: Tensor) -> Tensor:
        """Return the sum of the tensors of all processes, without a gradient."""
        if self.size == 1:
            return x
        return wrap(self._engine.all_sum(x.native, self.native), self._backend)

    def all_gather(self, x: Tensor) -> list[Tensor]:
        """Return the tensors of all processes, of one shape, without a gradient."""
        if self.size == 1:
            return [x]
        parts = self._engine.all_gather(x.native, self.native)
        return [wrap(part, self._backend) for part in parts]

    def broadcast(self, x: Tensor, source: int = 0) -> Tensor:
        """Return the tensor of one process."""
        if self.size == 1:
            return x
        return wrap(self._engine.broadcast(x.native, source, self.native), self._backend)

    def mean_gradients(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Return the means of the gradients of all processes."""
        if self.size == 1:
            return list(gradients)
        natives = [x.native for x in gradients]
        means = self._engine.mean_gradients(natives, self.native)
        return [wrap(x, self._backend) for x in means]

    def reduce(self, x: Tensor) -> Tensor:
        """Return the sum over the processes; the gradient passes unchanged."""
        if self.size == 1:
            return x
        _check_tapes()
        return wrap(self._engine.reduce(x.native, self.native), self._backend)

    def spread(self, x: Tensor) -> Tensor:
        """Return a value that is the same in each process; its gradients are summed."""
        if self.size == 1:
            return x
        _check_tapes()
        return wrap(self._engine.spread(x.native, self.native), self._backend)

    def gather(self, x: Tensor, axis: int) -> Tensor:
        """Return the parts of all processes, joined; each part has its slice of the gradient."""
        if self.size == 1:
            return x
        _check_tapes()
        return wrap(self._engine.gather(x.native, self.native, axis), self._backend)

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.size > 1:
            self._engine.barrier(self.native)

    def sums(self, values: Sequence[float]) -> list[float]:
        """Return the sums of numbers over the processes, in the precision of the backend.

        Args:
            values: The numbers of this process.
        """
        if self.size == 1:
            return list(values)
        dtype = "float64" if "float64" in runtime.LOADED[self._backend].DTYPES else "float32"
        total = self.all_sum(convert_to_tensor(list(values), dtype=dtype, backend=self._backend))
        return [float(x) for x in total.tolist()]

    def exchange(self, data: Any) -> list[Any]:
        """Return the plain data of all processes.

        Args:
            data: Anything that JSON has.
        """
        if self.size == 1:
            return [data]
        content = json.dumps(data).encode()
        lengths = [int(x) for x in self._gathered_integers([len(content)])]
        padded = list(content.ljust(max(lengths), b" "))
        rows = self.all_gather(convert_to_tensor(padded, dtype="uint8", backend=self._backend))
        return [
            json.loads(bytes(row.tolist())[:length])
            for row, length in zip(rows, lengths, strict=True)
        ]

    def _gathered_integers(self, values: list[int]) -> list[int]:
        rows = self.all_gather(convert_to_tensor(values, dtype="int64", backend=self._backend))
        return [x for row in rows for x in row.tolist()]


class _Watched:
    """The collectives of a backend; a watch knows which one runs, and explains its errors."""

    def __init__(self, engine: Distributed, watch: Watch) -> None:
        for name in _COLLECTIVES:
            setattr(self, name, _watched(name, getattr(engine, name), watch))


_COLLECTIVES = (
    *("all_sum", "all_gather", "broadcast", "barrier", "mean_gradients"),
    *("reduce", "spread", "gather"),
)


def _watched(name: str, collective: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with watch.during(name):
            return collective(*args)

    return run


def _check_tapes() -> None:
    """Raise an error if a tape is open, which would lose the gradient of a collective."""
    if recording.tapes():
        raise DistributedError(
            "GradientTape does not record communication between processes; use the Trainer, "
            "nn.value_and_grad or autodiff.value_and_grad"
        )


class World:
    """All processes of a run, in a mesh.

    Args:
        mesh: The mesh.
        backend: Name of the backend that trains.
        timeout: Seconds that a process waits for another one.
        environment: Place of this process. Default: read from the environment variables.

    Attributes:
        mesh: The mesh, with all axes known.
        environment: Place of this process among the others.
        device: Device of this process.
        topology: The backend's mesh and groups.
    """

    def __init__(
        self,
        mesh: Mesh,
        backend: str,
        timeout: float = TIMEOUT,
        environment: Environment | None = None,
    ) -> None:
        self.environment = environment or read_environment()
        self.mesh = mesh.on(self.environment.size)
        self.backend = backend
        self.timeout = timeout
        self._engine = _engine(backend)
        _check_axes(self.mesh, backend, self._engine)
        place = self.environment
        if place.size > 1:
            try:
                self.device = self._engine.start(place.rank, place.size, place.local_rank, timeout)
            except (RuntimeError, ValueError) as error:
                raise DistributedError(
                    f"process {place.rank} of {place.size} ({place.launcher}) could not join the "
                    f"others: {error}"
                ) from error
            self.topology = self._engine.connect(self.mesh.sizes(), self.device, timeout)
            self._watch = watch_of(
                place.rank, place.size, self._engine.is_connection_error, self._engine.store
            )

    def group(self, name: str) -> Group:
        """Return the group of an axis: "dp", "fsdp", "tp", "pp", "data" or "world"."""
        if self.environment.size == 1:
            return Group(self._engine, _Alone(), self.backend)
        return Group(self._engine, self.topology.groups[name], self.backend, self._watch)

    @property
    def watch(self) -> Watch | None:
        """What explains which process hangs or has ended; None if this process is alone."""
        return self._watch if self.environment.size > 1 else None

    @property
    def modules(self) -> Any:
        """What wraps models for training by several processes; None if the backend has none."""
        name = self._engine.MODULES
        return None if name is None else import_module(name)

    @property
    def store(self) -> Any:
        """Key-value store of all processes; None if the backend has none."""
        return self._engine.store() if self.environment.size > 1 else None

    def check_same(self, what: str, data: Any) -> None:
        """Raise an error if plain data differs between processes.

        Args:
            what: Name of the data in the error.
            data: Anything that JSON has.
        """
        everyone = self.group("world").exchange(data)
        for rank, other in enumerate(everyone):
            if other != everyone[0]:
                raise DistributedError(
                    f"{what} differs between processes: {_difference(everyone[0], other)} "
                    f"(process 0 and process {rank}); all processes must run the same code with "
                    "the same config"
                )


class _Alone:
    rank = 0
    size = 1


def _check_axes(mesh: Mesh, backend: str, engine: Distributed) -> None:
    """Raise an error if a backend lacks an axis of the mesh."""
    used = [axis for axis in AXES if mesh.sizes()[axis] > 1]
    lacking = [axis for axis in used if axis not in engine.AXES]
    if lacking:
        known = ", ".join(engine.AXES) or "none: it trains in one process"
        raise DistributedError(
            f"the backend {backend} has no mesh axis {lacking[0]!r}; its axes are {known}. Train "
            "on the torch backend, or change the mesh"
        )
    if len(used) > 1 and not engine.COMBINES_AXES:
        raise DistributedError(
            f"the backend {backend} has one mesh axis at a time, not {' x '.join(used)}; use one "
            "of them, or the torch backend"
        )


def _difference(first: Any, second: Any, name: str = "") -> str:
    """Return the first place where two trees of plain data differ, with both values."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys((*first, *second)):
            if first.get(key, math.nan) != second.get(key, math.nan):
                below = f"{name}.{key}" if name else str(key)
                return _difference(first.get(key, "nothing"), second.get(key, "nothing"), below)
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for at, (x, y) in enumerate(zip(first, second, strict=True)):
            if x != y:
                return _difference(x, y, f"{name}[{at}]")
    return f"{name or 'it'} is {first!r:.100} and {second!r:.100}"
