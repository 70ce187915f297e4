"""Models for the tests of `ember serve`."""

from __future__ import annotations

from pathlib import Path

import ember_ml
from ember_ml import nn, ops
from ember_ml.data.text import Tokenizer

TEXT = "to be, or not to be, that is the question: whether 'tis nobler in the mind to suffer"
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'developer' %}{{ raise_exception('no developers') }}"
    "{% endif %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
BAD = 5
"""Token whose embedding is NaN, and which is never generated."""


def language_model(folder: Path, layers: str = "attention swiglu mamba") -> nn.models.LanguageModel:
    """Save a small model with a tokenizer and a chat template, and return it."""
    ops.random.set_seed(1)
    tokenizer = Tokenizer.train([TEXT] * 4, "bpe", 280)
    model = nn.models.LanguageModel(
        layers, tokenizer.vocab_size, 16, max_length=2048, positions="learned", head_bias=True
    )
    assert model.head is not None
    assert model.head.bias is not None
    for parameter in (model.head.weight, model.embedding.weight):
        parameter.assign(parameter * 4)
    is_bad = ops.arange(tokenizer.vocab_size) == BAD
    model.head.bias.assign(ops.where(is_bad, -1e9, model.head.bias))
    weight = model.embedding.weight
    weight.assign(ops.where(is_bad[:, None], float("nan"), weight))
    model.tokenizer = tokenizer
    ember_ml.save(model.eval(), folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return model
