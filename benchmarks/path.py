"""Files that a training step crosses from batch to update, and how deep its closures nest.

The path is that of `Trainer.train_step` for a small LanguageModel, after a first fit. Files of ops,
layers and models do not count, nor do the closures that dispatch an op.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

import ember_ml
from ember_ml import nn
from ember_ml.training import Trainer

GOAL_FILES = 25
GOAL_CLOSURES = 2
PACKAGE = Path(ember_ml.__file__).parent
DISPATCH = "_core/calls.py"


def own_file(code: CodeType, backend: str) -> str | None:
    """Return the path of code in the package; None for ops, layers, models and other packages."""
    path = Path(code.co_filename)
    if not path.is_relative_to(PACKAGE):
        return None
    name = path.relative_to(PACKAGE).as_posix()
    parts = ("ops/", f"backend/{backend}/ops/", "nn/layers/", "nn/blocks/", "nn/models/")
    return None if name.startswith((*parts, "nn/activations/")) else name


def is_closure(code: CodeType) -> bool:
    """Return whether code is a nested function with variables of the outer one."""
    inline = code.co_name in ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
    return bool(code.co_flags & inspect.CO_NESTED and code.co_freevars) and not inline


class StepPath:
    """Record of the calls of a step: call counts by file, and the longest chain of closures."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.calls: dict[str, int] = {}
        self.closures: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call; `sys.setprofile` calls this."""
        name = own_file(frame.f_code, self.backend) if event == "call" else None
        if name is None:
            return
        self.calls[name] = self.calls.get(name, 0) + 1
        chain: list[str] = []
        outer: FrameType | None = frame
        while outer is not None:
            place = own_file(outer.f_code, self.backend)
            if place not in (None, DISPATCH) and is_closure(outer.f_code):
                chain.append(f"{place}: {outer.f_code.co_qualname}")
            outer = outer.f_back
        self.closures = max(self.closures, chain[::-1], key=len)


def main() -> None:
    """Print the files with their numbers of calls, and the closures from the outside in."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", nargs="?", default="torch")
    backend = parser.parse_args().backend
    ember_ml.set_backend(backend)
    model = nn.models.LanguageModel("attention swiglu", vocab_size=16, hidden_size=16)
    tokens = np.random.default_rng(0).integers(0, 16, (32, 8))
    trainer = Trainer(model, "cross_entropy", optimizer="adamw", progress=False)
    trainer.fit((tokens, tokens), epochs=1, batch_size=8)
    batch = nn.tensor.array(tokens[:8])
    path = StepPath(backend)
    sys.setprofile(path)
    trainer.train_step((batch, batch))
    sys.setprofile(None)
    for name, count in sorted(path.calls.items()):
        print(f"{count:5} calls  {name}")
    print(f"{len(path.calls)} files (goal {GOAL_FILES})")
    for closure in path.closures:
        print(f"    {closure}")
    print(f"{len(path.closures)} nested closures (goal {GOAL_CLOSURES})")


if __name__ == "__main__":
    main()
