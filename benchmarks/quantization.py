"""Memory, quality and decoding time of quantized character models, against float32.

Trains a language model of hidden size 256 on the other pages of docs/ for about a minute, then
quantizes it. The quality is measured on the last tenth of the text, which is not trained on. The
decoding time is that of greedy generation of one sequence with a KV cache, measured in turns. The
memory is that of the stored parameters and buffers.

    OMP_NUM_THREADS=1 python benchmarks/quantization.py [steps]
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import available, use_backend
from ember_ml.data.text import TokenWindows, Vocabulary
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.quantization import quantize
from ember_ml.training import Trainer

DOCS = Path(__file__).parents[1] / "docs"
OWN_PAGE = "quantization.md"
"""Page with the results, which must not change them."""
SEQ_LEN, BATCH_SIZE, STEPS = 64, 8, 300
REPEATS, TOKENS = 5, 32
GOAL_MEMORY, GOAL_BITS = 0.3, 0.01
VARIANTS = {
    "float32": None,
    "int8": {"bits": 8},
    "int8, with embeddings and head": {"bits": 8, "skip": (), "embeddings": True},
    "int4": {"bits": 4},
    "int4, groups of 32": {"bits": 4, "group_size": 32},
}


def train(windows: TokenWindows, vocab_size: int, steps: int) -> LanguageModel:
    """Return a trained model."""
    ops.random.set_seed(0)
    model = LanguageModel("(attention swiglu)x2", vocab_size, hidden_size=256)
    trainer = Trainer(model, "cross_entropy", learning_rate=2e-3, progress=False)
    trainer.fit(windows, until_step=steps, batch_size=BATCH_SIZE)
    print(f"{model.num_parameters():,} parameters, trained for {trainer.step} steps")
    return model


def bits_per_character(model: nn.Module, windows: TokenWindows) -> float:
    """Return the cross-entropy of the next character in bits."""
    trainer = Trainer(model, "cross_entropy", progress=False)
    return float(trainer.evaluate(windows, batch_size=BATCH_SIZE)["loss"]) / math.log(2.0)


def decode_times(models: dict[str, LanguageModel], backend: str) -> dict[str, float]:
    """Return the shortest time of a generation by each model, measured in turns."""
    times = dict.fromkeys(models, math.inf)
    with use_backend(backend):
        for model in models.values():
            model.to_backend(backend)
            model.generate([[1, 2, 3]], max_new_tokens=2).numpy()
        for _ in range(REPEATS):
            for name, model in models.items():
                start = time.perf_counter()
                model.generate([[1, 2, 3]], max_new_tokens=TOKENS).numpy()
                times[name] = min(times[name], time.perf_counter() - start)
    return times


def main() -> None:
    """Train, quantize, and print a row per variant."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    pages = sorted(path for path in DOCS.glob("*.md") if path.name != OWN_PAGE)
    text = "\n".join(path.read_text() for path in pages)
    vocabulary = Vocabulary.of(text)
    ids = vocabulary.encode(text)
    end = len(ids) * 9 // 10
    train_windows, windows = TokenWindows(ids[:end], SEQ_LEN), TokenWindows(ids[end:], SEQ_LEN)
    model = train(train_windows, vocabulary.vocab_size, steps)
    models = {
        name: model if options is None else quantize(model, **options)[0]
        for name, options in VARIANTS.items()
    }
    base, base_bits = model.num_bytes(), bits_per_character(model, windows)
    print(f"{'weights':32} {'memory':>7} {'bits per character':>19} {'loss':>8}")
    for name, each in models.items():
        bits = bits_per_character(each, windows)
        ratio = each.num_bytes() / base
        print(f"{name:32} {ratio:6.3f}x {bits:19.4f} {bits - base_bits:+8.4f}")
    print(f"goal for int8: at most {GOAL_MEMORY}x, and a loss of less than {GOAL_BITS}")
    for backend in available():
        times = decode_times(models, backend)
        ratios = "  ".join(f"{name} {t / times['float32']:.2f}x" for name, t in times.items())
        print(f"decoding on {backend}: {ratios}")


if __name__ == "__main__":
    ember_ml.set_backend("torch")
    main()
