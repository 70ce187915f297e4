"""Cost of inference: prefill, decoding and memory, against a forward pass and transformers.

All models have the same random weights in Ember and in transformers, and run on one thread of a
CPU, on PyTorch, in one process and in turns. The best of several runs counts. "compiled" is
`generate(compile=True)`, after it was compiled.

    python benchmarks/inference.py [prefill | decode | memory]
"""

from __future__ import annotations

import functools
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers

import ember_ml as ember
from ember_ml._core import tree
from ember_ml.nn import states
from ember_ml.nn.models import LanguageModel, convert
from ember_ml.nn.tensor import Tensor, array

PROMPT = 1024
NEW = 64
VOCABULARY = 256


def race(contestants: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the best CPU time of each in ms, measured in turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for turn in range(repeats + 1):
        for name, run in contestants.items():
            start = time.process_time()
            run()
            if turn:
                best[name] = min(best[name], (time.process_time() - start) * 1e3)
    return best


def pattern(layers: str, **options: Any) -> LanguageModel:
    """Return a model of four blocks of width 256, in inference mode."""
    ember.ops.random.set_seed(0)
    return LanguageModel(layers, VOCABULARY, 256, **options).eval()


def mixers() -> dict[str, LanguageModel]:
    """Return a model for each kind of mixer."""
    names = {
        "attention": "(mh_attention[num_heads=8] swiglu)x4",
        "mamba": "(mamba[d_state=16])x4",
        "gla": "(mh_gated_linear_attention swiglu)x4",
        "rwkv6": "(rwkv6_time_mixer rwkv6_channel_mixer)x4",
        "hyena": "(hyena swiglu)x4",
        "gru": "(gru swiglu)x4",
    }
    return {name: pattern(layers, max_length=2 * PROMPT) for name, layers in names.items()}


def tokens(length: int) -> np.ndarray:
    """Return a prompt of random tokens."""
    return np.random.default_rng(0).integers(0, VOCABULARY, (1, length))


def prefill() -> None:
    """Compare a prefill with one forward pass, and the first token with transformers'."""
    prompt = array(tokens(PROMPT))
    for name, model in mixers().items():
        contestants = {
            "forward": lambda model=model: model(prompt),
            "prefill": lambda model=model: model.prefill(prompt),
        }
        best = race(contestants, 8)
        print(
            f"prefill of {PROMPT} tokens, {name:10} {best['prefill']:8.1f} ms  "
            f"forward {best['forward']:8.1f} ms  ratio {best['prefill'] / best['forward']:5.2f} "
            "(goal 1.15)"
        )
    for name, theirs in peers().items():
        ours = converted(theirs)
        source = torch.tensor(tokens(PROMPT))
        contestants = {
            "Ember": lambda ours=ours: ours.generate(tokens(PROMPT), 1),
            "transformers": lambda theirs=theirs, source=source: theirs.generate(
                source, max_new_tokens=1, do_sample=False
            ),
        }
        best = race(contestants, 5)
        print(
            f"first token after {PROMPT}, {name:10} {best['Ember']:8.1f} ms  transformers "
            f"{best['transformers']:8.1f} ms  ratio {best['Ember'] / best['transformers']:5.2f} "
            "(goal 1.1)"
        )


def peers() -> dict[str, Any]:
    """Return models of transformers with four layers of width 256, in inference mode."""
    torch.manual_seed(0)
    sizes = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None}
    llama = transformers.LlamaConfig(
        hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=8,
        max_position_embeddings=4 * PROMPT, pad_token_id=0, **sizes,
    )  # fmt: skip
    gpt2 = transformers.GPT2Config(
        n_embd=256, n_layer=4, n_head=8, n_positions=4 * PROMPT, pad_token_id=0, **sizes
    )
    mamba = transformers.MambaConfig(hidden_size=256, num_hidden_layers=4, pad_token_id=0, **sizes)
    return {
        "Llama": transformers.LlamaForCausalLM(llama).eval(),
        "GPT-2": transformers.GPT2LMHeadModel(gpt2).eval(),
        "Mamba": transformers.MambaForCausalLM(mamba).eval(),
    }


def converted(model: Any) -> Any:
    """Return an Ember model with the weights of a model of transformers."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return convert.convert(folder).eval()


def decode() -> None:
    """Compare the tokens per second with transformers', and those of mixers with attention's."""
    for length in (32, PROMPT):
        for name, theirs in peers().items():
            compare_decoding(name, theirs, length)
    compare_mixers()


def compare_decoding(name: str, theirs: Any, length: int) -> None:
    """Compare the time of a token after a prompt with transformers'."""
    ours = converted(theirs)
    prompt, source = tokens(length), torch.tensor(tokens(length))

    def ember_run(count: int, compiled: bool) -> None:
        ours.generate(prompt, count, compile=compiled)

    def peer_run(count: int) -> None:
        theirs.generate(source, max_new_tokens=count, min_new_tokens=count, do_sample=False)

    best = race(
        {
            f"{kind} {count}": functools.partial(run, count)
            for count in (1, NEW + 1)
            for kind, run in {
                "Ember": functools.partial(ember_run, compiled=False),
                "compiled": functools.partial(ember_run, compiled=True),
                "transformers": peer_run,
            }.items()
        },
        4,
    )
    each = {
        kind: (best[f"{kind} {NEW + 1}"] - best[f"{kind} 1"]) / NEW
        for kind in ("Ember", "compiled", "transformers")
    }
    peer = each["transformers"]
    print(
        f"token after {length:4}, {name:6} transformers {peer:6.2f} ms; tokens per second: Ember "
        f"{peer / each['Ember']:5.2f}x, compiled {peer / each['compiled']:5.2f}x "
        f"(goal {3.0 if name == 'Mamba' else 1.5})"
    )


def compare_mixers() -> None:
    """Compare the time of a token of each mixer with attention's."""
    prepared = {}
    for name, model in mixers().items():
        _, state = model.prefill(array(tokens(PROMPT)))
        prepared[name] = model, states.reserve(state)
    runs = {name: (lambda pair=pair: _steps(*pair)) for name, pair in prepared.items()}
    best = race(runs, 4)
    for name, value in best.items():
        goal = " (goal 3)" if name == "hyena" else ""
        print(
            f"token after {PROMPT}, {name:10} {value / NEW:6.2f} ms, "
            f"{value / best['attention']:5.2f} times attention's{goal}"
        )


def _steps(model: LanguageModel, state: Any) -> None:
    token = array([1])
    for _ in range(NEW):
        logits, state = model.step(token, state)
        token = ember.ops.argmax(logits, axis=-1)


def memory() -> None:
    """Print the size of a sequence's state after prompts of two lengths."""
    for name, model in mixers().items():
        sizes = []
        for length in (PROMPT // 4, PROMPT):
            _, state = model.prefill(array(tokens(length)))
            leaves = [x for x in tree.leaves_of(state) if isinstance(x, Tensor)]
            sizes.append(sum(x.nbytes for x in leaves) / 2**20)
        print(f"state of one sequence, {name:10} {sizes[0]:6.2f} MB after {PROMPT // 4} tokens, "
              f"{sizes[1]:6.2f} MB after {PROMPT}")  # fmt: skip


def main(chosen: list[str]) -> None:
    """Run the chosen measurements, or all."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    parts = {"prefill": prefill, "decode": decode, "memory": memory}
    with ember.use_backend("torch"), torch.no_grad():
        for name in chosen or parts:
            parts[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
