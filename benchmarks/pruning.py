"""Training steps that ASHA saves on a MAD task, and the quality of the result.

The same 27 random configurations of a small attention model are trained on MAD's memorization task,
once in full and once with pruning. The order of the trials matters for ASHA, so the recorded curves
are also replayed in 200 random orders.

    python benchmarks/pruning.py
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "EMBER_ML_BACKEND": "numpy"}

import random
import statistics

import ember_ml as ember
from ember_ml.training import Trainer
from ember_ml.training.tuning import ASHA, Choice, Float, PruneTrial, SelfTuningModule, Trial

TRIALS, STEPS, EVERY, ORDERS = 27, 160, 10, 200
SPACE = {
    "trainer.learning_rate": Float(1e-4, 0.1, log=True),
    "trainer.weight_decay": Float(1e-4, 1.0, log=True),
    "model.hidden_size": Choice([16, 32, 64]),
}
TASK = ember.mad.task("memorization", num_train=512, num_validation=128, num_test=512)


def pruner() -> ASHA:
    """Return a pruner with rungs at 10, 40 and 160 steps."""
    return ASHA(min_steps=EVERY, reduction_factor=4)


class Objective:
    """Trains a configuration; counts the steps and keeps the test accuracies."""

    def __init__(self) -> None:
        self.steps = 0
        self.test: dict[int, float] = {}

    def __call__(self, trial: Trial) -> float:
        """Return the validation accuracy."""
        ember.ops.random.set_seed(0)
        hidden = trial["model.hidden_size"]
        model = ember.nn.models.LanguageModel("attention swiglu", TASK.vocab_size, hidden)
        trainer = Trainer(
            model,
            "cross_entropy",
            optimizer={"type": "adamw", "weight_decay": trial["trainer.weight_decay"]},
            learning_rate=trial["trainer.learning_rate"],
            metrics=[{"type": "accuracy", "num_classes": TASK.vocab_size}],
            callbacks=[PruneTrial(trial, "val_accuracy")],
            seed=0,
            progress=False,
        )
        history = trainer.fit(
            TASK.train,
            validation=TASK.validation,
            steps=STEPS,
            batch_size=32,
            validate_every=EVERY,
        )
        self.steps += trainer.step
        self.test[trial.id] = float(trainer.evaluate(TASK.test, batch_size=128)["accuracy"])
        return float([r for r in history.steps if "val_accuracy" in r][-1]["val_accuracy"])


def search(**options: object) -> tuple[SelfTuningModule, Objective]:
    """Run all trials, and return the tuner and the objective."""
    tuner = SelfTuningModule(SPACE, history=None, sampler="random", seed=0, **options)
    objective = Objective()
    tuner.fit(objective, budget=TRIALS)
    return tuner, objective


def replay(curves: list[list[tuple[int, float]]], order: list[int]) -> tuple[int, float]:
    """Return the steps and the best final accuracy of a search in some order."""
    asha, steps, best = pruner(), 0, 0.0
    for number in order:
        last, stopped = (0, 0.0), False
        for last in curves[number]:
            stopped = asha.observe(Trial(number, {}), *last)
            if stopped:
                break
        steps += last[0]
        best = best if stopped else max(best, last[1])
    return steps, best


def main() -> None:
    """Print steps and accuracies with and without pruning."""
    full, trained = search()
    pruned, saved = search(pruner=pruner())
    for name, tuner, objective in (("full", full, trained), ("ASHA", pruned, saved)):
        best = tuner.best
        assert best is not None
        print(
            f"{name}: {objective.steps} steps, best validation accuracy "
            f"{best.scores['val_accuracy']:.3f}, test accuracy {objective.test[best.id]:.3f}",
            flush=True,
        )
    print(f"steps: {saved.steps / trained.steps:.0%} of the full search")
    curves = [trial.reports for trial in full.trials]
    best_of_all = max(curve[-1][1] for curve in curves)
    rng, results = random.Random(0), []
    for _ in range(ORDERS):
        order = list(range(TRIALS))
        rng.shuffle(order)
        results.append(replay(curves, order))
    shares = [steps / trained.steps for steps, _ in results]
    losses = [100 * (best_of_all - best) for _, best in results]
    print(
        f"{ORDERS} orders: {statistics.fmean(shares):.0%} of the steps (at most {max(shares):.0%}),"
        f" loss of accuracy {statistics.fmean(losses):.2f} points on average, at most "
        f"{max(losses):.2f}; none in {sum(loss == 0 for loss in losses) / ORDERS:.0%}"
    )


if __name__ == "__main__":
    main()
