"""Consistency training: pseudo-labels of weak views are the targets of strong views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.backend import use_backend
from ember_ml.nn.auxiliary_losses import add_losses, reported_losses
from ember_ml.nn.module import Module
from ember_ml.training.callbacks import Callback
from ember_ml.training.losses.classes import categorical_cross_entropy
from ember_ml.training.pipelines.self_training.predictions import host, softmax
from ember_ml.training.pipelines.self_training.pseudo_labels import Labeling
from ember_ml.training.selection import SelectionRule
from ember_ml.training.trainer import Trainer, batches


class ConsistencyTrainer(Trainer):
    r"""Trainer with the loss of FixMatch.

    .. math:: L = L_\mathrm{labeled} + \frac{\lambda}{n} \sum_i m_i \, H(q_i, p(s_i))

    :math:`q_i` is the pseudo-label of the weak view of unlabeled example i, :math:`m_i` its weight
    (0 if the rule does not select it), and :math:`s_i` its strong view. Pseudo-labels are predicted
    in inference mode, with averaged weights if the trainer has them (mean teacher).

    Args:
        model: The model.
        labeling: Selection rule, form and weight of the pseudo-labels.
        temperature: Temperature of the pseudo-labels.
        **options: Arguments of `Trainer`.

    Reference: Sohn et al., "FixMatch: Simplifying Semi-Supervised Learning with Consistency and
    Confidence", 2020.
    """

    def __init__(
        self, model: Module, labeling: Labeling, temperature: float, **options: Any
    ) -> None:
        super().__init__(model, **options)
        self.labeling = labeling
        self.temperature = temperature

    def train_step(self, batch: object) -> dict[str, float] | None:
        """Predict the pseudo-labels of a batch, train on it, and return the record of the step.

        Args:
            batch: Batch of a `ConsistencyDataset`.
        """
        assert isinstance(batch, Mapping)
        with self.evaluating():
            views = [self._logits(view) for view in batch["weak"]]
        probabilities = ops.stack([softmax(host(each), self.temperature) for each in views])
        with use_backend("numpy"):
            selected = self.labeling.select.select_batch(probabilities)
            targets, weights = self.labeling.targets(ops.mean(probabilities, axis=0))
            weights = ops.where(selected, weights, 0.0)
        parts = {"pseudo": targets, "pseudo_weight": weights}
        placed = {name: self._placed(value) for name, value in parts.items()}
        record = super().train_step(
            {"labeled": batch["labeled"], "strong": batch["strong"], **placed}
        )
        if record is not None:
            record["selected"] = float(ops.mean(ops.astype(selected, "float64")))
        return record

    def _logits(self, part: object) -> Tensor:
        return batches.apply(self.model, batches.inputs_of(part, self.takes_mask))

    def _placed(self, value: Tensor) -> Tensor:
        return convert_to_tensor(value.numpy(), self.dtype, backend=self.backend)

    def compute(self, batch: object) -> tuple[Tensor, Any]:
        """Return the loss of a batch, and the outputs for its labeled part.

        Args:
            batch: Batch with pseudo-labels, or a batch of labeled data in an evaluation.
        """
        if not (isinstance(batch, Mapping) and "pseudo" in batch):
            return super().compute(batch)
        parts = batches.split(batch["labeled"], True, self.takes_mask)
        strong = batches.inputs_of(batch["strong"], self.takes_mask)
        count = batch["pseudo"].shape[0]
        both = parts._replace(
            inputs=_joined(parts.inputs, strong.inputs), named=_joined(parts.named, strong.named)
        )
        with reported_losses() as reported:  # one call, so that norms see all examples
            outputs = batches.apply(self.model, both)
        labeled, unlabeled = outputs[:-count], outputs[-count:]
        assert callable(self.loss)
        loss = self.loss(labeled, parts.targets, **parts.options)
        total = categorical_cross_entropy(
            unlabeled, batch["pseudo"], sample_weight=batch["pseudo_weight"], reduction="sum"
        )
        return add_losses(loss + total / count, reported), labeled

    def weigh(self, batch: object) -> Tensor | float:
        """Return the weight of a batch in a step of several: its number of labeled examples.

        Args:
            batch: Batch with pseudo-labels.
        """
        part = batch["labeled"] if isinstance(batch, Mapping) and "labeled" in batch else batch
        return super().weigh(part)

    def measure(self, batch: object, outputs: Any) -> float:
        """Update the metrics with the labeled part of a batch, and return its weight.

        Args:
            batch: A batch of the data.
            outputs: Outputs that `compute` returned.
        """
        part = batch["labeled"] if isinstance(batch, Mapping) and "labeled" in batch else batch
        return super().measure(part, outputs)


def _joined(first: Any, second: Any) -> Any:
    """Return pytrees of tensors, concatenated along the examples."""
    leaves, structure = tree.flatten(first)
    pairs = zip(leaves, tree.flatten(second)[0], strict=True)
    return tree.unflatten(structure, [ops.concat(list(pair), axis=0) for pair in pairs])


class SelectionState(Callback):
    """Saves the moving averages of a selection rule in the checkpoints of a trainer.

    Args:
        select: The rule.
    """

    def __init__(self, select: SelectionRule) -> None:
        self.select = select

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the rule."""
        return self.select.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of the rule.

        Args:
            state: Result of `state_dict`.
        """
        self.select.load_state_dict(state)
