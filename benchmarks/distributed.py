"""Cost of training by two processes compared with hand-written PyTorch, in one run.

A pre-norm transformer language model with AdamW. Data parallel: `Trainer(strategy="dp")` against
`DistributedDataParallel` around a hand-written model. Sharded: `strategy="fsdp"` against FSDP2
around its blocks. Both sides average their loss over the processes in each step, as a log needs.
Measurements alternate; the best CPU time and the best wall time of the first process are compared,
one thread each. Bytes are those of the loopback interface of a network namespace of its own. Peak
memory is that of the allocator during one step, above what the training holds between steps.

    python benchmarks/distributed.py
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import ember_ml as ember
from ember_ml import nn, ops
from ember_ml.nn import tensor
from ember_ml.training import Trainer

PROCESSES = 2
VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 256, 256, 4, 4, 128, 16
RATE = 1e-6
GOALS = {"dp": 1.1, "fsdp": 1.15}
Step = Callable[[], Any]


class Layer(torch.nn.Module):
    """Pre-norm attention and SwiGLU."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.RMSNorm(WIDTH, eps=1e-6) for _ in range(2)])
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.expand = torch.nn.Linear(WIDTH, 2 * inner, bias=False)
        self.reduce = torch.nn.Linear(inner, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """Return the output of both layers."""
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3 * HEADS, -1).chunk(3, dim=2)
        q, k, v = (each.transpose(1, 2) for each in (rotate(q, turns), rotate(k, turns), v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        gate, value = self.expand(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.reduce(F.silu(gate) * value)


def rotate(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Return heads with rotary position embeddings."""
    first, second = x.chunk(2, dim=-1)
    cos, sin = turns
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Model(torch.nn.Module):
    """Hand-written language model."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList([Layer(inner) for _ in range(LAYERS)])
        self.norm = torch.nn.RMSNorm(WIDTH, eps=1e-6)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
        size = WIDTH // HEADS
        rates = 10000.0 ** (-torch.arange(0, size, 2) / size)
        angles = torch.arange(LENGTH)[:, None, None] * rates
        self.register_buffer("turns", torch.stack([angles.cos(), angles.sin()]), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.turns)
        return self.head(self.norm(x))


def ember_step(strategy: str, tokens: torch.Tensor, targets: torch.Tensor) -> tuple[Step, int]:
    """Return a step of the trainer, and the number of parameters of the model."""
    ops.random.set_seed(0)
    model = nn.models.LanguageModel(f"(attention swiglu)x{LAYERS}", VOCABULARY, WIDTH)
    size = model.num_parameters()
    options = {"optimizer": {"type": "adamw", "weight_decay": 0.0}, "learning_rate": RATE}
    trainer = Trainer(model, "cross_entropy", strategy=strategy, progress=False, **options)
    batch = tensor.array(tokens), tensor.array(targets)
    return lambda: trainer.train_step(batch), size


def torch_step(strategy: str, tokens: torch.Tensor, targets: torch.Tensor) -> tuple[Step, int]:
    """Return a hand-written step, and the number of parameters of the model."""
    torch.manual_seed(0)
    inner = nn.layers.SwiGLU(WIDTH).reduce.weight.shape[1]
    model: Any = Model(inner)
    size = sum(parameter.numel() for parameter in model.parameters())
    if strategy == "dp":
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    else:
        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, foreach=True)

    def step() -> float:
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().double()
        dist.all_reduce(mean)
        return float(mean) / PROCESSES

    return step, size


def traffic() -> int:
    """Return the bytes that the loopback interface has sent."""
    with open("/proc/net/dev") as file:
        line = next(line for line in file if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])


def sent(step: Step, steps: int = 5) -> float:
    """Return the bytes of a step of all processes."""
    dist.barrier()
    before = traffic()
    for _ in range(steps):
        step()
    dist.barrier()
    return (traffic() - before) / steps


def peak(step: Step) -> int:
    """Return the memory that a step uses at most, above what it finds."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        step()
    used = most = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            used += event.nbytes()
            most = max(most, used)
    return most


def race(steps: dict[str, Step], turns: int) -> dict[str, tuple[float, float]]:
    """Return the best CPU time and wall time of each in ms, measured in turns."""
    best = {name: (float("inf"), float("inf")) for name in steps}
    for turn in range(turns + 3):
        for name, step in steps.items():
            dist.barrier()
            cpu, wall = time.process_time(), time.perf_counter()
            step()
            taken = time.process_time() - cpu, time.perf_counter() - wall
            if turn >= 3:
                best[name] = tuple(min(x, y * 1e3) for x, y in zip(best[name], taken, strict=True))
    return best


def work(turns: int) -> None:
    """Compare both sides in this process."""
    torch.set_num_threads(1)
    ember.set_backend("torch")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(rank)
    shape = BATCH // PROCESSES, LENGTH
    tokens, targets = (torch.randint(0, VOCABULARY, shape, generator=generator) for _ in range(2))
    for strategy, goal in GOALS.items():
        (own, size), (other, count) = (
            build(strategy, tokens, targets) for build in (ember_step, torch_step)
        )
        assert size == count, f"the models have {size} and {count} parameters"
        steps = {"Ember": own, "PyTorch": other}
        times = race(steps, turns)
        volumes = {name: sent(step) for name, step in steps.items()}
        peaks = {name: peak(step) for name, step in steps.items()}
        if rank == 0:
            title = {"dp": "data parallel, DDP", "fsdp": "sharded, FSDP2"}[strategy]
            cpu, wall = (times["Ember"][at] / times["PyTorch"][at] for at in range(2))
            volume, memory = (x["Ember"] / x["PyTorch"] for x in (volumes, peaks))
            print(
                f"{title}: {cpu:.2f}x the CPU time and {wall:.2f}x the wall time of hand-written "
                f"PyTorch ({times['PyTorch'][1]:.1f} ms; goal {goal}x), {volume:.4f}x the bytes "
                f"({volumes['PyTorch'] / 1e6:.2f} MB), {memory:.2f}x the peak memory "
                f"({peaks['PyTorch'] / 1e6:.1f} MB)",
                flush=True,
            )
    dist.barrier()
    dist.destroy_process_group()


def start(turns: int) -> None:
    """Start the processes, in a network namespace of their own if the system allows it."""
    if "BENCHMARK_NAMESPACE" not in os.environ and shutil.which("unshare"):
        inside = ["unshare", "--map-root-user", "--net", "sh", "-c"]
        command = f"ip link set lo up && exec {sys.executable} {' '.join(sys.argv)}"
        if subprocess.run([*inside, "ip link set lo up"], capture_output=True).returncode == 0:
            env = {**os.environ, "BENCHMARK_NAMESPACE": "1"}
            sys.exit(subprocess.run([*inside, command], env=env).returncode)
    with socket.socket() as handle:
        handle.bind(("127.0.0.1", 0))
        port = handle.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(PROCESSES)}
    common |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, "--turns", str(turns), "--worker"],
            env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(PROCESSES)
    ]
    sys.exit(max(worker.wait() for worker in workers))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    (work if arguments.worker else start)(arguments.turns)
