"""Detection of NaN and infinite values in features."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor


def check_finite(where: str, x: Tensor, hint: str, names: Sequence[str] | None = None) -> None:
    """Raise an ArgumentError if features are NaN or infinite.

    Args:
        where: What computed the features, for the error message.
        x: Features of shape (examples, ..., features).
        hint: What to do about it.
        names: Name of each feature. Default: their positions.
    """
    if not x.dtype.is_floating or not x.ndim:
        return
    finite = ops.isfinite(x)
    if bool(ops.all(finite)):
        return
    columns = ops.all(ops.reshape(finite, (-1, x.shape[-1])), axis=0).tolist()
    bad = [str(names[at] if names else at) for at, whole in enumerate(columns) if not whole]
    rows = ops.all(ops.reshape(finite, (x.shape[0], -1)), axis=1).tolist()
    more = ", ..." if len(bad) > 10 else ""
    raise ArgumentError(
        f"{where} returned NaN or infinite values in feature(s) {', '.join(bad[:10])}{more} of "
        f"{rows.count(False)} of {len(rows)} examples; {hint}"
    )
