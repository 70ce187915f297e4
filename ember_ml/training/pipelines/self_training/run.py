"""The rounds of a self-training run, each of which is finished when its record is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.data import Dataset
from ember_ml.nn.module import Module
from ember_ml.training.pipelines.preparation import Prepare
from ember_ml.training.pipelines.self_training import measures
from ember_ml.training.pipelines.self_training.data import RunData
from ember_ml.training.pipelines.self_training.folder import SelfTrainingFolder
from ember_ml.training.pipelines.self_training.history import Record, SelfTrainingHistory
from ember_ml.training.pipelines.self_training.predictions import predict, softmax
from ember_ml.training.pipelines.self_training.pseudo_labels import PseudoLabels
from ember_ml.training.pipelines.self_training.training import TrainingPlan, load_round
from ember_ml.training.pipelines.self_training.views import view
from ember_ml.training.trainer import Trainer


@dataclass(frozen=True)
class RoundOptions:
    """What a round does besides training.

    Args:
        rounds: Number of rounds after the supervised model.
        consistency: Whether rounds are consistency training; otherwise training on pseudo-labels.
        warm_start: Whether a round starts from the last model; otherwise from the initial one.
        cumulative: Whether pseudo-labels stay for later rounds.
        calibrate: Whether to fit the temperature on the validation data.
        rollback: Whether to discard a round that lowers the validation accuracy.
    """

    rounds: int
    consistency: bool
    warm_start: bool
    cumulative: bool
    calibrate: bool
    rollback: bool


class SelfTrainingRun:
    """One run of self-training. A killed run continues from its folder.

    Args:
        plan: How the model of a round is trained.
        options: What a round does besides.
        data: Data of the run.
        prepare: Preprocessing of a batch.
        folder: Folder of the run.
        model: The model, which has the weights of the result at the end.
    """

    def __init__(
        self,
        plan: TrainingPlan,
        options: RoundOptions,
        data: RunData,
        prepare: Prepare,
        folder: SelfTrainingFolder,
        model: Module,
    ) -> None:
        self.plan = plan
        self.options = options
        self.data = data
        self.prepare = prepare
        self.folder = folder
        self.model = model
        self.history = SelfTrainingHistory.read(folder.history)

    def run(self) -> None:
        """Run the remaining rounds, and load the weights of the best one."""
        while not self._is_over():
            record = self._round(len(self.history))
            self.history.add(record, self.folder.history)
        load_round(self.model, self.folder, self.history.best["round"])

    def _is_over(self) -> bool:
        return len(self.history) > self.options.rounds or (
            len(self.history) > 0 and "note" in self.history[-1]
        )

    def _round(self, number: int) -> Record:
        """Run a round, and return its record."""
        if number == 0:
            return self._record(0, self._train(0, None), None)
        if self.options.consistency:
            return self._judged(self._record(number, self._train_consistency(number), None))
        pseudo = self._pseudo_labels(number)
        problem = self._nothing_new(number, pseudo)
        if problem is not None:
            return {"round": number, "selected": len(pseudo), "accepted": False, "note": problem}
        return self._judged(self._record(number, self._train(number, pseudo), pseudo))

    def _nothing_new(self, number: int, pseudo: PseudoLabels) -> str | None:
        """Return why there is nothing to train on; None if there is something."""
        if self.options.cumulative and len(pseudo) == len(self._earlier(number) or ()):
            all_used = len(pseudo) == len(self.data.unlabeled)
            return "all examples are pseudo-labeled" if all_used else "nothing selected"
        return None if len(pseudo) else "nothing selected"

    def _judged(self, record: Record) -> Record:
        """Return the record of a round; it is not accepted if it lowered the validation score."""
        best = self.history.best
        if not self.options.rollback or _rank(record) > _rank(best):
            return record
        before, after = (
            f"accuracy {each['val_accuracy']:.4f}, loss {each['val_loss']:.4f}"
            for each in (best, record)
        )
        note = f"no better on the validation data ({before} before, {after} after): "
        note += f"rolled back to round {best['round']}"
        return {**record, "accepted": False, "note": note}

    def _train(self, number: int, pseudo: PseudoLabels | None) -> Trainer:
        self._load_start(number, warm=self.options.warm_start)
        trainer = self.plan.trainer(self.model, self.folder, number)
        dataset = self.plan.dataset(self.data, pseudo, self.prepare, number)
        self.plan.run(trainer, dataset, self.folder, number)
        return trainer

    def _train_consistency(self, number: int) -> Trainer:
        self._load_start(number, warm=self.options.warm_start or number > 1)
        self.plan.labeling.select.load_state_dict(self.history[-1]["rule"])
        trainer = self.plan.consistency_trainer(
            self.model, self.folder, number, self._temperature()
        )
        dataset = self.plan.consistency_dataset(self.data, self.prepare, number)
        self.plan.run(trainer, dataset, self.folder, number)
        return trainer

    def _load_start(self, number: int, *, warm: bool) -> None:
        """Load the weights that a round starts from."""
        if number and warm:
            load_round(self.model, self.folder, self.history.best["round"])
        else:
            self.folder.load_initial(self.model)

    def _temperature(self) -> float:
        return float(self.history.best.get("temperature", 1.0))

    def _pseudo_labels(self, number: int) -> PseudoLabels:
        """Return the pseudo-labels of a round, which are computed once and written."""
        path = self.folder.pseudo_labels(number)
        if path.is_file():
            return PseudoLabels.read(path)
        load_round(self.model, self.folder, self.history.best["round"])
        trainer = self.plan.trainer(self.model, self.folder, number)
        earlier = self._earlier(number)
        probabilities = self._pool_probabilities(trainer, number, self._temperature())
        pseudo = self.plan.labeling(probabilities, self._remaining(earlier))
        pseudo = pseudo if earlier is None else earlier.joined(pseudo)
        pseudo.write(path)
        return pseudo

    def _earlier(self, number: int) -> PseudoLabels | None:
        """Return the pseudo-labels of earlier rounds that stay."""
        if not self.options.cumulative or number < 2:
            return None
        return PseudoLabels.read(self.folder.pseudo_labels(number - 1))

    def _remaining(self, earlier: PseudoLabels | None) -> Tensor:
        """Return the indices of the examples without a pseudo-label that stays."""
        count = len(self.data.unlabeled)
        taken = set() if earlier is None else set(earlier.indices.tolist())
        return measures.indices([at for at in range(count) if at not in taken])

    def _pool_probabilities(self, trainer: Trainer, number: int, temperature: float) -> Tensor:
        """Return the probabilities of the unlabeled data, of shape (views, examples, classes)."""
        count = self.plan.labeling.select.views
        logits = [
            predict(trainer, self._view(number, at, count), self.plan.batch_size)
            for at in range(count)
        ]
        return softmax(ops.stack(logits), temperature)

    def _view(self, number: int, at: int, count: int) -> Dataset:
        weak = self.plan.weak if count > 1 else None
        return view(self.data.unlabeled, weak, self.prepare, self.plan.view_seed(number) + 1 + at)

    def _record(self, number: int, trainer: Trainer, pseudo: PseudoLabels | None) -> Record:
        """Return the record of a trained round."""
        size, data, prepare = self.plan.batch_size, self.data, self.prepare
        scores = measures.validation(trainer, data, prepare, size, calibrate=self.options.calibrate)
        record: dict[str, Any] = {"round": number, "accepted": True}
        losses = trainer.history.losses
        record |= {"loss": losses[-1]} if losses else {}
        if self.options.consistency:
            record["rule"] = self.plan.labeling.select.state_dict()
            if number:
                temperature = scores.get("temperature", 1.0)
                probabilities = self._pool_probabilities(trainer, number, temperature)
                pseudo = self.plan.labeling(probabilities, self._remaining(None))
        record |= measures.selection(pseudo, data.true_labels)
        return record | scores | measures.known_accuracy(trainer, data, prepare, size)


def _rank(record: Record) -> tuple[float, float]:
    """Return the validation score: accuracy and, if equal, the cross-entropy."""
    return record["val_accuracy"], -record["val_loss"]
