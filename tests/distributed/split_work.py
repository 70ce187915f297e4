"""What each process of the tests of tensor parallelism runs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ember_ml import backend, nn, ops
from ember_ml.distributed.errors import DistributedError
from ember_ml.distributed.layout import Layout
from ember_ml.distributed.mesh import Mesh
from ember_ml.distributed.split_report import SplitReport
from ember_ml.distributed.tensor_parallel import split_model
from ember_ml.distributed.world import Group, World
from ember_ml.nn import tensor
from ember_ml.nn.auxiliary_losses import add_losses, reported_losses
from ember_ml.training.losses import cross_entropy
from ember_ml.training.optimizer import SGD

TOKENS = np.random.default_rng(0).integers(0, 8, (2, 7))
STEPS = 3


def tensor_group() -> Group:
    """Return the group of all processes, which split the layers."""
    from ember_ml.distributed.environment import read_environment

    return World(Mesh(tp=read_environment().size), backend.get_backend()).group("tp")


def create_model(layers: list[Any], **options: Any) -> nn.Module:
    """Return a model whose parameters are random, and the same in each process."""
    ops.random.set_seed(0)
    model = nn.models.LanguageModel(layers, 8, 16, max_length=16, **options)
    rng = np.random.default_rng(1)
    for _, parameter in model.named_parameters():
        noise = rng.normal(0.0, 0.05, parameter.shape).astype("float32")
        parameter.assign(parameter + tensor.array(noise))
    return model.eval()  # auxiliary losses need training mode, which the tests set


def train(model: nn.Module, steps: int = STEPS) -> list[float]:
    """Train a model in place, and return the losses."""
    tokens = tensor.array(TOKENS)

    def loss() -> Any:
        with reported_losses() as reported:
            logits = model(tokens[:, :-1])
            return add_losses(cross_entropy(logits, tokens[:, 1:]), reported)

    model.train()
    compute = nn.value_and_grad(model, loss)
    optimizer = SGD(model, learning_rate=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        value, gradients = compute()
        optimizer.step(gradients)
        losses.append(float(value))
    model.eval()
    return losses


def step_logits(model: Any) -> Any:
    """Return the logits of all positions, computed one by one; None without a recurrent form."""
    try:
        state, rows = model.initial_state(len(TOKENS)), []
        for position in range(TOKENS.shape[1]):
            y, state = model.step(tensor.array(TOKENS[:, position]), state)
            rows.append(y)
    except NotImplementedError:
        return None
    return ops.stack(rows, axis=1)


def wholes(model: nn.Module, report: SplitReport, group: Group) -> dict[str, Any]:
    """Return the whole parameters of a split model; the copies of others must be equal."""
    values = {}
    for name, parameter in model.named_parameters():
        parts = group.all_gather(parameter.value())
        split = report.splits.get(name)
        if split is None:
            assert all(ops.array_equal(part, parts[0]) for part in parts), f"{name} differs"
        values[name] = parts[0] if split is None else split.whole(parts)
    return values


def distance(first: Any, second: Any) -> float:
    """Return the largest difference of two tensors."""
    assert first.shape == second.shape, (first.shape, second.shape)
    return float(ops.max(ops.abs(first - second)))


def compare(
    layers: list[Any], layout: dict[str, int] | None = None, steps: int = STEPS, **options: Any
) -> dict[str, Any]:
    """Train a whole and a split model, and return how they differ."""
    group = tensor_group()
    whole, split = create_model(layers, **options), create_model(layers, **options)
    start = dict(whole.state_dict())
    report = split_model(split, group, None if layout is None else Layout(layout))
    tokens = tensor.array(TOKENS)
    one_by_one = step_logits(whole)
    found = {
        "logits": distance(whole(tokens), split(tokens)),
        "step": 0.0 if one_by_one is None else distance(one_by_one, step_logits(split)),
        "shapes": {name: list(x.shape) for name, x in split.named_parameters()},
        "split": sorted(report.splits),
        "replicated": dict(report.replicated),
    }
    expected_losses, losses = train(whole, steps), train(split, steps)
    values = wholes(split, report, group)
    named = dict(whole.named_parameters())
    apart = {name: distance(x, values[name]) for name, x in named.items()}
    worst = max(apart, key=apart.__getitem__)
    return {
        **found,
        "loss": max(abs(a - b) for a, b in zip(losses, expected_losses, strict=True)),
        "parameters": apart[worst],
        "worst": worst,
        "moved": max(distance(x, start[name]) for name, x in named.items()),
    }


def compare_many(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of `compare` for several models."""
    return [compare(**case) for case in cases]


def native_gradients(layers: list[Any]) -> float:
    """Return how the gradients of torch's `backward` differ from those of Ember's transform."""
    import torch

    from ember_ml.interop import to_torch

    model = create_model(layers)
    split_model(model, tensor_group())
    tokens = tensor.array(TOKENS)

    def loss() -> Any:
        return cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])

    _, gradients = nn.value_and_grad(model, loss)()
    native = to_torch(model)
    logits = native(torch.tensor(TOKENS[:, :-1]))
    torch.nn.functional.cross_entropy(
        logits.reshape(-1, 8), torch.tensor(TOKENS[:, 1:]).reshape(-1)
    ).backward()
    named = dict(native.named_parameters())
    assert sorted(named) == sorted(gradients)
    return max(float((named[name].grad - x.native).abs().max()) for name, x in gradients.items())


def error_of(layers: list[Any], layout: dict[str, int] | None = None) -> tuple[str, bool]:
    """Return the message of the error of a split, and whether it has changed the model."""
    model = create_model(layers)
    before = {name: x.shape for name, x in model.named_parameters()}
    try:
        split_model(model, tensor_group(), None if layout is None else Layout(layout))
    except Exception as error:
        after = {name: x.shape for name, x in model.named_parameters()}
        return f"{type(error).__name__}: {error}", before != after
    return "no error", True


def dropout_keeps_copies_equal() -> list[int]:
    """Train with dropout; return how many parameters are replicated, and the outputs of a copy."""
    group = tensor_group()
    layers = [{"type": "layers/attention", "num_heads": 4, "dropout": 0.2}, "swiglu", "lstm"]
    model = create_model(layers, dropout=0.2)
    report = split_model(model, group)
    train(model)
    values = wholes(model, report, group)  # raises if copies of a parameter differ
    tokens = tensor.array(TOKENS)
    copied = copy.deepcopy(model)
    assert distance(copied(tokens), model(tokens)) == 0.0
    return [len(values) - len(report.splits), len(copied.parameters())]


def unusual_errors() -> list[str]:
    """Return the errors of a model with tied layers, and of one with quantized layers."""
    group = tensor_group()
    first, second = nn.layers.SwiGLU(16), nn.layers.SwiGLU(16)
    second.expand.weight = first.expand.weight
    tied = nn.Sequential([first, second])
    attention = create_model([{"type": "layers/attention", "num_heads": 4}])
    packed, _ = nn.quantization.quantize(attention)
    messages = []
    twice = create_model(["swiglu"])
    split_model(twice, group)
    for model in (tied, packed, twice):
        try:
            split_model(model, group)
        except DistributedError as error:
            messages.append(str(error))
    return messages
