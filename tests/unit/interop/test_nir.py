"""NIR graphs through the package `nir` and through snnTorch: the same spikes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nir
import numpy as np
import pytest
import torch

from ember_ml import interop, nn
from ember_ml.interop import NIRError
from ember_ml.nn.layers import (
    ALIF,
    LIF,
    Dense,
    FeatureScale,
    LeakyIntegrator,
    RecurrentLIF,
    Spiking,
    Synaptic,
)
from ember_ml.nn.tensor import array

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import snntorch
    from snntorch.export_nir import export_to_nir
    from snntorch.import_nir import import_from_nir

RNG = np.random.default_rng(1)
X = RNG.uniform(-0.5, 2.0, (2, 30, 4)).astype(np.float32)
DT = 1e-4
HARD = {"init_hidden": True, "reset_mechanism": "zero", "reset_delay": False}


def neurons(size: int, beta: float) -> dict[str, Any]:
    return {"beta": torch.full((size,), beta), "threshold": torch.full((size,), 0.5), **HARD}


def feed_forward() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6),
        snntorch.Leaky(**neurons(6, 0.9)),
        torch.nn.Linear(6, 3, bias=False),
        snntorch.Leaky(**neurons(3, 0.7)),
    )


def synaptic() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5),
        snntorch.Synaptic(alpha=torch.full((5,), 0.6), **neurons(5, 0.8)),
    )


def recurrent() -> torch.nn.Module:
    options = {**neurons(6, 0.9), "beta": 0.9, "threshold": 0.5}
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6), snntorch.RLeaky(linear_features=6, all_to_all=True, **options)
    )


def torch_spikes(module: torch.nn.Module, state: Any = None) -> Any:
    """Return the spikes of an snnTorch network, or of one that `import_from_nir` returned."""
    outputs = []
    for now in torch.tensor(X).unbind(1):
        out = module(now) if state is None else module(now, state)
        if isinstance(out, tuple):
            out, state = out
        outputs.append(out.detach().numpy())
    return np.stack(outputs, 1)


@pytest.mark.parametrize("create", [feed_forward, synaptic, recurrent])
def test_networks_of_snntorch_and_back(
    create: Callable[[], torch.nn.Module],
    backend: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    torch.manual_seed(0)
    module = create()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = export_to_nir(module, torch.zeros(1, 4), ignore_dims=[0])
    want = torch_spikes(module)
    assert 0.02 < want.mean() < 0.98
    network = interop.from_nir(graph)
    np.testing.assert_array_equal(network(array(X)).numpy(), want)
    nir.write(tmp_path / "network.nir", interop.to_nir(network))
    again = interop.from_nir(tmp_path / "network.nir")
    np.testing.assert_array_equal(again(array(X)).numpy(), want)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        returned = import_from_nir(nir.read(tmp_path / "network.nir"))
    np.testing.assert_array_equal(torch_spikes(returned), want)


def test_our_networks_keep_their_spikes(backend: str, tmp_path: Path) -> None:
    network = nn.Sequential(
        Spiking(Dense(4, 8), LIF(8, 0.8, 0.6, "hard")),
        FeatureScale(8),
        RecurrentLIF(8, 0.7, 0.4, reset="hard", alpha=0.5),
        Synaptic(8, 0.3, 0.9, reset="hard"),
        LIF(8, 1.0, 2.5, "hard"),
        Dense(8, 2, bias=False),
        LeakyIntegrator(2, 0.95),
    )
    network[1].scale.assign(np.linspace(0.5, 3.0, 8, dtype=np.float32))
    nir.write(tmp_path / "network.nir", interop.to_nir(network, dt=0.001))
    read = interop.from_nir(str(tmp_path / "network.nir"), dt=0.001)
    want = network(array(X)).numpy()
    assert np.abs(want).max() > 0
    np.testing.assert_allclose(read(array(X)).numpy(), want, rtol=1e-4, atol=1e-5)


def euler(node: Any, x: Any) -> Any:
    """Integrate the differential equations of a node, as NIR defines them, by Euler steps."""
    kind = type(node).__name__
    v = i = np.zeros((len(x), x.shape[2]))
    out = []
    for now in np.moveaxis(x.astype(np.float64), 1, 0):
        if kind == "Threshold":
            out.append(now > node.threshold)
            continue
        if kind == "CubaLIF":
            i = i + DT / node.tau_syn * (node.w_in * now - i)
            v = v + DT / node.tau_mem * (node.v_leak - v + node.r * i)
        elif kind in ("LIF", "LI"):
            v = v + DT / node.tau * (node.v_leak - v + node.r * now)
        else:
            v = v + DT * node.r * now
        if kind in ("LI", "I"):
            out.append(v)
            continue
        z = v > node.v_threshold
        v = np.where(z, node.v_reset, v)
        out.append(z)
    return np.stack(out, 1)


def of(low: float, high: float) -> Any:
    return RNG.uniform(low, high, 4)


TAU, ZERO = {"tau": of(3 * DT, 9 * DT)}, np.zeros(4)
NODES = {
    "LIF": nir.LIF(**TAU, r=of(1, 4), v_leak=ZERO, v_threshold=of(0.3, 0.9), v_reset=ZERO),
    "LIF with a leak voltage": nir.LIF(
        **TAU, r=of(2, 4), v_leak=ZERO + 0.1, v_threshold=of(0.5, 0.9), v_reset=ZERO + 0.1
    ),
    "IF": nir.IF(r=of(1, 4) / DT / 4, v_threshold=of(0.5, 0.9), v_reset=ZERO),
    "CubaLIF": nir.CubaLIF(
        tau_syn=of(2 * DT, 6 * DT), tau_mem=of(3 * DT, 9 * DT), r=of(1, 4), v_leak=ZERO,
        v_threshold=of(0.2, 0.5), v_reset=ZERO, w_in=of(0.5, 2.0),
    ),
    "LI": nir.LI(**TAU, r=of(1, 4), v_leak=ZERO),
    "I": nir.I(r=of(1, 4) / DT),
    "Threshold": nir.Threshold(of(0.2, 0.9)),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_nodes_follow_their_equations(name: str, backend: str) -> None:
    node = NODES[name]
    shift = getattr(node, "v_leak", 0.0) if "leak voltage" in name else 0.0
    want = euler(node, X)
    if np.any(shift):  # from the resting voltage on, which is where Ember's neurons start
        node_at_zero = nir.LIF(node.tau, node.r, ZERO, node.v_threshold - shift, ZERO)
        want = euler(node_at_zero, X)
    graph = nir.NIRGraph.from_list(nir.Input(np.array([4])), node, nir.Output(np.array([4])))
    got = interop.from_nir(graph)(array(X)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert np.abs(want).mean() > 0.02


def chain(*nodes: Any) -> Any:
    return nir.NIRGraph.from_list(nir.Input(np.array([4])), *nodes, nir.Output(np.array([4])))


def branched() -> Any:
    eye = nir.Linear(np.eye(4))
    nodes = {
        "input": nir.Input(np.array([4])),
        "a": eye,
        "b": nir.Linear(np.eye(4)),
        "output": nir.Output(np.array([4])),
    }
    edges = [("input", "a"), ("input", "b"), ("a", "output"), ("b", "output")]
    return nir.NIRGraph(nodes, edges)


def recurrent(weight: np.ndarray) -> Any:
    size = np.array([4])
    nodes = {"input": nir.Input(size), "lif": NODES["LIF"], "w": nir.Linear(weight)}
    edges = [("input", "lif"), ("lif", "w"), ("w", "lif"), ("lif", "output")]
    return nir.NIRGraph({**nodes, "output": nir.Output(size)}, edges, type_check=False)


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "node": (
        lambda: interop.from_nir(chain(nir.Delay(np.ones(4)))),
        r"'delay' has the type Delay, which Ember does not read; it reads Affine, Linear",
    ),
    "branch": (lambda: interop.from_nir(branched()), "only a chain of nodes is supported"),
    "dt": (
        lambda: interop.from_nir(chain(NODES["LIF"]), dt=0.1),
        r"'lif' \(LIF\): tau .* must be at least dt \(0.1\); pass a smaller dt",
    ),
    "negative dt": (lambda: interop.to_nir(LIF(4, reset="hard"), dt=0.0), r"dt \(0.0\)"),
    "reset voltage": (
        lambda: interop.from_nir(
            chain(nir.LIF(DT * 4 + ZERO, ZERO + 1, ZERO, ZERO + 1, ZERO - 0.5))
        ),
        "v_reset .* differs from v_leak",
    ),
    "threshold": (
        lambda: interop.from_nir(chain(nir.LIF(DT * 4 + ZERO, ZERO + 1, ZERO, ZERO, ZERO))),
        "v_threshold must be above v_leak",
    ),
    "zero threshold": (
        lambda: interop.from_nir(chain(nir.Threshold(ZERO))),
        r"\(Threshold\): threshold must be above 0, got 0.0",
    ),
    "bias": (
        lambda: interop.from_nir(chain(nir.Affine(np.eye(4), np.ones(3)))),
        r"'affine' \(Affine\): bias must have the shape \(4,\), got \(3,\)",
    ),
    "recurrent weights": (
        lambda: interop.from_nir(recurrent(np.ones((5, 5)))),
        r"'lif' \(LIF\): the recurrent weights of 4 neurons must have the shape \(4, 4\)",
    ),
    "edge": (
        lambda: interop.from_nir(
            nir.NIRGraph({"input": nir.Input(np.array([4]))}, [("input", "lost")], type_check=False)
        ),
        r"edges of nodes that do not exist: \['lost'\]",
    ),
    "text dt": (lambda: interop.to_nir(LIF(4, reset="hard"), dt="1 ms"), r"dt \('1 ms'\)"),
    "no graph": (lambda: interop.from_nir({}), r"a nir.NIRGraph or the path of a file, got \{\}"),
    "no file": (lambda: interop.from_nir("missing.nir"), "there is no file missing.nir"),
    "soft": (lambda: interop.to_nir(LIF(4)), "LIF has reset='soft'"),
    "refractory": (lambda: interop.to_nir(LIF(4, reset="hard", refractory=1)), "refractory=1"),
    "layer": (lambda: interop.to_nir(ALIF(4)), "no node for ALIF.*Dense, FeatureScale, LIF"),
    "activation": (lambda: interop.to_nir(Dense(4, 4, activation="relu")), "no node for Dense"),
    "delays": (
        lambda: interop.to_nir(RecurrentLIF(40, reset="hard", max_delay=3)),
        "all delays must be 1 step",
    ),
    "integrator": (lambda: interop.to_nir(LeakyIntegrator(4, 1.0)), "no time constant"),
    "empty": (lambda: interop.to_nir(nn.Sequential()), "no layers"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, message = ERRORS[name]
    with pytest.raises(NIRError, match=message):
        call()


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "network.nir"
    nir.write(path, interop.to_nir(LIF(4, reset="hard")))
    whole = path.read_bytes()
    for contents in (b"", b"text", whole[: len(whole) // 2]):
        path.write_bytes(contents)
        with pytest.raises(NIRError, match=r"network.nir is not a NIR file, or it is damaged"):
            interop.from_nir(path)
