"""Memory and communication of a 7B hybrid on 64 GPUs for several meshes: arithmetic, not measured.

`docs/design/0008-seven-billion-parameters.md` explains the formulas.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

from layout_model import BLOCKS, COUNTS, VOCABULARY, WIDTH, ModelSizes, pattern, read_sizes

import ember_ml
from ember_ml.distributed import Mesh

GB = 1e9
NODE, MEMORY, RESERVE = 8, 80 * GB, 8 * GB
PEAK = {"bfloat16": 989e12, "float32": 67e12}
"""Operations per second of a GPU."""
USED_PEAK, USED_BANDWIDTH = 0.4, 0.8
NVLINK, PORT = 450 * GB, 50 * GB
"""Bytes per second in one direction: of a GPU inside of a node, and of a network port."""
LOGIT = {"bfloat16": 14, "float32": 12}
"""Bytes of a logit: itself, a float32 copy, its log-softmax and its gradient."""
LOSS_CHUNK = 256
STREAM, FILE_SYSTEM = 2 * GB, 20 * GB
"""Bytes per second of one writer, and of all."""
MESHES = [
    (Mesh(dp=1, fsdp=64), "bfloat16"),
    (Mesh(dp=8, fsdp=8), "bfloat16"),
    (Mesh(dp=1, fsdp=32, tp=2), "bfloat16"),
    (Mesh(dp=1, fsdp=8, tp=8), "bfloat16"),
    (Mesh(dp=1, fsdp=16, pp=4), "bfloat16"),
]


@dataclass(frozen=True)
class Layout:
    """A mesh, and the number of sequences of a call of the model."""

    model: ModelSizes
    mesh: Mesh
    dtype: str
    batch: int
    length: int
    sequences: int

    @property
    def name(self) -> str:
        """Axes of the mesh."""
        return " x ".join(f"{name}={n}" for name, n in self.mesh.sizes().items() if n > 1)

    @property
    def itemsize(self) -> int:
        """Bytes of an element in the computation."""
        return 4 if self.dtype == "float32" else 2

    @property
    def tokens(self) -> int:
        """Tokens of a call."""
        return self.sequences * self.length

    @property
    def calls(self) -> int:
        """Calls of the model in a step: accumulated batches, or parts in a pipeline."""
        return self.batch // self.tokens // self.mesh.data

    @property
    def root(self) -> float:
        """Parameters outside of blocks; in a pipeline, a stage has half of them at most."""
        return self.model.root / min(2, self.mesh.pp) / self.mesh.tp

    @property
    def local(self) -> float:
        """Parameters that the processes of an fsdp group have together."""
        return sum(self.model.units) / self.mesh.pp / self.mesh.tp + self.root

    @property
    def state(self) -> float:
        """Bytes of parameters, gradients and the two states of AdamW, in float32."""
        return 16 * self.local / self.mesh.fsdp

    @property
    def gathered(self) -> float:
        """Bytes of gathered parameters, and of gradients before they are reduced."""
        unit = max(self.model.units) / self.mesh.tp
        at_once = self.local if self.mesh.pp > 1 else self.root + 2 * unit  # one is prefetched
        values = at_once * self.itemsize
        gradients = (self.root + unit) * (self.itemsize + 4)
        return values + (gradients if self.calls == 1 else 4 * self.local)

    def activations(self, remat: bool) -> float:
        """Return the bytes that the blocks keep; with remat, their inputs and all of one block."""
        kept = self.model.kept_split(self.mesh.tp)
        each = BLOCKS * 2 * WIDTH if remat else sum(kept[name] * n for name, n in COUNTS.items())
        in_flight = min(self.mesh.pp, self.calls)
        again = max(kept.values()) if remat else 0
        return (each / self.mesh.pp * in_flight + again) * self.tokens * self.itemsize / 2

    def logits(self, chunked: bool) -> float:
        """Return the bytes of logits and what the loss computes from them."""
        return (LOSS_CHUNK if chunked else self.tokens) * VOCABULARY * LOGIT[self.dtype]

    @property
    def chunks(self) -> bool:
        """Whether the loss is computed in chunks, for which a process needs the whole head."""
        return self.mesh.tp == self.mesh.pp == 1

    @property
    def total(self) -> float:
        """Bytes of a step with remat, and with chunks if possible."""
        return self.state + self.gathered + self.activations(True) + self.logits(self.chunks)

    def traffic(self) -> dict[str, float]:
        """Return the bytes that a GPU sends in a step."""
        mesh, hidden = self.mesh, self.tokens * WIDTH * self.itemsize
        fsdp, dp, tp = (ring(size) for size in (mesh.fsdp, mesh.dp or 1, mesh.tp))
        sums = 3 * BLOCKS + 2  # forward, again and backward pass of blocks; embedding and head
        joined = self.tokens * VOCABULARY * self.itemsize
        return {
            "fsdp gather": 2 * self.calls * fsdp * self.local * self.itemsize,
            "fsdp reduce": fsdp * self.local * 4,
            "dp": 2 * dp * self.local / mesh.fsdp * 4,
            "tp": self.calls * tp * (2 * sums * hidden + joined),
            "pp": 2 * self.calls * hidden * (mesh.pp > 1),
        }

    def seconds(self, axis: str, volume: float, port: float) -> float:
        """Return the time of a ring along an axis; the last axes are those inside of a node."""
        sizes = self.mesh.sizes()
        names = list(sizes)
        stride = math.prod(sizes[name] for name in names[names.index(axis) + 1 :])
        inside = max(1, min(sizes[axis], NODE // stride))
        links = [NVLINK] * (inside > 1) + [inside * port] * (sizes[axis] > inside)
        return max((volume / link / USED_BANDWIDTH for link in links), default=0.0)

    @property
    def compute(self) -> float:
        """Seconds of computation: forward pass, once more for remat, and backward pass."""
        flops = 4 * self.model.flops(self.length) * self.batch / self.mesh.size
        return flops / PEAK[self.dtype] / USED_PEAK

    @property
    def bubble(self) -> float:
        """Share of a step in which a stage of a pipeline waits."""
        return (self.mesh.pp - 1) / (self.calls + self.mesh.pp - 1)

    def step(self, port: float) -> tuple[float, float, float]:
        """Return the seconds that overlap with computation, those that do not, and of a step."""
        times = {name: self.seconds(name.split()[0], x, port) for name, x in self.traffic().items()}
        waiting = times.pop("tp")
        overlapping = sum(times.values())
        return overlapping, waiting, max(self.compute / (1 - self.bubble), overlapping) + waiting


def ring(size: int) -> float:
    """Return the share of a tensor that each process of a ring sends."""
    return (size - 1) / size


def fitting(model: ModelSizes, mesh: Mesh, dtype: str, batch: int, length: int) -> Layout:
    """Return the layout with the most sequences per call that fit; a pipeline has 1."""
    most = 1 if mesh.pp > 1 else max(1, batch // length // mesh.data)
    counts = [most >> at for at in range(most.bit_length())]
    layouts = [Layout(model, mesh, dtype, batch, length, count) for count in counts]
    return next((x for x in layouts if x.total <= MEMORY - RESERVE), layouts[-1])


def writers(model: ModelSizes, count: int) -> float:
    """Return the bytes of the writer that has the most: each tensor goes to who has the least."""
    files = [[0] * count, [0] * count]  # weights, and the states of AdamW
    for copies, loads in enumerate(files, start=1):
        for size in model.tensors * copies:
            loads[loads.index(min(loads))] += 4 * size
    return max(map(sum, zip(*files, strict=True)))


def show(head: Sequence[str], rows: Sequence[Sequence[str | float]]) -> None:
    """Print a table in Markdown."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(x if isinstance(x, str) else f"{x:.3g}" for x in row) + " |")
    print()


def show_layouts(layouts: list[Layout]) -> None:
    """Print the tables of memory, traffic and time."""
    head = ["GB of a GPU", "sequences x calls", "state", "gathered", "blocks", "blocks, remat"]
    rows: list[list[str | float]] = []
    for x in layouts:
        kept = [x.activations(remat) / GB for remat in (False, True)]
        logits = [x.logits(False) / GB, x.logits(True) / GB if x.chunks else "-"]
        calls = f"{x.sequences} x {x.calls}"
        rows.append([x.name, calls, x.state / GB, x.gathered / GB, *kept, *logits, x.total / GB])
    show([*head, "logits", "logits, chunked", "total"], rows)
    head = ["GB that a GPU sends", "all-gather", "reduce-scatter", "dp all-reduce", "tp", "pp"]
    show(head, [[x.name, *(sent / GB for sent in x.traffic().values())] for x in layouts])
    head = ["seconds of a step", "compute", "bubble", "overlapping", "waiting", "step", "tokens/s"]
    rows = []
    for x in layouts:
        each, one = x.step(PORT), x.step(PORT / NODE)
        speed = f"{x.batch / each[2]:,.0f}"
        rows.append([x.name, x.compute, f"{x.bubble:.0%}", *each, speed, one[0], one[2]])
    show([*head, "overlapping, one port", "step, one port"], rows)


def main() -> None:
    """Print the sizes of the model, the tables, and the time of a checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=8192, help="Tokens of a sequence.")
    parser.add_argument("--batch", type=int, default=2**21, help="Tokens of a step.")
    options = parser.parse_args()
    with ember_ml.use_backend("torch"):
        model = read_sizes()
    print(f"{pattern()}\n{model.parameters:,} parameters, {model.root:,} of them outside of blocks")
    print(f"{model.flops(options.length):.3g} operations of a forward pass for a token")
    print("bytes of a block for a token:", {name: round(x) for name, x in model.kept.items()}, "\n")
    show_layouts([fitting(model, *mesh, options.batch, options.length) for mesh in MESHES])
    total, largest = 12 * model.parameters, writers(model, 64)
    seconds = max(largest / STREAM, total / FILE_SYSTEM)
    head = ["checkpoint", "GB of the largest writer", "seconds"]
    alone = ["1 writer", total / GB, total / STREAM]
    show(head, [alone, ["64 writers", largest / GB, seconds]])
    whole = 4 * model.parameters / GB
    print(f"start: {whole:.3g} GB of each GPU, {NODE * whole:.3g} GB of the memory of a node")


if __name__ == "__main__":
    main()
