"""Tiny models and sequences for the tests of serving."""

from __future__ import annotations

import time
from typing import Any

from ember_ml import nn, ops
from ember_ml.nn.models.decoding.options import Options
from ember_ml.nn.models.decoding.stopping import Stopping
from ember_ml.serving import Engine, Mailbox, Sequence
from ember_ml.serving.sequences import Failed, NewToken

PATTERNS = {
    "attention": "attention swiglu attention",
    "mamba": "mamba swiglu",
    "rwkv": "rwkv",
    "gru": "gru",
    "hybrid": "mamba swiglu attention swiglu gru",
}


def tiny(pattern: str = "attention", **options: Any) -> nn.models.LanguageModel:
    """Return a model with weights large enough for distinct logits."""
    ops.random.set_seed(3)
    layers = PATTERNS.get(pattern, pattern)
    model = nn.models.LanguageModel(layers, vocab_size=32, hidden_size=16, **options).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.assign(parameter * 3)
    return model


def sequence(
    model: nn.models.LanguageModel,
    prompt: list[int],
    max_new_tokens: int = 8,
    *,
    seed: int = 0,
    mailbox: Mailbox | None = None,
    timeout: float = 60.0,
    log_probs: int | None = None,
    **options: Any,
) -> Sequence:
    checked = Options.of(options, model.vocab_size)
    return Sequence(
        prompt,
        max_new_tokens,
        checked,
        Stopping(checked, model.vocab_size, model.tokenizer),
        seed,
        mailbox or Mailbox(),
        time.monotonic() + timeout,
        log_probs,
    )


async def outcome(each: Sequence) -> list[NewToken] | Exception:
    """Return the tokens of a sequence, or its error; its mailbox must be its own."""
    tokens: list[NewToken] = []
    while True:
        for _, event in await each.mailbox.take():
            if isinstance(event, Failed):
                return event.error
            tokens.append(event)
            if event.finish_reason is not None:
                return tokens


async def tokens_of(engine: Engine, each: Sequence) -> list[int]:
    """Submit a sequence and return its tokens."""
    engine.submit([each])
    result = await outcome(each)
    if isinstance(result, Exception):
        raise result
    return [token.token for token in result]
