"""Language model with a trained BPE tokenizer, on the docstrings of Python's standard library.

    python examples/text_bpe.py [--backend torch] [--vocab-size 1000] [--steps 300] [--quick]

The script trains a tokenizer, packs the tokens of all docstrings into a memory-mapped file, trains
a small model, and prints held-out bits per character next to those of compression programs. Then it
loads model and tokenizer from one folder, and generates text. Every twelfth module is held out. The
text is that of your Python version, so numbers differ between versions. Needs the package
tokenizers. Files are written to runs/text_bpe.
"""

from __future__ import annotations

import argparse
import ast
import bz2
import lzma
import math
import sysconfig
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

import ember_ml as ember
from ember_ml import nn, ops
from ember_ml.data.text import PackedTokens, Tokenizer
from ember_ml.training import Trainer

LAYERS = "(mamba swiglu)x2 attention[num_heads=4, window=64] swiglu"
PROMPT = "Return the "
NATS = math.log(2.0)  # per bit
OTHERS = {"encodings", "idlelib", "lib2to3", "site-packages", "test"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def read(limit: int | None = None) -> tuple[list[str], list[str]]:
    """Return the docstrings of the training modules, and those of the held-out modules."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted([*folder.glob("*.py"), *folder.glob("*/*.py")])
    modules = [path for path in files if path.parent.name not in OTHERS][:limit]
    texts: tuple[dict[str, None], dict[str, None]] = ({}, {})
    for at, path in enumerate(modules):
        for node in ast.walk(ast.parse(path.read_bytes())):
            text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            if text and text not in texts[0]:  # no held-out text is a training text
                texts[at % 12 == 11][text] = None
    return list(texts[0]), [text for text in texts[1] if text not in texts[0]]


def compressed_bits(train: str, test: str, compress: Callable[[bytes], bytes]) -> float:
    """Return the bits per character that the test text adds to the compressed training text."""
    first, both = compress(train.encode()), compress((train + test).encode())
    return 8 * (len(both) - len(first)) / len(test)


def characters(texts: list[str]) -> int:
    """Return the number of characters; the end of a text counts as one."""
    return sum(map(len, texts)) + len(texts)


def train(
    model: nn.Module, data: PackedTokens, held_out: PackedTokens, options: argparse.Namespace
) -> Trainer:
    """Train the model and return the trainer."""
    trainer = Trainer(
        model,
        "cross_entropy",
        optimizer={"type": "adamw", "learning_rate": 4e-3, "weight_decay": 0.1},
        schedule={"type": "cosine", "warmup_steps": options.steps // 10},
        clip_norm=1.0,
        seed=options.seed,
        progress=not options.quick,
    )
    trainer.fit(
        data,
        held_out,
        steps=options.steps,
        batch_size=16,
        validate_every=max(1, options.steps // 4),
    )
    return trainer


def save(model: nn.Module, tokenizer: Tokenizer, folder: Path) -> None:
    """Write the model and its tokenizer to one folder."""
    ember.save(model, folder)
    tokenizer.save(folder / "tokenizer.json")


def generate(folder: Path, count: int, temperature: float) -> str:
    """Return the prompt and its continuation by the model in a folder."""
    model, tokenizer = ember.load(folder), Tokenizer.load(folder / "tokenizer.json")
    prompt = tokenizer.encode(PROMPT.rstrip())
    tokens = model.generate(prompt, count, temperature=temperature, seed=0)
    return tokenizer.decode(tokens, skip_special_tokens=False)


def draw(
    curves: dict[str, list[tuple[int, float]]],
    baselines: dict[str, float],
    sizes: dict[int, float],
    path: Path,
) -> None:
    """Plot the bits per character over the steps, and the tokens of vocabularies."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(*zip(*curves["training"], strict=True), lw=0.7, color="0.7", label="training")
    points = list(zip(*curves["held out"], strict=True))
    left.plot(*points, marker="o", color="tab:orange", label="held out")
    for color, (name, bits) in zip(("tab:blue", "tab:green"), baselines.items(), strict=True):
        left.axhline(bits, ls="--", lw=1, color=color, label=name)
    left.set(xlabel="step", ylabel="bits per character", ylim=(1.5, 5.0))
    left.legend(frameon=False)
    right.plot(list(sizes), list(sizes.values()), marker="o", color="tab:orange")
    right.set(xlabel="size of the vocabulary", ylabel="held-out characters per token", xscale="log")
    right.set_xticks(list(sizes), list(map(str, sizes)))
    right.minorticks_off()
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def run(options: argparse.Namespace) -> None:
    """Train the tokenizer and the model, evaluate, generate and plot."""
    texts, held_out = read(24 if options.quick else None)
    tokenizer = Tokenizer.train(texts, "bpe", options.vocab_size)
    length, width = (32, 16) if options.quick else (96, 96)
    train_file, test_file = (
        PackedTokens.build(part, tokenizer, options.out / f"{name}.tokens", overwrite=True)
        for name, part in (("train", texts), ("held_out", held_out))
    )
    data, test = (PackedTokens(file, length, tokenizer) for file in (train_file, test_file))
    per_token = characters(held_out) / test.num_tokens
    print(
        f"{len(texts)} docstrings with {characters(texts)} characters, {data.num_tokens} tokens; "
        f"held out {len(held_out)}, {per_token:.2f} characters per token"
    )
    ops.random.set_seed(options.seed)
    model = nn.models.LanguageModel(options.layers, tokenizer.vocab_size, width, dropout=0.1)
    print(f"{options.layers}: {model.num_parameters()} parameters on {options.backend}")
    trainer = train(model, data, test, options)

    steps = trainer.history.steps
    curves = {
        label: [(step["step"], step[key] / NATS / per_token) for step in steps if key in step]
        for label, key in (("training", "loss"), ("held out", "val_loss"))
    }
    joined = ["\0".join(part) for part in (texts, held_out)]
    baselines = {"xz": compressed_bits(*joined, lzma.compress)}
    baselines["bzip2"] = compressed_bits(*joined, bz2.compress)
    results = baselines | {"model": curves["held out"][-1][1]}
    print("bits per character:", "  ".join(f"{name} {bits:.3f}" for name, bits in results.items()))
    sizes = {}
    for size in (300, 1000) if options.quick else (300, 500, 1000, 2000, 4000):
        tokens = Tokenizer.train(texts, "bpe", size).encode_batch(held_out)
        sizes[size] = characters(held_out) / (sum(map(len, tokens)) + len(tokens))
    draw(curves, baselines, sizes, options.out / "text_bpe.png")

    save(model, tokenizer, options.out / "model")
    for temperature in (0.5, 1.0):
        sample = generate(options.out / "model", 20 if options.quick else 120, temperature)
        print(f"\n--- temperature {temperature}\n{sample}")


def main(arguments: list[str] | None = None) -> None:
    """Parse the options and run on the selected backend."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default=ember.get_backend(), help="default: the active one")
    parser.add_argument("--layers", default=LAYERS, help="pattern of the layers")
    parser.add_argument("--vocab-size", type=int, default=1000, help="tokens of the tokenizer")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/text_bpe"))
    parser.add_argument("--quick", action="store_true", help="tiny model and text, 4 steps")
    options = parser.parse_args(arguments)
    options.steps = 4 if options.quick else options.steps
    options.out.mkdir(parents=True, exist_ok=True)
    with ember.use_backend(options.backend):
        run(options)


if __name__ == "__main__":
    main()
