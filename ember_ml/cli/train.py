"""`ember train`: a training from a YAML file."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.cli.training_data import Prepared
    from ember_ml.configs.train_run import TrainRunConfig
    from ember_ml.training import Trainer


def train(
    settings: Settings,
    config: Annotated[Path, typer.Argument(help="A YAML file; see docs/cli.md.")],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Changes, such as trainer.learning_rate=1e-3.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the training in the folder, if any.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the training in the folder.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model as a YAML file says."""
    from ember_ml.configs.train_run import TrainRunConfig

    whole = TrainRunConfig.load(config, changes or ())
    seed = settings.seed if settings.seed is not None else whole.trainer.seed or 0
    whole = whole.override(trainer={**whole.trainer.to_dict(), "seed": seed})
    run = _Run(whole, config.parent, going_on=_goes_on(Path(whole.out), resume, overwrite))
    with _apart(as_json):
        run.introduce()
        interrupted = run.fit()
    if interrupted:
        output.remark(f"to go on: {_again()}")
        raise typer.Exit(130)
    run.conclude(as_json)


def _goes_on(out: Path, resume: bool, overwrite: bool) -> bool:
    """Whether there is a training to go on with; one that is in the way is an error."""
    from ember_ml._core.errors import ArgumentError
    from ember_ml._core.folders import find_folder

    there = find_folder(out / "last").is_dir()
    if there and not (resume or overwrite):
        raise ArgumentError(
            f"out: {out} has a training already; go on with it (--resume), replace it "
            "(--overwrite), or name another folder (out=...)"
        )
    if overwrite:  # so that nothing of it is taken for the new one, should that be cut off
        for name in ("last", "best"):
            shutil.rmtree(find_folder(out / name), ignore_errors=True)
        (out / "vocab.json").unlink(missing_ok=True)
    return there and resume


def _again() -> str:
    words = ["ember", *(word for word in sys.argv[1:] if word not in ("--resume", "--overwrite"))]
    return shlex.join([*words, "--resume"])


@contextlib.contextmanager
def _apart(as_json: bool) -> Iterator[None]:
    """Within the block, what is told goes to the standard error if the output is for scripts."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield


class _Run:
    """A training under way."""

    def __init__(self, config: TrainRunConfig, beside: Path, *, going_on: bool) -> None:
        from ember_ml import ops
        from ember_ml.cli.text import Vocabulary
        from ember_ml.cli.training_data import prepare

        self.config = config
        self.out = Path(config.out)
        vocabulary = self.out / "vocab.json"
        known = Vocabulary.read(vocabulary) if going_on and vocabulary.exists() else None
        self.data = prepare(config, beside, known)
        ops.random.set_seed(config.trainer.seed or 0)
        self.model = config.model_config_for(self.data.vocab_size).create()
        self.trainer = _trainer(config, self.model, self.data)
        if going_on:
            self.trainer.resume(self.out / "last")

    def introduce(self) -> None:
        """Say what is trained, on what, where."""
        from ember_ml.backend.devices import default_device

        trainer, held = self.trainer, self.data.validation
        apart = f", {len(held)} for validation" if held is not None else ""
        vocabulary = f", {self.data.vocab_size} tokens" if self.data.vocab_size else ""
        output.say(
            f"model  {type(self.model).__name__}, {self.model.num_parameters():,} parameters"
        )
        output.say(f"data   {len(self.data.train)} examples{apart}{vocabulary}")
        output.say(f"where  {trainer.backend} on {default_device(trainer.backend)}")
        output.say(f"out    {self.out}" + (f", from step {trainer.step}" if trainer.step else ""))

    def fit(self) -> bool:
        """Train and save; whether it was interrupted."""
        from ember_ml._core.files import write_atomically

        config = self.config
        write_atomically(self.out / "train.yaml", config.to_yaml().encode())
        if self.data.vocabulary is not None:
            write_atomically(self.out / "vocab.json", self.data.vocabulary.to_json().encode())
        before = self.trainer.step
        self.trainer.fit(
            self.data.train,
            self.data.validation,
            epochs=config.epochs,
            steps=config.steps,
            batch_size=min(config.batch_size, len(self.data.train)),
        )
        if not self.trainer.interrupted and self.trainer.step > before:
            self.trainer.save(self.out / "last")
        return self.trainer.interrupted

    def conclude(self, as_json: bool) -> None:
        """Say what came out."""
        trainer = self.trainer
        found = {"step": trainer.step, "epoch": trainer.epoch, **self._measured()}
        if as_json:
            output.write_json({**found, "checkpoint": str(self.out / "last")})
            return
        words = "  ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in found.items()
        )
        output.say(f"done   {words}")
        output.say(f"saved  {self.out / 'last'}")

    def _measured(self) -> dict[str, Any]:
        """The mean loss of the last epoch, and the metrics on what was kept apart."""
        history = self.trainer.history
        losses = history.losses_of(int(history.steps[-1]["epoch"])) if history.steps else []
        found = {"loss": sum(losses) / len(losses)} if losses else {}
        if self.data.validation is None:
            return found
        size = self.config.batch_size
        values = self.trainer.evaluate(self.data.validation, batch_size=size)
        return found | {
            f"val_{name}": x for name, x in values.items() if isinstance(x, (int, float))
        }


def _trainer(config: TrainRunConfig, model: Any, data: Prepared) -> Trainer:
    from ember_ml.training import Trainer
    from ember_ml.training.callbacks import Checkpoint, CSVLogger

    options = config.trainer
    usual: dict[str, Any] = (
        {"loss": "cross_entropy"} if options.loss is None and data.vocab_size else {}
    )
    out = Path(config.out)
    callbacks = [
        CSVLogger(out / "log.csv"),
        Checkpoint(out, every_steps=config.checkpoint_every),
    ]
    return Trainer(model, config=options, callbacks=callbacks, **usual)
