"""Ember modules in DDP and FSDP2 of torch: two processes equal one, and the shards are halves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import ember_ml
from ember_ml import nn, ops
from ember_ml.interop import to_torch
from ember_ml.nn.remat import remat

rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
ember_ml.set_backend("torch")
generator = torch.Generator().manual_seed(0)
x, y = (torch.randint(0, 11, (4, 8), generator=generator) for _ in range(2))


def build():
    ops.random.set_seed(0)
    return to_torch(nn.models.LanguageModel("attention mamba hyena swiglu", 11, 16))


def train(model, rows):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for _ in range(3):
        loss = cross_entropy(model(x[rows]).flatten(0, 1), y[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def difference(a, b):
    return max(float((p - q).abs().max()) for p, q in zip(a, b, strict=True))


dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
whole, replicated, sharded, again = build(), build(), build(), build()
start = [p.detach().clone() for p in whole.parameters()]
rows = slice(2 * rank, 2 * rank + 2)
train(whole, slice(None))
train(DistributedDataParallel(replicated), rows)
for model in (sharded, again):
    for block in model.backbone.blocks.children():
        fully_shard(block)
    fully_shard(model)
remat(again.ember, "blocks")
calls = []
again.ember.backbone.blocks.layers[0].register_forward_hook(lambda *_: calls.append(1))
local = {name: list(p.to_local().shape) for name, p in sharded.named_parameters()}
train(sharded, rows)
train(again, rows)
full = [p.full_tensor() for p in sharded.parameters()]
results = {
    "trained": difference(start, whole.parameters()),
    "ddp": difference(whole.parameters(), replicated.parameters()),
    "ember": difference([p.native for p in replicated.ember.parameters()], replicated.parameters()),
    "fsdp": difference(whole.parameters(), full),
    "remat": difference(full, [p.full_tensor() for p in again.parameters()]),
    "calls": len(calls),
    "shapes": {name: list(p.shape) for name, p in whole.named_parameters()},
    "local": local,
}
if rank == 0:
    print(json.dumps(results))
dist.destroy_process_group()
"""


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(tmp_path)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs[0][1] + outputs[1][1]
    results = json.loads(outputs[0][0].splitlines()[-1])
    assert results["trained"] > 0.01
    assert results["ddp"] < 1e-5
    assert results["fsdp"] < 1e-5
    assert results["ember"] == 0.0
    assert results["remat"] == 0.0
    assert results["calls"] == 6  # each of the 3 backward passes computes the block again
    for name, (first, *rest) in results["shapes"].items():
        assert results["local"][name] == [-(-first // 2), *rest]
