"""Spikes, voltages and gradients of Norse's neurons, as `norse_neurons.json` holds them.

`python -m tests.unit.nn.norse_neurons` writes the file; it needs `pip install norse==1.1.0`. The
tests read the file, because Norse requires packages that nothing else here needs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

FILE = Path(__file__).with_suffix(".json")
DT = 0.001
SIZE = 3


def main() -> None:
    """Write the file."""
    from norse.torch.functional import lif, lif_refrac, lsnn

    torch.manual_seed(0)
    x = torch.rand(2, 24, SIZE) * 8 - 1
    weight = torch.randn(SIZE, SIZE) * 4
    none, eye = torch.zeros(SIZE, SIZE), torch.eye(SIZE)
    zeros = torch.zeros(2, SIZE)
    fast = torch.tensor(1 / DT)  # the synaptic current lasts one step
    slope = torch.tensor(20.0)
    plain = lif.LIFParameters(tau_syn_inv=fast, tau_mem_inv=torch.tensor(200.0), alpha=slope)
    slow = plain._replace(tau_syn_inv=torch.tensor(300.0))
    rest = lif_refrac.LIFRefracParameters(plain, torch.tensor(3.0))
    adaptive = lsnn.LSNNParameters(
        tau_syn_inv=fast, tau_mem_inv=torch.tensor(200.0), tau_adapt_inv=torch.tensor(50.0),
        beta=torch.tensor(0.4), alpha=slope,
    )  # fmt: skip

    def steps(name: str, weights: torch.Tensor) -> dict[str, Any]:
        leaf, w = x.clone().requires_grad_(), weights.clone().requires_grad_()
        state: Any = lif.LIFState(zeros, zeros, zeros)
        if name == "refractory":
            state = lif_refrac.LIFRefracState(state, zeros)
        elif name == "adaptive":
            state = lsnn.LSNNState(zeros, zeros, zeros, torch.ones(2, SIZE))
        spikes, after = [], []
        for now in leaf.unbind(1):
            if name == "refractory":
                z, state = lif_refrac.lif_refrac_step(now, state, eye, w, rest, DT)
                after.append(state.lif.v)
            elif name == "adaptive":
                z, state = lsnn.lsnn_step(now, state, eye, w, adaptive, DT)
                after.append(state.v)
            else:
                p = slow if name == "synaptic" else plain
                z, state = lif.lif_step(now, state, eye, w, p, DT)
                after.append(state.v)
            spikes.append(z)
        trains = torch.stack(spikes, 1)
        out = {"spikes": trains.tolist(), "after": torch.stack(after, 1).tolist()}
        if name in ("plain", "recurrent", "synaptic"):
            factors = torch.cos(torch.arange(trains.numel())).view(trains.shape)
            (trains * factors).sum().backward()
            out |= {"grad_x": leaf.grad.tolist(), "grad_weight": w.grad.tolist()}
        return out

    rows = {
        name: steps(name, weight if name == "recurrent" else none)
        for name in ("plain", "recurrent", "synaptic", "refractory", "adaptive")
    }
    FILE.write_text(json.dumps({"x": x.tolist(), "weight": weight.tolist(), **rows}))


if __name__ == "__main__":
    main()
