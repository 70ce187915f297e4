"""Datasets with augmented inputs."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml.data.augmentation.base import Augment
from ember_ml.data.conversion import Indices
from ember_ml.data.dataset import Dataset, check_dataset, replaced
from ember_ml.data.errors import check_integer
from ember_ml.data.random import random_stream


class Views(Dataset):
    """Dataset of dicts whose "inputs" are augmented.

    The random generator of an example depends only on (seed, epoch, index), as in `Dataset.map`.
    A batch of the original dataset is read with one call.

    Args:
        dataset: Dataset of dicts with "inputs" and, for padded sequences, "mask".
        augment: `augment(inputs, rng)`, or `augment(inputs, rng, mask)` for padded sequences, of
            one example. The shape must stay the same.
        seed: Seed of the random generators.

    Example:
        >>> from ember_ml.data import ArrayDataset, augmentation
        >>> dataset = ArrayDataset({"inputs": [[1.0, 2.0], [3.0, 4.0]], "targets": [0, 1]})
        >>> views = augmentation.Views(dataset, augmentation.Jitter(), seed=7)
        >>> views.batch([0, 1])["inputs"].shape
        (2, 2)
    """

    def __init__(self, dataset: Dataset, augment: Augment, seed: int) -> None:
        if not callable(augment):
            raise ArgumentTypeError(
                f"Views: augment must be a function of (inputs, rng), not {augment!r:.60}"
            )
        self.dataset = check_dataset("Views", dataset)
        self.augment: Any = augment
        self.seed = check_integer("Views", "seed", seed, 0)
        self.epoch = 0
        self._takes_mask = "mask" in inspect.signature(augment).parameters

    def __len__(self) -> int:
        return len(self.dataset)

    def for_epoch(self, epoch: int) -> Dataset:
        """Return the dataset with the random generators of an epoch.

        Args:
            epoch: Number of the epoch.
        """
        return replaced(self, dataset=self.dataset.for_epoch(epoch), epoch=epoch)

    def __getitem__(self, index: int) -> dict[str, Any]:
        example = self.dataset[index]
        inputs = self._view(index, example["inputs"], example.get("mask"))
        return {**example, "inputs": inputs}

    def batch(self, indices: Indices) -> dict[str, Any]:
        """Return the augmented examples at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        batch = self.dataset.batch(indices)
        masks = batch.get("mask")
        masks = [None] * len(indices) if masks is None else masks
        rows = zip(indices, batch["inputs"], masks, strict=True)
        return {**batch, "inputs": np.stack([self._view(*row) for row in rows])}

    def _view(self, index: int, inputs: Any, mask: Any) -> np.ndarray:
        rng = random_stream(self.seed, int(index), epoch=self.epoch)
        masked = self._takes_mask and mask is not None
        result = self.augment(inputs, rng, mask) if masked else self.augment(inputs, rng)
        before, after = np.shape(inputs), np.shape(result)
        if before != after:
            raise ShapeError(
                f"Views: the augmentation changed the shape of the inputs from {before} to {after}"
            )
        return np.asarray(result)
