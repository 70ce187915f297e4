"""Character language model with hybrid layers, trained on Python's language reference.

    python examples/characters.py [--backend torch] [--layers PATTERN] [--epochs 5] [--quick]

The script prints bits per character on held-out text next to those of n-gram models, samples of the
model, and a check that another backend continues a text in the same way. The text is
`pydoc_data.topics`, which is part of CPython. Files are written to runs/characters.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import ember_ml as ember
from ember_ml import nn, ops
from ember_ml.training import Trainer

LAYERS = "(mamba swiglu)x2 attention[num_heads=4, window=64] swiglu"
PROMPT = "The "
NATS = math.log(2.0)  # per bit


def read() -> str:
    """Return the reference with each paragraph once, because topics quote each other."""
    paragraphs = (part for name in sorted(topics) for part in re.split(r"\n\s*\n", topics[name]))
    return "\n\n".join({" ".join(part.split()): part for part in paragraphs}.values())


def windows(text: str, alphabet: str, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return windows of the text and their next characters, as ids of shape (windows, length)."""
    numbers = np.array([alphabet.index(letter) for letter in text])
    end = (len(numbers) - 1) // length * length
    return numbers[:end].reshape(-1, length), numbers[1 : end + 1].reshape(-1, length)


def counted_bits(train: str, test: str, order: int, letters: int) -> float:
    """Return bits per character of an n-gram model with back-off (Witten and Bell, 1991)."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for size in range(order):
        for at in range(size, len(train)):
            counts[train[at - size : at]][train[at]] += 1
    bits = 0.0
    for at in range(order, len(test)):
        chance = 1.0 / letters
        for size in range(order):
            seen = counts.get(test[at - size : at], Counter())
            total, kinds = seen.total(), len(seen)
            if total:
                chance = (seen[test[at]] + kinds * chance) / (total + kinds)
        bits -= math.log2(chance)
    return bits / (len(test) - order)


def train(model: nn.Module, data: Any, held_out: Any, options: argparse.Namespace) -> Trainer:
    """Train the model and return the trainer."""
    steps = options.epochs * -(-len(data[0]) // 16)
    trainer = Trainer(
        model,
        "cross_entropy",
        optimizer={"type": "adamw", "learning_rate": 3e-3, "weight_decay": 0.1},
        schedule={"type": "cosine", "warmup_steps": min(50, steps // 4)},
        clip_norm=1.0,
        seed=options.seed,
        progress=not options.quick,
    )
    trainer.fit(data, held_out, epochs=options.epochs, batch_size=16)
    return trainer


def bits_by_place(trainer: Trainer, held_out: Any) -> np.ndarray:
    """Return the held-out bits per character at each position of a window."""
    logits = trainer.predict(held_out[0])
    chances = ops.log_softmax(logits, axis=-1).numpy()
    return -np.take_along_axis(chances, held_out[1][..., None], axis=-1).mean(axis=(0, 2)) / NATS


def written(model: Any, alphabet: str, count: int, prompt: str = PROMPT, **how: Any) -> str:
    """Return the prompt and its continuation by the model."""
    tokens = model.generate([alphabet.index(letter) for letter in prompt], count, **how)
    return "".join(alphabet[token] for token in tokens.tolist())


def state_size(model: Any, steps: int) -> int:
    """Return the number of values in the state after some characters."""

    def size(state: Any) -> int:
        return sum(map(size, state)) if isinstance(state, tuple | list) else state.size

    state, token = model.initial_state(1), ops.zeros((1,), dtype="int64")
    for _ in range(steps):
        _, state = model.step(token, state)
    return size(state)


def continued_elsewhere(model: Any, alphabet: str, folder: Path, backend: str) -> None:
    """Save the model, load it on another backend, and compare the generated text."""
    ember.save(model, folder)
    here = written(model, alphabet, 80)
    for other in [name for name in ember.backend.available() if name != backend][:1]:
        with ember.use_backend(other):
            there = written(ember.load(folder), alphabet, 80)
        same = "the same" if there == here else f"not the same: {there!r}"
        print(f"\n{backend} writes {here!r}\n{other}, from the checkpoint: {same}")


def draw(trainer: Trainer, places: np.ndarray, baselines: dict[str, float], path: Path) -> None:
    """Plot the learning curve and the bits at each position, with the baselines."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps, epochs = trainer.history.steps, trainer.history.epochs
    losses = [step["loss"] / NATS for step in steps]
    left.plot([step["step"] for step in steps], losses, lw=0.7, color="0.7", label="training")
    points = [(epoch["step"], epoch["val_loss"] / NATS) for epoch in epochs]
    left.plot(*zip(*points, strict=True), marker="o", color="tab:orange", label="held out")
    right.plot(range(1, len(places) + 1), places, color="tab:orange", label="held out")
    for axes in (left, right):
        for color, (name, bits) in zip(
            ("0.6", "tab:blue", "tab:green"), baselines.items(), strict=True
        ):
            axes.axhline(bits, ls="--", lw=1, color=color, label=name)
        axes.spines[["top", "right"]].set_visible(False)
    left.set(xlabel="step", ylabel="bits per character")
    right.set(xlabel="position in the window", xscale="log")
    left.legend(frameon=False)
    figure.savefig(path, dpi=110)


def run(options: argparse.Namespace) -> None:
    """Train, evaluate, generate, plot, and compare with another backend."""
    text, length, width = read(), 128, 128
    if options.quick:
        text, length, width = text[:4000], 32, 16
    alphabet = "".join(sorted(set(text)))
    part = len(text) * 9 // 10
    data, held_out = (windows(t, alphabet, length) for t in (text[:part], text[part:]))
    ops.random.set_seed(options.seed)
    model = nn.models.LanguageModel(options.layers, len(alphabet), width, dropout=0.1)
    print(f"{part} training characters, {len(text) - part} held out, {len(alphabet)} distinct")
    print(f"{options.layers}: {model.num_parameters()} parameters on {options.backend}")
    trainer = train(model, data, held_out, options)
    names = {"unigram": 1, "3-gram": 3, "5-gram": 5}
    baselines = {
        name: counted_bits(text[:part], text[part:], order, len(alphabet))
        for name, order in names.items()
    }
    results = baselines | {"model": trainer.history.epochs[-1]["val_loss"] / NATS}
    print("bits per character:", "  ".join(f"{name} {bits:.3f}" for name, bits in results.items()))
    places = bits_by_place(trainer, held_out)
    draw(trainer, places, baselines, options.out / "characters.png")
    model.eval()
    count = 40 if options.quick else 300
    for temperature in (0.5, 1.0):
        sample = written(model, alphabet, count, temperature=temperature, seed=0)
        print(f"\n--- temperature {temperature}\n{sample}")
    sizes = [state_size(model, steps) for steps in (100, 300)]  # the window of 64 is full
    print(f"\nthe state has {sizes[0]} values after 100 characters and {sizes[1]} after 300")
    continued_elsewhere(model, alphabet, options.out / "model", options.backend)


def main(arguments: list[str] | None = None) -> None:
    """Parse the options and run on the selected backend."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default=ember.get_backend(), help="default: the active one")
    parser.add_argument("--layers", default=LAYERS, help="pattern of the layers")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/characters"))
    parser.add_argument("--quick", action="store_true", help="tiny model and text, one epoch")
    options = parser.parse_args(arguments)
    options.epochs = 1 if options.quick else options.epochs
    options.out.mkdir(parents=True, exist_ok=True)
    with ember.use_backend(options.backend):
        run(options)


if __name__ == "__main__":
    main()
