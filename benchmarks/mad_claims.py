"""Known results of MAD: attention learns recall, a fixed linear recurrence does not.

- Memorization as MAD has it, mh-attention and swiglu, learning rate 1e-3: steps to 99.9 %.
- In-context recall at a reduced size: attention compared with LRU, a linear recurrence
  whose decay does not depend on the input, at the same width and several learning rates of LRU.

    python benchmarks/mad_claims.py [backend]
"""

from __future__ import annotations

import sys

import ember_ml
from ember_ml.configs.mad import RunConfig
from ember_ml.mad import Result, architecture, execute

RECALL = {"type": "in-context-recall", "vocab_size": 16, "seq_len": 64, "num_validation": 256}


def run(pattern: str, task: dict[str, object], **options: object) -> Result:
    """Do a training run and print its result."""
    layers = architecture(pattern).layers
    result = execute(RunConfig(architecture=pattern, layers=layers, task=task, **options))
    print(
        f"{task['type']}, {pattern}, learning rate {options['learning_rate']:g}: "
        f"{100 * result.accuracy:.1f} % after {result.steps} steps, "
        f"{result.parameters} parameters",
        flush=True,
    )
    return result


def main() -> None:
    """Do all runs."""
    if sys.argv[1:]:
        ember_ml.set_backend(sys.argv[1])
    run(
        "mh-attention+swiglu",
        {"type": "memorization"},
        learning_rate=1e-3,
        steps=400,
        evaluate_every=2,
    )
    small = {"hidden_size": 64, "batch_size": 32, "evaluate_every": 50}
    run("attention+swiglu", RECALL, learning_rate=3e-3, steps=500, **small)
    for rate in (1e-3, 3e-3, 1e-2):
        run("lru+swiglu", RECALL, learning_rate=rate, steps=1000, **small)


if __name__ == "__main__":
    main()
