"""Networks in the Neuromorphic Intermediate Representation (NIR), read and written."""

from __future__ import annotations

import itertools
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ember_ml._core.errors import EmberError
from ember_ml._core.numbers import positive
from ember_ml._core.requirements import import_optional
from ember_ml.interop.nir_nodes import (
    READ,
    NIRError,
    matrices,
    read_linear,
    read_neuron,
    write_layer,
)
from ember_ml.nn.layers.sequence_mixing.spiking import Spiking
from ember_ml.nn.module import Module
from ember_ml.nn.sequential import Sequential

DT = 1e-4
"""Default duration of a step in seconds, that of snnTorch."""
_NEURONS = ("LIF", "IF", "CubaLIF", "LI", "I", "Threshold")
_LINEAR = ("Affine", "Linear", "Scale")

Edges = list[tuple[str, str]]


def from_nir(graph: Any, dt: float = DT) -> Sequential:
    """Return a network of a NIR graph or file.

    The graph must be a chain of nodes; neurons may have recurrent synapses. Time constants become
    decays per step: 1 - dt / tau.

    Args:
        graph: A `nir.NIRGraph`, or the path of a file that `nir.write` wrote.
        dt: Duration of a step in the unit of the graph's time constants, seconds.
            Default: 0.0001.

    Raises:
        NIRError: A file is missing or damaged, or a node or a connection has no equivalent.
    """
    _check_dt("from_nir", dt)
    if isinstance(graph, (str, PathLike)):
        graph = _read_file(graph)
    if type(graph).__name__ != "NIRGraph":
        raise NIRError(
            f"from_nir: expected a nir.NIRGraph or the path of a file, got {graph!r:.60}"
        )
    nodes, edges = _flat(graph)
    loops = _loops(nodes, edges)
    chain = [
        edge for edge in edges if edge[0] not in loops.values() and edge[1] not in loops.values()
    ]
    layers: list[Module] = []
    for name in _path(nodes, chain):
        layers += _read(name, nodes, loops, dt)
    return Sequential(*layers)


def to_nir(module: Module, dt: float = DT) -> Any:
    """Return the `nir.NIRGraph` of a network, which `nir.write(path, graph)` writes to a file.

    Args:
        module: A layer, or a `Sequential` of layers: dense layers, neurons with a hard reset, leaky
            integrators and recurrent neurons with delays of one step.
        dt: Duration of a step in seconds, which gives the time constants: tau = dt / (1 - decay).
            Default: 0.0001.

    Raises:
        NIRError: A layer has no equivalent.
    """
    _check_dt("to_nir", dt)
    nir = import_optional("nir", "interop.to_nir")
    layers = _layers(module)
    if not layers:
        raise NIRError("to_nir: the network has no layers")
    nodes = {str(at): write_layer(nir, layer, dt) for at, layer in enumerate(layers)}
    first, last = nodes["0"], nodes[str(len(nodes) - 1)]
    ends = {
        "input": nir.Input(input_type=_only(first.input_type)),
        "output": nir.Output(output_type=_only(last.output_type)),
    }
    names = ["input", *nodes, "output"]
    return nir.NIRGraph(nodes={**ends, **nodes}, edges=list(itertools.pairwise(names)))


def _read_file(path: str | PathLike[str]) -> Any:
    """Return the graph of a file."""
    nir = import_optional("nir", "interop.from_nir")
    if not Path(path).is_file():
        raise NIRError(f"from_nir: there is no file {path}")
    try:
        return nir.read(path)
    except Exception as error:  # a damaged file breaks h5py and nir in many ways
        raise NIRError(
            f"from_nir: {path} is not a NIR file, or it is damaged: {type(error).__name__}: {error}"
        ) from error


def _check_dt(function: str, dt: float) -> None:
    try:
        positive(function, "dt", dt)
    except EmberError as error:
        raise NIRError(str(error)) from None


def _only(types: dict[str, Any]) -> np.ndarray:
    return np.array(next(iter(types.values())))


def _layers(module: Module) -> list[Module]:
    """Return the layers of a network in order."""
    if isinstance(module, Sequential):
        return [layer for part in module for layer in _layers(part)]
    if isinstance(module, Spiking):
        return _layers(module.layer) + _layers(module.neuron)
    return [module]


def _flat(graph: Any, prefix: str = "") -> tuple[dict[str, Any], Edges]:
    """Return the nodes and edges of a graph with those of its subgraphs."""
    nodes: dict[str, Any] = {}
    edges: Edges = []
    ends: dict[str, tuple[str, str]] = {}
    for name, node in graph.nodes.items():
        if type(node).__name__ != "NIRGraph":
            nodes[prefix + name] = node
            continue
        inner, links = _flat(node, f"{prefix}{name}.")
        nodes |= inner
        edges += links
        ends[name] = (
            _the_node(inner, "Input", prefix + name),
            _the_node(inner, "Output", prefix + name),
        )
    for source, target in dict.fromkeys(map(tuple, graph.edges)):
        start = ends[source][1] if source in ends else prefix + source
        edges.append((start, ends[target][0] if target in ends else prefix + target))
    missing = sorted({name for edge in edges for name in edge} - nodes.keys())
    if missing:
        raise NIRError(f"from_nir: the graph has edges of nodes that do not exist: {missing}")
    return nodes, edges


def _the_node(nodes: dict[str, Any], kind: str, graph: str = "") -> str:
    """Return the name of the only node of a kind that is directly in a graph."""
    names = [
        name
        for name, node in nodes.items()
        if type(node).__name__ == kind and name.rpartition(".")[0] == graph
    ]
    if len(names) != 1:
        raise NIRError(
            f"from_nir: {f'the graph {graph!r}' if graph else 'the graph'} must have one {kind} "
            f"node, not {len(names)}"
        )
    return names[0]


def _loops(nodes: dict[str, Any], edges: Edges) -> dict[str, str]:
    """Return the linear node of the recurrent synapses of each recurrent neuron."""
    both = {(a, b) for a, b in edges if (b, a) in edges}
    return {
        a: b
        for a, b in both
        if type(nodes[a]).__name__ in ("LIF", "IF", "CubaLIF")
        and type(nodes[b]).__name__ in ("Affine", "Linear")
    }


def _path(nodes: dict[str, Any], edges: Edges) -> list[str]:
    """Return the names of the nodes from the input to the output."""
    at, names = _the_node(nodes, "Input"), []
    seen = {at}
    while type(nodes[at]).__name__ != "Output" or "." in at:
        following = [target for source, target in edges if source == at]
        incoming = [source for source, target in edges if target == at]
        if len(following) != 1 or len(incoming) > 1 or following[0] in seen:
            raise NIRError(
                f"from_nir: node {at!r} has the inputs {incoming} and the outputs {following}; "
                "only a chain of nodes is supported, with recurrent synapses from a neuron to "
                "itself through one Affine or Linear node"
            )
        at = following[0]
        seen.add(at)
        names.append(at)
    return [name for name in names if type(nodes[name]).__name__ not in ("Input", "Output")]


def _read(name: str, nodes: dict[str, Any], loops: dict[str, str], dt: float) -> list[Module]:
    """Return the layers of a node."""
    node = nodes[name]
    kind = type(node).__name__
    if kind in _NEURONS:
        recurrent = matrices(loops[name], nodes[loops[name]]) if name in loops else None
        return read_neuron(name, node, dt, recurrent)
    if kind in _LINEAR:
        return [read_linear(name, node)]
    if kind == "Flatten":
        shape = next(iter(node.input_type.values()))
        if shape is not None and len(shape) == 1:
            return []  # vectors are flat
        raise NIRError(f"node {name!r} (Flatten): only vectors are supported, not shape {shape}")
    raise NIRError(f"node {name!r} has the type {kind}, which Ember does not read; it reads {READ}")
