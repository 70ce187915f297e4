"""Cost of a training step and a forward pass compared with hand-written code, in one run.

An MLP and a 2-layer pre-norm transformer, at two sizes, with AdamW: Ember on torch against
hand-written PyTorch (eager) and Keras 3 on torch; Ember on MLX against mlx.nn with mx.compile.
Each is measured by its best CPU time on one thread. Measurements alternate, so that noise affects
all of them. Ember's step is the Trainer's own, which also reads the loss.
The bias correction of mlx.nn's AdamW, off by default, is enabled, as in the others. The learning
rate is small: a model that memorizes its only batch gets denormal gradients, which slow the CPU
down, and the fastest learner would lose.

    python benchmarks/training.py [torch | mlx] [mlp | transformer]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np

import ember_ml as ember
from ember_ml import nn, ops
from ember_ml.nn import layers
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer

Contestant = Callable[[], Any]
VOCABULARY = 64
RATE = 1e-6


class Size(NamedTuple):
    """Size of the transformer."""

    dim: int
    heads: int
    batch: int
    length: int
    step_goal: float
    repeats: int


SIZES = [Size(128, 4, 8, 64, 1.05, 30), Size(32, 4, 1, 8, 1.4, 100)]
FORWARD_GOAL = 1.1
WIDE = [(64, [256, 256], 10, 64, 1.05), (8, [16, 16], 4, 4, 1.4)]
"""Input, hidden, output and batch size of the MLPs, and the goal."""


def race(contestants: dict[str, Contestant], repeats: int) -> dict[str, float]:
    """Return the best CPU time of each in ms, measured in turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for turn in range(repeats + 5):
        for name, run in contestants.items():
            start = time.process_time()
            for _ in range(3):
                run()
            if turn >= 5:
                best[name] = min(best[name], (time.process_time() - start) / 3 * 1e3)
    return best


def report(title: str, times: dict[str, float], peer: str, goal: float) -> None:
    """Print a line with the ratios to the peer."""
    ratios = ", ".join(
        f"{name} {value / times[peer]:.2f}x" for name, value in times.items() if name != peer
    )
    print(f"{title}: {ratios} the time of {peer} ({times[peer]:.3f} ms; goal {goal}x)")


class Attention(nn.Module):
    """Causal multi-head attention."""

    def __init__(self, dim: int, heads: int) -> None:
        self.heads = heads
        self.qkv = layers.Dense(dim, 3 * dim)
        self.out = layers.Dense(dim, dim)

    def forward(self, x: Any) -> Any:
        """Return outputs of shape (batch, length, dim)."""
        b, t, d = x.shape
        parts = ops.reshape(self.qkv(x), (b, t, 3, self.heads, d // self.heads))
        q, k, v = ops.unstack(ops.transpose(parts, (2, 0, 3, 1, 4)), axis=0)
        y = ops.scaled_dot_product_attention(q, k, v, causal=True)
        return self.out(ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (b, t, d)))


class Block(nn.Module):
    """Pre-norm residual attention and MLP."""

    def __init__(self, dim: int, heads: int) -> None:
        self.norm1 = layers.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.norm2 = layers.LayerNorm(dim)
        self.mlp = layers.MLP(dim)

    def forward(self, x: Any) -> Any:
        """Return outputs of shape (batch, length, dim)."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Two blocks between an embedding and a head."""

    def __init__(self, dim: int, heads: int, length: int) -> None:
        self.embedding = layers.Embedding(VOCABULARY, dim)
        self.positions = nn.Parameter(ops.zeros((length, dim)))
        self.blocks = [Block(dim, heads), Block(dim, heads)]
        self.norm = layers.LayerNorm(dim)
        self.head = layers.Dense(dim, VOCABULARY)

    def forward(self, x: Any) -> Any:
        """Return the logits of tokens of shape (batch, length)."""
        x = self.embedding(x) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def torch_transformer(size: Size) -> Any:
    """The same in PyTorch."""
    import torch
    from torch import nn as tnn
    from torch.nn import functional as F

    class TBlock(tnn.Module):
        def __init__(self) -> None:
            super().__init__()
            d = size.dim
            self.norm1, self.norm2 = tnn.LayerNorm(d), tnn.LayerNorm(d)
            self.qkv, self.out = tnn.Linear(d, 3 * d), tnn.Linear(d, d)
            self.up, self.down = tnn.Linear(d, 4 * d), tnn.Linear(4 * d, d)

        def forward(self, x: Any) -> Any:
            b, t, d = x.shape
            parts = self.qkv(self.norm1(x)).view(b, t, 3, size.heads, d // size.heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class TTransformer(tnn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = tnn.Embedding(VOCABULARY, size.dim)
            self.positions = tnn.Parameter(torch.zeros(size.length, size.dim))
            self.blocks = tnn.ModuleList([TBlock(), TBlock()])
            self.norm = tnn.LayerNorm(size.dim)
            self.head = tnn.Linear(size.dim, VOCABULARY)

        def forward(self, x: Any) -> Any:
            x = self.embedding(x) + self.positions
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return TTransformer()


def keras_transformer(size: Size) -> Any:
    """The same in Keras."""
    import keras
    from keras import layers as kl

    d = size.dim
    symbols = keras.Input((size.length,), dtype="int32")
    x = kl.Embedding(VOCABULARY, d)(symbols)
    for _ in range(2):
        y = kl.LayerNormalization(epsilon=1e-5)(x)
        attention = kl.MultiHeadAttention(size.heads, d // size.heads)
        x = x + attention(y, y, use_causal_mask=True)
        y = kl.LayerNormalization(epsilon=1e-5)(x)
        x = x + kl.Dense(d)(kl.Dense(4 * d, activation="gelu")(y))
    x = kl.Dense(VOCABULARY)(kl.LayerNormalization(epsilon=1e-5)(x))
    return keras.Model(symbols, x)


def symbols(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets."""
    rng = np.random.default_rng(0)
    shape = size.batch, size.length
    return rng.integers(0, VOCABULARY, shape), rng.integers(0, VOCABULARY, shape)


def vectors(features: int, classes: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets of an MLP."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, features)).astype(np.float32)
    return x, rng.integers(0, classes, batch)


def ember_step(
    model: nn.Module, x: np.ndarray, y: np.ndarray, compiled: bool | None = None
) -> tuple[Contestant, Contestant]:
    """Return the trainer's step and the forward pass."""
    options = {"optimizer": "adamw", "learning_rate": RATE, "progress": False, "compile": compiled}
    trainer = Trainer(model, "cross_entropy", **options)
    batch = array(x), array(y)
    forward = model.train()
    return lambda: trainer.train_step(batch), lambda: forward(batch[0])


def torch_step(model: Any, x: np.ndarray, y: np.ndarray) -> tuple[Contestant, Contestant]:
    """Return a hand-written training step and the forward pass."""
    import torch
    from torch.nn import functional as F

    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    inputs, targets = torch.from_numpy(x), torch.from_numpy(y)

    def step() -> None:
        optimizer.zero_grad()
        logits = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()

    def forward() -> None:
        with torch.no_grad():
            model(inputs)

    return step, forward


def keras_step(model: Any, x: np.ndarray, y: np.ndarray) -> tuple[Contestant, Contestant]:
    """Return Keras' own training step and the forward pass."""
    import keras
    import torch

    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.AdamW(RATE), loss=loss)
    inputs, targets = torch.from_numpy(x), torch.from_numpy(y)

    def forward() -> None:
        with torch.no_grad():
            model(inputs)

    return lambda: model.train_on_batch(inputs, targets), forward


def compare(title: str, pairs: dict[str, Any], peer: str, goal: float, repeats: int) -> None:
    """Print the times of step and forward pass of each."""
    steps = {name: step for name, (step, _) in pairs.items()}
    forwards = {name: forward for name, (_, forward) in pairs.items()}
    report(f"{title}, step", race(steps, repeats), peer, goal)
    report(f"{title}, forward", race(forwards, repeats), peer, FORWARD_GOAL)


def on_torch(models: list[str]) -> None:
    """Compare Ember on torch with hand-written torch and Keras."""
    import keras
    import torch

    torch.set_num_threads(1)
    ember.set_backend("torch")
    if "transformer" in models:
        for size in SIZES:
            x, y = symbols(size)
            pairs = {
                "hand-written torch": torch_step(torch_transformer(size), x, y),
                "Ember": ember_step(Transformer(size.dim, size.heads, size.length), x, y),
                "Keras": keras_step(keras_transformer(size), x, y),
            }
            title = f"torch, transformer d={size.dim} batch {size.batch} length {size.length}"
            compare(title, pairs, "hand-written torch", size.step_goal, size.repeats)
    if "mlp" in models:
        for features, hidden, classes, batch, goal in WIDE:
            x, y = vectors(features, classes, batch)
            parts: list[Any] = []
            for a, b in zip([features, *hidden], [*hidden, classes], strict=True):
                parts += [torch.nn.Linear(a, b), torch.nn.GELU()]
            dense = [keras.layers.Dense(n, activation="gelu") for n in hidden]
            pairs = {
                "hand-written torch": torch_step(torch.nn.Sequential(*parts[:-1]), x, y),
                "Ember": ember_step(layers.MLP(features, hidden, classes), x, y),
                "Keras": keras_step(
                    keras.Sequential(
                        [keras.Input((features,)), *dense, keras.layers.Dense(classes)]
                    ),
                    x,
                    y,
                ),
            }
            compare(f"torch, MLP {features}-{hidden}", pairs, "hand-written torch", goal, 100)


def mlx_step(model: Any, x: np.ndarray, y: np.ndarray) -> tuple[Contestant, Contestant]:
    """Return an mlx.nn step, compiled as a whole as its documentation shows."""
    import mlx.core as mx
    import mlx.nn as mnn
    import mlx.optimizers as mo

    optimizer = mo.AdamW(learning_rate=RATE, bias_correction=True)  # as in AdamW and in Ember
    inputs, targets = mx.array(x), mx.array(y)
    loss_and_grad = mnn.value_and_grad(
        model, lambda a, b: mnn.losses.cross_entropy(model(a), b, reduction="mean")
    )
    state = [model.state, optimizer.state]

    def compiled(a: Any, b: Any) -> Any:
        loss, grads = loss_and_grad(a, b)
        optimizer.update(model, grads)
        return loss

    run = mx.compile(compiled, inputs=state, outputs=state)

    def step() -> None:
        mx.eval(run(inputs, targets), state)

    return step, lambda: mx.eval(model(inputs))


def mlx_transformer(size: Size) -> Any:
    """The same in mlx.nn."""
    import mlx.core as mx
    import mlx.nn as mnn

    class MBlock(mnn.Module):
        def __init__(self) -> None:
            super().__init__()
            d = size.dim
            self.norm1, self.norm2 = mnn.LayerNorm(d), mnn.LayerNorm(d)
            self.qkv, self.out = mnn.Linear(d, 3 * d), mnn.Linear(d, d)
            self.up, self.down = mnn.Linear(d, 4 * d), mnn.Linear(4 * d, d)

        def __call__(self, x: Any) -> Any:
            b, t, d = x.shape
            parts = self.qkv(self.norm1(x)).reshape(b, t, 3, size.heads, d // size.heads)
            q, k, v = parts.transpose(2, 0, 3, 1, 4)
            scale = (d // size.heads) ** -0.5
            y = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask="causal")
            x = x + self.out(y.transpose(0, 2, 1, 3).reshape(b, t, d))
            return x + self.down(mnn.gelu(self.up(self.norm2(x))))

    class MTransformer(mnn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = mnn.Embedding(VOCABULARY, size.dim)
            self.positions = mx.zeros((size.length, size.dim))
            self.blocks = [MBlock(), MBlock()]
            self.norm = mnn.LayerNorm(size.dim)
            self.head = mnn.Linear(size.dim, VOCABULARY)

        def __call__(self, x: Any) -> Any:
            x = self.embedding(x) + self.positions
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return MTransformer()


def evaluated(pair: tuple[Contestant, Contestant]) -> tuple[Contestant, Contestant]:
    """Return functions that evaluate the lazy forward pass."""
    import mlx.core as mx

    return pair[0], lambda: mx.eval(pair[1]().native)


def on_mlx(models: list[str]) -> None:
    """Compare Ember on MLX with mlx.nn."""
    import mlx.nn as mnn

    ember.set_backend("mlx")
    if "transformer" in models:
        for size in SIZES:
            x, y = symbols(size)
            model = Transformer(size.dim, size.heads, size.length)
            pairs = {
                "mlx.nn": mlx_step(mlx_transformer(size), x, y),
                "Ember": evaluated(ember_step(model, x, y, compiled=True)),
            }
            title = f"MLX, transformer d={size.dim} batch {size.batch} length {size.length}"
            compare(title, pairs, "mlx.nn", 1.05, size.repeats // 3)
    if "mlp" in models:
        for features, hidden, classes, batch, _ in WIDE:
            x, y = vectors(features, classes, batch)
            parts: list[Any] = []
            for a, b in zip([features, *hidden], [*hidden, classes], strict=True):
                parts += [mnn.Linear(a, b), mnn.GELU()]
            pairs = {
                "mlx.nn": mlx_step(mnn.Sequential(*parts[:-1]), x, y),
                "Ember": evaluated(ember_step(layers.MLP(features, hidden, classes), x, y, True)),
            }
            compare(f"MLX, MLP {features}-{hidden}", pairs, "mlx.nn", 1.05, 30)


def main(wanted: list[str]) -> None:
    """Run the selected benchmarks, or all."""
    models = [name for name in ("mlp", "transformer") if name in wanted] or ["mlp", "transformer"]
    backends = [name for name in ("torch", "mlx") if name in wanted] or ["torch", "mlx"]
    for backend in backends:
        {"torch": on_torch, "mlx": on_mlx}[backend](models)


if __name__ == "__main__":
    main(sys.argv[1:])
