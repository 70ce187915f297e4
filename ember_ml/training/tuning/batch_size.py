"""Search for the largest batch size that fits in memory."""

from __future__ import annotations

import gc
from collections.abc import Sequence

from ember_ml.data import DataLoader
from ember_ml.data.errors import check_integer
from ember_ml.training.trainer import Trainer, sources
from ember_ml.training.trainer.nonfinite import NonFiniteError
from ember_ml.training.trainer.sources import DataLike
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.memory import MemoryLimitError, is_out_of_memory
from ember_ml.training.tuning.peak_memory import PeakMemory
from ember_ml.training.tuning.preserved import preserved, try_step


def find_batch_size(
    trainer: Trainer,
    data: DataLike,
    *,
    low: int = 1,
    high: int | None = None,
    memory_limit: int | None = None,
    steps: int = 2,
) -> int:
    """Return the largest batch size with which training steps fit in memory.

    The size is doubled until a step fails, and the last interval is bisected. A step fails if it
    raises an out-of-memory error of NumPy, PyTorch or MLX, or needs more than `memory_limit`. The
    model and the trainer are unchanged afterwards.

    Args:
        trainer: The trainer.
        data: Training data: arrays or a dataset, not a loader.
        low: Smallest batch size.
        high: Largest batch size. Default, and maximum: the number of examples.
        memory_limit: Bytes that the steps may allocate. The measurement samples the memory in use,
            so that short peaks may be missed. Default: the memory of the device.
        steps: Number of steps with each size. The first one creates the optimizer's state.

    Raises:
        TuningError: If not even `low` fits.
    """
    low = check_integer("find_batch_size", "low", low, least=1)
    steps = check_integer("find_batch_size", "steps", steps, least=1)
    if memory_limit is not None:
        memory_limit = check_integer("find_batch_size", "memory_limit", memory_limit, least=1)
    limit = _examples(data)
    if high is not None:
        limit = min(limit, check_integer("find_batch_size", "high", high, least=low))
    if limit < low:
        raise TuningError(f"find_batch_size: low ({low}) is more than the {limit} examples")
    trial = _Fits(trainer, data, memory_limit, steps)
    if not trial(low):
        raise TuningError(
            f"find_batch_size: a batch of {low} does not fit in memory; use a smaller model, or "
            "accumulate gradients over smaller batches"
        ) from trial.error
    return _largest(trial, low, limit)


def _largest(fits: _Fits, low: int, limit: int) -> int:
    """Return the largest size up to `limit` that fits; `low` does."""
    while low < limit:
        size = min(2 * low, limit)
        if not fits(size):
            break
        low = size
    else:
        return low
    while size - low > 1:
        middle = (low + size) // 2
        low, size = (middle, size) if fits(middle) else (low, middle)
    return low


def _examples(data: DataLike) -> int:
    if isinstance(data, DataLoader) or sources.is_list_of_batches(data):
        raise TuningError(
            "find_batch_size: needs arrays or a dataset, which it divides into batches of several "
            "sizes, not batches"
        )
    dataset = sources.loader(data, 1, shuffle=False, seed=0).dataset
    if not isinstance(dataset, Sequence) and not hasattr(dataset, "__len__"):
        raise TuningError("find_batch_size: the dataset must have a length")
    return len(dataset)


class _Fits:
    """Returns whether steps with a batch size fit in memory.

    Args:
        trainer: The trainer.
        data: Training data.
        memory_limit: Bytes that the steps may allocate; None for no limit.
        steps: Number of steps.
    """

    def __init__(
        self, trainer: Trainer, data: DataLike, memory_limit: int | None, steps: int
    ) -> None:
        self.trainer, self.data = trainer, data
        self.memory_limit, self.steps = memory_limit, steps
        self.error: BaseException | None = None

    def __call__(self, size: int) -> bool:
        """Run the steps, and return whether there was enough memory."""
        try:
            with preserved(self.trainer):
                self._run(size)
        except NonFiniteError:
            return True  # a matter of the learning rate
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            self.error = error.with_traceback(None)  # the frames hold the arrays
            gc.collect()
            return False
        return True

    def _run(self, size: int) -> None:
        if self.memory_limit is None:
            self._step(size)
            return
        with PeakMemory(self.trainer.backend) as peak:
            self._step(size)
        if peak.bytes > self.memory_limit:
            raise MemoryLimitError(
                f"a step with batches of {size} needs {peak.bytes:,} bytes, more than the limit of "
                f"{self.memory_limit:,}"
            )

    def _step(self, size: int) -> None:
        seed = self.trainer.config.seed or 0
        loader = sources.loader(self.data, size, shuffle=True, seed=seed)
        batch = next(iter(loader.batches(self.trainer.dtype)))
        for _ in range(self.steps):
            try_step(self.trainer, batch)
