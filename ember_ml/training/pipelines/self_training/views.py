"""Augmented views of examples, and the batches of consistency training."""

from __future__ import annotations

from typing import Any

from ember_ml.data import Dataset
from ember_ml.data.augmentation import Views
from ember_ml.data.augmentation.base import Augment
from ember_ml.data.conversion import Indices
from ember_ml.data.dataset import replaced
from ember_ml.training.pipelines.preparation import Prepare
from ember_ml.training.pipelines.self_training.examples import Cycle

STRONG = 1 << 20
"""Offset of the seeds of strong views, larger than the number of weak views."""


def view(dataset: Dataset, augment: Augment | None, prepare: Prepare, seed: int) -> Dataset:
    """Return the dataset of augmented and preprocessed examples.

    Args:
        dataset: Dataset of dicts.
        augment: The augmentation; None for none.
        prepare: Preprocessing of a batch.
        seed: Seed of the random generators, which depend on epoch and index as well.
    """
    augmented = dataset if augment is None else Views(dataset, augment, seed)
    return augmented.map(prepare, batched=True)


class ConsistencyDataset(Dataset):
    """Dataset whose batches have labeled examples, and weak and strong views of unlabeled ones.

    The batch of n indices has n unlabeled and n / ratio labeled examples. Both are repeated to the
    length of the longer dataset.

    Args:
        labeled: Labeled examples, as dicts.
        unlabeled: Unlabeled examples, as dicts.
        weak: Augmentation of the labeled examples and of the weak views; None for none.
        strong: Augmentation of the strong views.
        prepare: Preprocessing of a batch.
        ratio: Number of unlabeled examples for each labeled one.
        views: Number of weak views.
        seed: Seed of all views.
    """

    def __init__(
        self,
        labeled: Dataset,
        unlabeled: Dataset,
        weak: Augment | None,
        strong: Augment,
        prepare: Prepare,
        ratio: int,
        views: int,
        seed: int,
    ) -> None:
        self.length = max(len(labeled), len(unlabeled))
        pool = Cycle(unlabeled, self.length)
        self.labeled = view(Cycle(labeled, self.length), weak, prepare, seed)
        self.weak = [view(pool, weak, prepare, seed + 1 + at) for at in range(views)]
        self.strong = view(pool, strong, prepare, seed + STRONG)
        self.ratio = ratio

    def __len__(self) -> int:
        return self.length

    def for_epoch(self, epoch: int) -> Dataset:
        """Return the dataset with the views of an epoch.

        Args:
            epoch: Number of the epoch.
        """
        return replaced(
            self,
            labeled=self.labeled.for_epoch(epoch),
            weak=[each.for_epoch(epoch) for each in self.weak],
            strong=self.strong.for_epoch(epoch),
        )

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.batch([index])

    def batch(self, indices: Indices) -> dict[str, Any]:
        """Return labeled examples and the views of the unlabeled examples at the indices.

        Args:
            indices: Array or sequence of integers.
        """
        return {
            "labeled": self.labeled.batch(indices[:: self.ratio]),
            "weak": tuple([each.batch(indices) for each in self.weak]),
            "strong": self.strong.batch(indices),
        }
