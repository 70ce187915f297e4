"""Functions compiled by the framework."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ember_ml._core import recording, runtime, tree
from ember_ml.autodiff.transforms._arguments import as_tensor, engine, one_backend, wrapped
from ember_ml.autodiff.transforms.variants import Variants, form_of


def compile(fn: Callable[..., Any], **options: Any) -> Compiled:
    """fn, compiled by the framework of its arguments: `torch.compile`, `mx.compile`.

    The first call with arguments of new shapes and dtypes compiles. What is no tensor belongs to
    the compiled code, and so may tensors that fn reads from elsewhere: pass as an argument what
    changes. Where it cannot run compiled (on NumPy; on a tape, which records the ops; where its
    gradient is differentiated again) fn runs as it is, and `skipped` says why.

    Args:
        fn: a function of tensors and nests of them that gives the like.
        options: of the framework's compiler (torch: mode, backend, fullgraph ...).

    Example:
        >>> doubled = compile(lambda x: x * 2.0)
        >>> float(doubled(tensor.array(3.0)))
        6.0
    """
    return Compiled(fn, options)


class Compiled:
    """A function that runs compiled.

    Attributes:
        skipped: why the last call ran uncompiled; empty if it did not.
    """

    def __init__(self, fn: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._variants = Variants(lambda _, given: fn(*given[0], **given[1]), options)
        self.skipped = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """fn(*args, **kwargs)."""
        given = tree.map_leaves(lambda x: as_tensor(x, numbers=False), [list(args), kwargs])
        tensors, _ = form_of(given)
        backend = one_backend("compile", tensors) if tensors else runtime.active()
        self.skipped = _obstacle(backend)
        if self.skipped:
            return self._fn(*args, **kwargs)
        outputs, form = self._variants(backend, [], given)
        return form.filled(wrapped(outputs, backend))


def _obstacle(backend: str) -> str:
    """Why a function cannot run compiled here; empty if it can."""
    native = engine(backend)
    if native.COMPILE_UNAVAILABLE:
        return native.COMPILE_UNAVAILABLE
    if recording.tapes():
        return "a tape records the ops one by one"
    if native.gradient_depth() > 1:
        return "a compiled gradient cannot be differentiated again"
    return ""
