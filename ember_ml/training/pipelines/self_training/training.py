"""Training of one round: the supervised model, pseudo-labels, or consistency."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml.configs.training import TrainerConfig
from ember_ml.data import ConcatDataset, Dataset, Subset
from ember_ml.data.augmentation.base import Augment
from ember_ml.nn import checkpoint
from ember_ml.nn.module import Module
from ember_ml.training.callbacks import Callback, Checkpoint
from ember_ml.training.pipelines.preparation import Prepare
from ember_ml.training.pipelines.self_training.consistency import (
    ConsistencyTrainer,
    SelectionState,
)
from ember_ml.training.pipelines.self_training.data import RunData
from ember_ml.training.pipelines.self_training.examples import Labeled
from ember_ml.training.pipelines.self_training.folder import SelfTrainingFolder
from ember_ml.training.pipelines.self_training.pseudo_labels import Labeling, PseudoLabels
from ember_ml.training.pipelines.self_training.views import ConsistencyDataset, view
from ember_ml.training.trainer import Trainer

SEEDS = 1 << 32
"""Distance of the augmentation seeds of two rounds."""


@dataclass(frozen=True)
class TrainingPlan:
    """How the model of a round is trained.

    Args:
        config: Options of the trainer.
        epochs: Number of epochs of a round; None for no limit.
        steps: Number of steps of a round; None for no limit.
        batch_size: Number of examples of a batch; in consistency training, of labeled ones.
        ratio: Unlabeled examples for each labeled one in consistency training.
        checkpoint_every: Steps between two checkpoints; None: one after each epoch.
        weak: Augmentation of training inputs and weak views; None for none.
        strong: Augmentation of strong views; None for the weak one.
        labeling: How predictions become pseudo-labels.
        callbacks: Further callbacks of the trainer.
        progress: Whether to show a progress bar.
    """

    config: TrainerConfig
    epochs: int | None
    steps: int | None
    batch_size: int
    ratio: int
    checkpoint_every: int | None
    weak: Augment | None
    strong: Augment | None
    labeling: Labeling
    callbacks: Sequence[Callback]
    progress: bool

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self.config.seed or 0

    def view_seed(self, number: int) -> int:
        """Return the seed of the augmentations of a round.

        Args:
            number: Number of the round.
        """
        return self.seed + SEEDS * (number + 1)

    def trainer(self, model: Module, folder: SelfTrainingFolder, number: int) -> Trainer:
        """Return the trainer of a round on labels and pseudo-labels.

        Args:
            model: The model.
            folder: Folder of the run.
            number: Number of the round.
        """
        default = "categorical_cross_entropy" if self.labeling.soft else "cross_entropy"
        return Trainer(model, **self._options(model, folder, number, default))

    def consistency_trainer(
        self, model: Module, folder: SelfTrainingFolder, number: int, temperature: float
    ) -> ConsistencyTrainer:
        """Return the trainer of a round of consistency training.

        Args:
            model: The model.
            folder: Folder of the run.
            number: Number of the round.
            temperature: Temperature of the pseudo-labels.
        """
        options = self._options(model, folder, number, "cross_entropy")
        options["callbacks"] = [SelectionState(self.labeling.select), *options["callbacks"]]
        return ConsistencyTrainer(model, self.labeling, temperature, **options)

    def _options(
        self, model: Module, folder: SelfTrainingFolder, number: int, default: str
    ) -> dict[str, Any]:
        loss = self.config.loss if self.config.loss is not None else model.default_loss
        saving = Checkpoint(folder.round(number), every_steps=self.checkpoint_every)
        return {
            "loss": default if loss is None else loss,
            "seed": self.seed + number,
            "config": self.config,
            "callbacks": [*copy.deepcopy(list(self.callbacks)), saving],
            "progress": self.progress,
        }

    def dataset(
        self, data: RunData, pseudo: PseudoLabels | None, prepare: Prepare, number: int
    ) -> Dataset:
        """Return the augmented training data of a round on labels and pseudo-labels.

        Args:
            data: Data of the run.
            pseudo: Pseudo-labels; None for the supervised model.
            prepare: Preprocessing of a batch.
            number: Number of the round.
        """
        labeled: Dataset = data.labeled
        if self.labeling.soft:
            labels = convert_to_tensor(data.labels, "int64", backend="numpy")
            classes = _classes(pseudo, data)
            targets = ops.one_hot(labels, classes, dtype="float32")
            labeled = Labeled(data.labeled.dataset, targets, data.labeled.weights)
        if pseudo is not None:
            own = pseudo.targets if self.labeling.soft else pseudo.labels()
            own = ops.astype(own, "float32") if self.labeling.soft else own
            subset = Subset(data.unlabeled, pseudo.indices.tolist())
            labeled = ConcatDataset([labeled, Labeled(subset, own, pseudo.weights.tolist())])
        return view(labeled, self.weak, prepare, self.view_seed(number))

    def consistency_dataset(self, data: RunData, prepare: Prepare, number: int) -> Dataset:
        """Return the data of a round of consistency training.

        Args:
            data: Data of the run.
            prepare: Preprocessing of a batch.
            number: Number of the round.
        """
        strong = self.weak if self.strong is None else self.strong
        assert strong is not None
        return ConsistencyDataset(
            data.labeled,
            data.unlabeled,
            self.weak,
            strong,
            prepare,
            self.ratio,
            self.labeling.select.views,
            self.view_seed(number),
        )

    def run(
        self, trainer: Trainer, dataset: Dataset, folder: SelfTrainingFolder, number: int
    ) -> None:
        """Train a round, from its checkpoint if there is one.

        Args:
            trainer: Trainer of the round.
            dataset: Its training data.
            folder: Folder of the run.
            number: Number of the round.
        """
        saved = folder.checkpoint(number)
        if saved is not None:
            trainer.resume(saved)
        factor = self.ratio if isinstance(trainer, ConsistencyTrainer) else 1
        before = trainer.step
        trainer.fit(
            dataset,
            until_epoch=self.epochs,
            until_step=self.steps,
            batch_size=self.batch_size * factor,
        )
        if trainer.step > before or saved is None:
            trainer.save(folder.round(number) / "last")


def _classes(pseudo: PseudoLabels | None, data: RunData) -> int:
    return max(data.labels) + 1 if pseudo is None else int(pseudo.targets.shape[-1])


def load_round(model: Module, folder: SelfTrainingFolder, number: int) -> None:
    """Load the weights of a finished round, as they were evaluated.

    Args:
        model: The model.
        folder: Folder of the run.
        number: Number of the round.
    """
    saved = folder.checkpoint(number)
    assert saved is not None
    checkpoint.load(saved, into=model)
