"""The causal context of a tape: questions about its ops and its spikes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml._core.types import Tree
from ember_ml.autodiff.causal import reconstruction, traversal
from ember_ml.autodiff.causal.attribution import Method
from ember_ml.autodiff.causal.events import Event
from ember_ml.autodiff.causal.modules import NamedModules
from ember_ml.autodiff.causal.operations import OperationRecord
from ember_ml.autodiff.causal.spikes import causes, cone, loss, paths, rerun, space
from ember_ml.autodiff.causal.spikes.events import Causes, Counterfactual, Related, SpikeEvent
from ember_ml.autodiff.causal.spikes.store import SpikeStore

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped,unused-ignore]
    from matplotlib.axes import Axes

    from ember_ml.autodiff.tape import GradientTape


class CausalContext(OperationRecord):
    """Record of every op and every spike on a tape, with its place, time and causes.

    `GradientTape(causal=True)` fills one, as `tape.causal`. Spiking layers add their spikes, and
    `register_operation` adds ops by hand.

    Args:
        max_events: Maximum number of ops, and of spikes; the oldest are dropped. Default: no limit.

    Attributes:
        events: The recorded ops, the oldest first.
        recording: Whether new events are recorded.
        spike_store: The recorded spikes.

    Example:
        >>> x = tensor.array(2.0)
        >>> with GradientTape(causal=True) as tape:
        ...     tape.watch(x)
        ...     tape.causal.register_tensor(x, name="x")
        ...     y = ops.exp(x * x)
        >>> [event.operation for event in tape.causal.ancestors(y)]
        ['exponential.exp', 'elementwise.multiply']
    """

    def __init__(self, max_events: int | None = None) -> None:
        self.spike_store = SpikeStore(max_events)
        self._tape: weakref.ref[GradientTape] | None = None
        self._losses: list[tuple[Tensor, loss.LossInfluence]] = []
        super().__init__(max_events)

    def attach(self, tape: GradientTape) -> None:
        """Set the tape that computes the gradients of `influence_on`."""
        self._tape = weakref.ref(tape)

    def clear(self) -> None:
        """Discard all events, spikes, names and positions."""
        super().clear()
        self.spike_store = SpikeStore(self.spike_store.max_events)
        self._losses.clear()

    def register_module(self, module: NamedModules) -> None:
        """Record the path of the running module with each op, and name its spiking layers by it.

        Hooks of the modules do so until the `with` block of the tape ends.

        Args:
            module: The module, whose submodules are named as in `named_modules`.
        """
        self.paths.register(module)

    def name_run(self, layer: object) -> str:
        """Return the name of a new run: the path of the layer, with a number if it ran before."""
        name = layer if isinstance(layer, str) else self.paths.name(layer)
        return self.spike_store.unique_name(name)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the spiking layers that ran, the first one first; "<name>:2" is a second run."""
        return tuple(self.spike_store.runs)

    def spikes(
        self, layer: str | None = None, batch: int | None = None, neuron: int | None = None
    ) -> list[SpikeEvent]:
        """Return the recorded spikes, in the order of time.

        Args:
            layer: Name of a layer. Default: all.
            batch: Row of the batch. Default: all.
            neuron: Index of a neuron. Default: all.
        """
        return list(self.spike_store.spikes(layer, batch, neuron))

    def causes(self, event: SpikeEvent, top: int | None = 5) -> Causes:
        """Return what made a neuron spike: the signed contributions to its voltage.

        Args:
            event: The spike.
            top: Maximum number of spikes to list; None for all. The sum includes all.
        """
        return causes.causes(self.spike_store, event, top)

    @overload
    def influence(self, a: SpikeEvent, b: SpikeEvent) -> float: ...

    @overload
    def influence(
        self,
        a: Tensor | Event,
        b: Tensor | Event,
        *,
        method: Method,
        output: int | tuple[int, ...] | None = None,
        axis: int | Sequence[int] | None = None,
        baseline: TensorLike | None = None,
        steps: int = 32,
    ) -> Tensor: ...

    def influence(
        self,
        a: SpikeEvent | Tensor | Event,
        b: SpikeEvent | Tensor | Event,
        *,
        method: Method | None = None,
        output: int | tuple[int, ...] | None = None,
        axis: int | Sequence[int] | None = None,
        baseline: TensorLike | None = None,
        steps: int = 32,
    ) -> float | Tensor:
        """Return the influence of a spike on another one, or of a tensor on a result.

        Between spikes, a synapse has the share |contribution| / sum of all |contributions| of the
        voltage, a path the product of its shares, and the influence is the sum over all paths.

        Args:
            a: The earlier spike; or a recorded tensor, or the op that computed it.
            b: The later spike; or a tensor that depends on `a`, or the op that computed it.
            method: For tensors: "integrated_gradients", whose sum is f(a) - f(baseline), or
                "occlusion", the change if one part of `a` is replaced by the baseline.
            output: For tensors: index of the element of `b`. Default: `b` has one element.
            axis: For tensors: axes of `a` that hold the parts (tokens, heads, experts); the other
                axes are summed or occluded together. Default: every element is a part.
            baseline: For tensors: value that stands for absence. Default: zeros.
            steps: For integrated gradients: number of gradients.

        Returns:
            For spikes a number from 0 to 1; for tensors the influence of each part of `a`.
        """
        if isinstance(a, SpikeEvent) and isinstance(b, SpikeEvent):
            return paths.influence(self.spike_store, a, b)
        return reconstruction.influence(self, a, b, method, output, axis, baseline, steps)

    def influence_on(self, target: Tensor) -> loss.LossInfluence:
        """Return the derivatives of a loss with respect to all recorded spikes.

        The tape computes one backward pass, which uses up a tape that is not persistent. A second
        call for the same loss computes nothing.

        Args:
            target: Recorded loss.
        """
        if not isinstance(target, EmberTensor):
            raise ArgumentTypeError(
                f"influence_on: expected a recorded loss, not {type(target).__name__}"
            )
        for known, result in self._losses:
            if known._data is target._data:
                return result
        tape = None if self._tape is None else self._tape()
        result = loss.influence_on(self.spike_store, tape, target)
        self._losses.append((target, result))
        return result

    @overload
    def ancestors(self, of: Tensor | Event, depth: int | None = None) -> list[Event]: ...

    @overload
    def ancestors(
        self, of: SpikeEvent, depth: int | None = None, min_influence: float = 0.01
    ) -> list[Related]: ...

    def ancestors(
        self,
        of: Tensor | Event | SpikeEvent,
        depth: int | None = None,
        min_influence: float = 0.01,
    ) -> list[Event] | list[Related]:
        """Return what led to a tensor, an op or a spike, itself first, the latest first.

        Args:
            of: Tensor, op or spike.
            depth: Maximum number of steps to go back. Default: no limit.
            min_influence: For a spike: spikes with less influence on it are left out.
        """
        if isinstance(of, SpikeEvent):
            return paths.ancestors(self.spike_store, of, depth, min_influence)
        return traversal.ancestors(self, of, depth)

    @overload
    def descendants(self, of: Tensor | Event, depth: int | None = None) -> list[Event]: ...

    @overload
    def descendants(
        self, of: SpikeEvent, depth: int | None = None, min_influence: float = 0.01
    ) -> list[Related]: ...

    def descendants(
        self,
        of: Tensor | Event | SpikeEvent,
        depth: int | None = None,
        min_influence: float = 0.01,
    ) -> list[Event] | list[Related]:
        """Return what followed from a tensor, an op or a spike, the earliest first.

        Args:
            of: Tensor, op or spike.
            depth: Maximum number of steps to go forward. Default: no limit.
            min_influence: For a spike: spikes that it influences less are left out.
        """
        if isinstance(of, SpikeEvent):
            return paths.descendants(self.spike_store, of, depth, min_influence)
        return traversal.descendants(self, of, depth)

    def but_for(self, a: SpikeEvent, b: SpikeEvent) -> Counterfactual:
        """Return whether a spike occurs if an earlier one is not transmitted, by a rerun.

        The neuron of the removed spike is reset as recorded. Where no other spike changes, the
        voltage changes by minus the contribution of `causes`; `linear` reports whether this holds.

        Args:
            a: The spike to remove, or an input of a layer, which becomes 0.
            b: The spike to ask about.
        """
        return rerun.but_for(self.spike_store, a, b)

    def position(
        self, n: int | SpikeEvent | Tensor | Event, layer: str | None = None
    ) -> tuple[float, ...]:
        """Return the coordinates of a neuron, or of a tensor or an op.

        A tensor has the position that `register_tensor` set, or the mean of those that it was
        computed from.

        Args:
            n: Index of the neuron, or one of its spikes; or a recorded tensor or op.
            layer: Name of the layer, if several ran and `n` is an index.
        """
        if isinstance(n, (EmberTensor, Event)):
            return self.place_of(n)
        return space.position(self.spike_store, n, layer)

    def proximity(
        self,
        a: int | SpikeEvent | Tensor | Event,
        b: int | SpikeEvent | Tensor | Event,
        layer: str | None = None,
    ) -> float:
        """Return the Euclidean distance between two neurons, tensors or ops.

        Args:
            a: As in `position`.
            b: As in `position`.
            layer: Name of the layer, if several ran and the neurons are indices.
        """
        return space.distance(self.position(a, layer), self.position(b, layer))

    def light_cone(
        self, event: SpikeEvent, speed: float | None = None, future: bool = False
    ) -> list[SpikeEvent]:
        """Return the spikes that can have reached a spike in time, whatever their influence.

        Args:
            event: The spike.
            speed: Distance that a signal covers in a step, with positions. Default: signals take
                the shortest path along the delays of the synapses.
            future: Whether to return the spikes that this one can reach instead.
        """
        return cone.light_cone(self.spike_store, event, speed, future)

    @overload
    def reconstruct_graph(self, target: Tensor, sources: Tree[Tensor]) -> Callable[..., Tensor]: ...

    @overload
    def reconstruct_graph(
        self, target: Tensor, sources: Tree[Tensor], *values: Tensor
    ) -> Tensor: ...

    def reconstruct_graph(
        self, target: Tensor, sources: Tree[Tensor], *values: Tensor
    ) -> Tensor | Callable[..., Tensor]:
        """Compute a target again from other values of the sources, by the recorded ops.

        Args:
            target: Recorded result.
            sources: Tensors to replace. All other values stay as recorded.
            values: One value per source.

        Returns:
            The new target; without `values`, a function from the values to the target.
        """
        function = reconstruction.reconstruct(self, target, sources)
        return function(*values) if values else function

    def to_networkx(
        self,
        of: SpikeEvent | None = None,
        *,
        level: Literal["ops", "spikes"] | None = None,
        min_influence: float = 0.0,
    ) -> networkx.DiGraph:
        """Return the graph of causes and effects as a `networkx.DiGraph`, which has no cycles.

        Args:
            of: Only this spike and its ancestors. Default: everything.
            level: "spikes" for spikes and their synapses, "ops" for ops and registered tensors.
                Default: spikes if there are any.
            min_influence: For spikes: edges with a smaller share of the voltage are left out.
        """
        from ember_ml.autodiff.causal import drawing
        from ember_ml.autodiff.causal.spikes import graph

        if level not in (None, "ops", "spikes"):
            raise ArgumentError(f"to_networkx: level must be 'ops' or 'spikes', not {level!r}")
        if level == "ops" or (level is None and of is None and not self.spike_store.runs):
            return drawing.to_networkx(self)
        return graph.to_networkx(self.spike_store, of, min_influence)

    def draw(self, path: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the graph of ops with matplotlib, in columns by depth.

        Args:
            path: File to save the figure to.
            ax: Axes to draw on. Default: new ones.

        Returns:
            The axes.
        """
        from ember_ml.autodiff.causal.drawing import draw

        return draw(self, path, ax)

    def plot_raster(
        self, event: SpikeEvent, path: str | None = None, ax: Axes | None = None, **options: Any
    ) -> Axes:
        """Draw the spikes of a layer over time, and the causes of one of them.

        Args:
            event: The spike.
            path: File to save the figure to.
            ax: Axes to draw on. Default: new ones.
            options: `depth` and `min_influence` of the causes, as in `ancestors`.

        Returns:
            The axes.
        """
        from ember_ml.autodiff.causal.spikes.plots import plot_raster

        return plot_raster(self.spike_store, event, path, ax, **options)

    def plot_space(
        self, event: SpikeEvent, path: str | None = None, ax: Axes | None = None, **options: Any
    ) -> Axes:
        """Draw the neurons of a layer at their positions, and the causes of a spike.

        Args:
            event: The spike.
            path: File to save the figure to.
            ax: Axes to draw on, 3-D for positions of three dimensions. Default: new ones.
            options: `depth` and `min_influence` of the causes, as in `ancestors`.

        Returns:
            The axes.
        """
        from ember_ml.autodiff.causal.spikes.plots import plot_space

        return plot_space(self.spike_store, event, path, ax, **options)
