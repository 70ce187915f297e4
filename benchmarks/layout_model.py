"""Sizes of a hybrid model of 7 billion parameters, for `layout_arithmetic.py`.

The parameters are those of the model, built without values. Activations are the results of the ops
of one block at two small widths; their size is an affine function of the width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ember_ml import nn, ops
from ember_ml._core import recording, tree
from ember_ml._core.deferred import deferred
from ember_ml._core.tensor import EmberTensor
from ember_ml.distributed import Strategy
from ember_ml.nn._flop_formulas import FREE

WIDTH, VOCABULARY = 4096, 65536
INNER, STATES, CHUNK = 8192, 128, 128
"""Inner channels, states and positions of a chunk of Mamba-2."""
COUNTS = {"mamba2": 28, "attention": 4, "swiglu": 32}
BLOCKS = sum(COUNTS.values())
VIEWS = FREE - {"joining", "padding", "dtypes"}
"""Families of ops whose results are views."""
SMALL = (512, 1024)
"""Widths at which activations are counted."""


def layer(name: str, width: int) -> str:
    """Return the pattern of a layer of the model at some width."""
    heads = width // 128
    options = {
        "mamba2": f"d_state={STATES},head_dim=64,chunk_size={CHUNK}",
        "attention": f"num_heads={heads},num_kv_heads={max(1, heads // 4)}",
        "swiglu": f"inner_features={9 * width // 4}",
    }
    return f"{name}[{options[name]}]"


def pattern(width: int = WIDTH) -> str:
    """Return the pattern of the model's layers: every eighth sequence mixer is attention."""
    mamba, attention, swiglu = (layer(name, width) for name in COUNTS)
    return f"(({mamba} {swiglu})x7 {attention} {swiglu})x4"


@dataclass(frozen=True)
class ModelSizes:
    """Sizes of the model.

    Attributes:
        tensors: Elements of each parameter.
        units: Parameters of each block, which FSDP2 gathers together.
        kept: Bytes of the results of a block's ops for each token in bfloat16, by layer.
    """

    tensors: list[int]
    units: list[int]
    kept: dict[str, float]

    @property
    def parameters(self) -> int:
        """Number of all parameters."""
        return sum(self.tensors)

    @property
    def root(self) -> int:
        """Number of parameters outside of blocks: embedding, head and last norm."""
        return self.parameters - sum(self.units)

    def flops(self, length: int) -> float:
        """Return the operations of a forward pass for one token: products, attention, scan."""
        products = 2 * (self.parameters - VOCABULARY * WIDTH)  # the embedding is a lookup
        causal = 2 * length * WIDTH
        scan = 2 * CHUNK * (STATES + INNER) + 4 * INNER * STATES
        return products + COUNTS["attention"] * causal + COUNTS["mamba2"] * scan

    def kept_split(self, tp: int) -> dict[str, float]:
        """Return `kept` if `tp` processes split a layer; three results are not split."""
        whole = 3 * WIDTH * 2  # outputs of the norm and of the layer, and their sum with the input
        return {name: whole + (size - whole) / tp for name, size in self.kept.items()}


class Results:
    """Recorder that adds up the bytes of the results of ops that are not views."""

    causal = None
    quick = None

    def __init__(self) -> None:
        self.total = 0

    def log_of(self, operands: list[EmberTensor]) -> None:
        """Return None: no values are tracked."""

    def call(self, op: Any, args: Any, kwargs: Any, tapes: tuple[Any, ...]) -> Any:
        """Run an op, and count its results."""
        with recording.only():
            out = op.plain(*args, **kwargs)
        if op.family not in VIEWS:
            self.total += sum(x.nbytes for x in tree.leaves_of(out) if isinstance(x, EmberTensor))
        return out


def kept_bytes(name: str, width: int) -> float:
    """Return the bytes of the results of a block's ops for each token, in bfloat16."""
    block = nn.models.Backbone(layer(name, width), width).blocks.layers[0].to(dtype="bfloat16")
    x = ops.zeros((1, 4 * CHUNK, width), dtype="bfloat16")
    results = Results()
    with recording.only(results):
        block(x)
    return results.total / x.shape[1]


def kept_at_full_width(name: str) -> float:
    """Return `kept_bytes` at the width of the model, from those at two small widths."""
    low, high = SMALL
    first, second = kept_bytes(name, low), kept_bytes(name, high)
    return first + (second - first) * (WIDTH - low) / (high - low)


def read_sizes() -> ModelSizes:
    """Return the sizes of the model."""
    with deferred(2**40):
        model = nn.models.LanguageModel(pattern(), VOCABULARY, WIDTH)
    units = [sum(x.size for x in unit.parameters()) for unit in Strategy().units_of(model)]
    kept = {name: kept_at_full_width(name) for name in COUNTS}
    return ModelSizes([x.size for x in model.parameters()], units, kept)
