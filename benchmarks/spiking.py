"""Spiking neurons against snnTorch, Norse and SpikingJelly, in one run on one thread.

Each figure is a training step: the spikes and voltages of a sequence, recorded as the tutorials of
the peers do, and the gradients of its currents. Figures are the best CPU time of many repetitions,
taken in turns, and the peak memory of a step, by the counts of torch's allocator. The last tables
show how the time grows with the length of a sequence, and the other neurons and backends.

    pip install snntorch && pip install --no-deps norse spikingjelly loguru
    python benchmarks/spiking.py [peers | length | neurons]
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from measuring import Call, best, peak

from ember_ml import GradientTape, nn, ops, use_backend
from ember_ml.backend import available
from ember_ml.nn.layers import ALIF, LIF, RecurrentLIF, SpikingLayer, Synaptic

TIME, BATCH, NEURONS = 100, 32, 100
BETA, THRESHOLD = 0.9, 1.0
GOAL, MEMORY_GOAL = 0.17, 0.5


def currents(length: int = TIME) -> torch.Tensor:
    """Return input currents, (batch, time, neurons)."""
    torch.manual_seed(0)
    return 0.2 + 0.5 * torch.randn(BATCH, length, NEURONS)


def with_gradient(
    spikes: torch.Tensor, voltages: torch.Tensor, x: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return the records, and the gradient of the number of spikes."""
    return spikes, voltages, torch.autograd.grad(spikes.sum(), x)[0]


def stepped(
    advance: Callable[[torch.Tensor, Any], tuple[torch.Tensor, torch.Tensor, Any]],
    unbind: bool = False,
) -> Call:
    """Return a training step of a loop over the steps of a sequence.

    Args:
        advance: Function of the input of a step and the state (None at first) that returns the
            spikes, the voltages and the next state.
        unbind: Whether the loop runs over `x.unbind()` instead of `x[step]`, which the tutorials
            of the peers use, and whose gradient has the size of the whole sequence in each step.
    """
    x = currents().transpose(0, 1).contiguous()

    def step() -> tuple[torch.Tensor, ...]:
        leaf = x.detach().requires_grad_()
        state, spikes, voltages = None, [], []
        steps = leaf.unbind() if unbind else (leaf[at] for at in range(len(leaf)))
        for now in steps:
            z, v, state = advance(now, state)
            spikes.append(z)
            voltages.append(v)
        return with_gradient(torch.stack(spikes), torch.stack(voltages), leaf)

    return step


def snntorch_step(unbind: bool = False) -> Call:
    """Return a training step of snnTorch's `Leaky`."""
    import snntorch
    from snntorch import surrogate

    neuron = snntorch.Leaky(beta=BETA, threshold=THRESHOLD, spike_grad=surrogate.atan(alpha=2.0))

    def advance(now: torch.Tensor, mem: Any) -> tuple[torch.Tensor, ...]:
        z, mem = neuron(now, torch.zeros_like(now) if mem is None else mem)
        return z, mem, mem

    return stepped(advance, unbind)


def norse_step(unbind: bool = False) -> Call:
    """Return a training step of Norse's `lif_feed_forward_step`."""
    from norse.torch.functional import lif

    dt = 0.001
    p = lif.LIFParameters(
        tau_syn_inv=torch.tensor(1 / dt), tau_mem_inv=torch.tensor((1 - BETA) / dt), alpha=100.0
    )

    def advance(now: torch.Tensor, state: Any) -> tuple[torch.Tensor, torch.Tensor, Any]:
        zeros = torch.zeros_like(now)
        start = lif.LIFFeedForwardState(zeros, zeros) if state is None else state
        z, state = lif.lif_feed_forward_step(now / (1 - BETA), start, p, dt)
        return z, state.v, state

    return stepped(advance, unbind)


def spikingjelly_step() -> Call:
    """Return a training step of SpikingJelly's `LIFNode` over several steps."""
    from spikingjelly.activation_based import functional, neuron, surrogate

    node = neuron.LIFNode(
        tau=1 / (1 - BETA),
        decay_input=False,
        v_threshold=THRESHOLD,
        v_reset=None,
        surrogate_function=surrogate.ATan(),
        detach_reset=True,
        step_mode="m",
        store_v_seq=True,
    )
    x = currents().transpose(0, 1).contiguous()

    def step() -> tuple[torch.Tensor, ...]:
        leaf = x.detach().requires_grad_()
        functional.reset_net(node)
        return with_gradient(node(leaf), node.v_seq, leaf)

    return step


def plain_step(unbind: bool = False) -> Call:
    """Return a training step of a loop in plain torch."""

    class Step(torch.autograd.Function):
        """Step function with the derivative of the arc tangent."""

        @staticmethod
        def forward(ctx: Any, u: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(u)
            return (u > 0).to(u.dtype)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            return g / (1 + (torch.pi * ctx.saved_tensors[0]) ** 2)

    def advance(now: torch.Tensor, v: Any) -> tuple[torch.Tensor, ...]:
        v = now if v is None else BETA * v + now
        z = Step.apply(v - THRESHOLD)
        return z, v, v - THRESHOLD * z.detach()

    return stepped(advance, unbind)


def ember_step(layer: SpikingLayer, length: int = TIME) -> Call:
    """Return a training step of a layer on the active backend."""
    x = nn.tensor.array(currents(length).numpy())

    def step() -> Any:
        with GradientTape() as tape:
            tape.watch(x)
            run = layer.run(x)
            total = ops.sum(run.spikes)
        gradient = tape.gradient(total, x)
        gradient[0, 0, 0].item()  # MLX computes when a value is read
        return run.spikes, run.voltages, gradient

    return step


def peers() -> None:
    """Print time and memory of LIF neurons in several libraries."""
    makers: dict[str, Callable[[], Call]] = {
        "snntorch": snntorch_step,
        "snntorch, x.unbind()": lambda: snntorch_step(unbind=True),
        "norse": norse_step,
        "norse, x.unbind()": lambda: norse_step(unbind=True),
        "spikingjelly": spikingjelly_step,
        "plain torch": plain_step,
        "plain torch, x.unbind()": lambda: plain_step(unbind=True),
    }
    calls: dict[str, Call] = {}
    for name, make in makers.items():
        package = name.partition(",")[0]
        if package == "plain torch" or importlib.util.find_spec(package):
            calls[name] = make()
        else:
            print(f"{package} is not installed")
    calls["ember"] = ember_step(LIF(NEURONS, BETA, THRESHOLD))
    times = dict(zip(calls, best(list(calls.values()), 20.0), strict=True))
    sizes = {name: peak(call) for name, call in calls.items()}
    print(f"LIF, {TIME} steps, batch {BATCH}, {NEURONS} neurons; a training step, ms and MB")
    base = "snntorch" if "snntorch" in calls else "plain torch"
    for name in calls:
        ratio, size = times[name] / times[base], sizes[name] / sizes[base]
        missed = name == "ember" and (ratio > GOAL or size > MEMORY_GOAL)
        mark = f"  <-- misses {GOAL}x or {MEMORY_GOAL}x" if missed else ""
        print(f"{name:24} {times[name]:8.2f} {ratio:6.2f}x {sizes[name]:8.1f} {size:6.2f}x{mark}")


def length() -> None:
    """Print how the time grows with the length of the sequence."""
    print("LIF, time per step of a sequence")
    for steps in (100, 1000, 10_000):
        (total,) = best([ember_step(LIF(NEURONS, BETA, THRESHOLD), steps)], 2.0)
        print(f"{steps:6} steps {total:9.2f} ms {1e3 * total / steps:7.1f} us per step")


def neurons() -> None:
    """Print the time of each neuron on each backend."""
    makers: dict[str, Callable[[], SpikingLayer]] = {
        "LIF": lambda: LIF(NEURONS),
        "LIF, hard reset": lambda: LIF(NEURONS, reset="hard"),
        "LIF, refractory": lambda: LIF(NEURONS, refractory=2),
        "Synaptic": lambda: Synaptic(NEURONS),
        "ALIF": lambda: ALIF(NEURONS),
        "RecurrentLIF": lambda: RecurrentLIF(NEURONS),
        "RecurrentLIF, 8 delays": lambda: RecurrentLIF(NEURONS, max_delay=8),
    }
    print(f"{'a training step, ms':24}" + "".join(f"{name:>10}" for name in available()))
    for name, make in makers.items():
        times = []
        for backend in available():
            with use_backend(backend):
                times += best([ember_step(make())], 1.0)
        print(f"{name:24}" + "".join(f"{each:10.2f}" for each in times))


PARTS = {"peers": peers, "length": length, "neurons": neurons}


def main(wanted: list[str]) -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    with use_backend("torch"):
        for name in wanted or PARTS:
            PARTS[name]()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of the peers
    main(sys.argv[1:])
