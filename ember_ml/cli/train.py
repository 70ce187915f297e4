"""`ember train`: train a model from a YAML file."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.cli.training_data import TrainingData
    from ember_ml.configs.train_run import TrainRunConfig
    from ember_ml.nn import Module
    from ember_ml.training import Trainer


def train(
    settings: Settings,
    config: Annotated[Path, typer.Argument(help="YAML file; see docs/cli.md.")],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Changes, such as trainer.learning_rate=1e-3.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the training run in the folder, if any.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the training run in the folder.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model as described by a YAML file."""
    from ember_ml.configs.train_run import TrainRunConfig

    run_config = TrainRunConfig.load(config, changes or ())
    seed = settings.seed if settings.seed is not None else run_config.trainer.seed or 0
    run_config = run_config.override(trainer={**run_config.trainer.to_dict(), "seed": seed})
    resumes, is_main = _begin(run_config, resume, overwrite)
    run = _Run(run_config, config.parent, resumes=resumes)
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        if is_main:
            run.print_summary()
        code = run.fit()
    if code:
        if is_main and not _is_launched():
            output.remark(f"continue with: {_resume_command()}")
        raise typer.Exit(code)
    results = run.results()
    if is_main:
        run.print_results(results, as_json)


def _begin(config: TrainRunConfig, resume: bool, overwrite: bool) -> tuple[bool, bool]:
    """Prepare the folder; return whether to resume, and whether this process writes and prints.

    After a launcher has restarted the processes, the run continues from its last checkpoint.
    """
    from ember_ml._core.errors import ArgumentError
    from ember_ml.distributed.agreement import decided_by_main
    from ember_ml.distributed.environment import read_environment

    place, out = read_environment(), Path(config.out)
    if place.size > 1 and config.trainer.strategy is None:
        raise ArgumentError(
            f"trainer.strategy is missing: {place.launcher} has started {place.size} processes, "
            "which train one model together; add trainer.strategy=dp, or fsdp, tp or pp"
        )
    if resume and overwrite:
        raise ArgumentError("pass --resume or --overwrite, not both")
    if place.restarts:
        resume, overwrite = True, False
    if not place.is_main:
        warnings.simplefilter("ignore")  # the main process shows them
    return decided_by_main(lambda: _prepare_folder(out, resume, overwrite)), place.is_main


def _prepare_folder(out: Path, resume: bool, overwrite: bool) -> bool:
    """Return whether to resume; raise an error if the folder has a training run already."""
    from ember_ml._core.errors import ArgumentError
    from ember_ml._core.folders import holds, remove_folder
    from ember_ml.cli.text_encoders import FILES
    from ember_ml.nn.checkpoint import KIND

    exists = holds(out / "last", "config.json")
    if exists and not (resume or overwrite):
        raise ArgumentError(
            f"out: {out} already contains a training run; continue it (--resume), replace it "
            "(--overwrite), or choose another folder (out=...)"
        )
    if overwrite:  # remove it first: an interrupted run must not leave a mixture of both
        for name in ("last", "best"):
            remove_folder(out / name, KIND)
        for name in (*FILES, "labels.json", "log.csv"):
            (out / name).unlink(missing_ok=True)
    return exists and resume


def _is_launched() -> bool:
    """Return whether `ember launch` has started this process, and says how to continue."""
    from ember_ml.distributed import failures

    return failures.folder() is not None


def _resume_command() -> str:
    words = ["ember", *(word for word in sys.argv[1:] if word not in ("--resume", "--overwrite"))]
    return shlex.join([*words, "--resume"])


class _Run:
    """A training run."""

    def __init__(self, config: TrainRunConfig, config_folder: Path, *, resumes: bool) -> None:
        from ember_ml import ops
        from ember_ml.cli.text_encoders import read_encoder
        from ember_ml.cli.training_data import load_data
        from ember_ml.nn.models import Generator

        self.config = config
        self.out = Path(config.out)
        self.resumes = resumes
        encoder = read_encoder(self.out) if resumes else None
        self.data = load_data(config, config_folder, encoder)
        ops.random.set_seed(config.trainer.seed or 0)
        self.model: Module = config.model_config_for(self.data.vocab_size).create()
        self.num_parameters = self.model.num_parameters()  # a strategy may leave a part of them
        self.trainer = _trainer(config, self.model, self.data)
        if resumes:
            self.trainer.resume(self.out / "last")
        if isinstance(self.model, Generator):
            self.model.tokenizer = self.data.encoder

    def print_summary(self) -> None:
        """Print the model, the data, the device and the folder."""
        from ember_ml.backend.devices import default_device

        trainer, validation = self.trainer, self.data.validation
        held_out = f", {len(validation)} for validation" if validation is not None else ""
        vocabulary = f", {self.data.vocab_size} tokens" if self.data.vocab_size else ""
        if self.data.labels:
            vocabulary = f", {len(self.data.labels)} classes"
        output.say(f"model  {type(self.model).__name__}, {self.num_parameters:,} parameters")
        output.say(f"data   {len(self.data.train)} examples{held_out}{vocabulary}")
        where = f"{trainer.backend} on {default_device(trainer.backend)}"
        if trainer.parallel is not None:
            where += f", {trainer.parallel.describe()}"
        output.say(f"where  {where}")
        output.say(f"out    {self.out}" + (f", from step {trainer.step}" if trainer.step else ""))

    def fit(self) -> int:
        """Train and save; return the exit code, which is not 0 if training was interrupted."""
        from ember_ml.training import TrainingInterrupted, TrainingTerminated

        config = self.config
        if self.trainer.is_main:
            self._write_files()
        before = self.trainer.step
        try:
            self.trainer.fit(
                self.data.train,
                self.data.validation,
                until_epoch=1 if config.epochs is None and config.steps is None else config.epochs,
                until_step=config.steps,
                batch_size=min(config.batch_size, len(self.data.train)),
            )
        except TrainingInterrupted:
            return 130
        except TrainingTerminated:
            return 143
        if self.trainer.step > before:
            self.trainer.save(self.out / "last")
        return 0

    def _write_files(self) -> None:
        """Write the config, the tokenizer and the names of the classes."""
        from ember_ml._core.files import write_atomically
        from ember_ml.cli.text_encoders import write_encoder

        if self.data.encoder is not None:
            write_encoder(self.out, self.data.encoder, replace=self.resumes)
        write_atomically(self.out / "train.yaml", self.config.to_yaml().encode())
        if self.data.labels is not None:
            labels = json.dumps(self.data.labels, ensure_ascii=False)
            write_atomically(self.out / "labels.json", f"{labels}\n".encode())

    def results(self) -> dict[str, float]:
        """Return the final losses and metrics; all processes compute them together."""
        return {"step": self.trainer.step, "epoch": self.trainer.epoch, **self._metrics()}

    def print_results(self, results: dict[str, float], as_json: bool) -> None:
        """Print the final losses and metrics, and the path of the checkpoint.

        Args:
            results: The losses and metrics.
            as_json: Whether to write JSON.
        """
        if as_json:
            output.write_json({**results, "checkpoint": str(self.out / "last")})
            return
        words = "  ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in results.items()
        )
        output.say(f"done   {words}")
        output.say(f"saved  {self.out / 'last'}")

    def _metrics(self) -> dict[str, float]:
        """Return the mean training loss of the last epoch, and the validation metrics."""
        history = self.trainer.history
        losses = history.losses_of(int(history.steps[-1]["epoch"])) if history.steps else []
        metrics = {"loss": sum(losses) / len(losses)} if losses else {}
        if self.data.validation is None:
            return metrics
        size = self.config.batch_size
        values = self.trainer.evaluate(self.data.validation, batch_size=size)
        return metrics | {
            f"val_{name}": value
            for name, value in values.items()
            if isinstance(value, (int, float))
        }


def _trainer(config: TrainRunConfig, model: Module, data: TrainingData) -> Trainer:
    from ember_ml.training import Trainer
    from ember_ml.training.callbacks import Checkpoint, CSVLogger

    out = Path(config.out)
    callbacks = [
        CSVLogger(out / "log.csv"),
        Checkpoint(out, every_steps=config.checkpoint_every),
    ]
    return Trainer(model, default_loss(config, data), config=config.trainer, callbacks=callbacks)


def default_loss(config: TrainRunConfig, data: TrainingData) -> str | None:
    """Return the loss for tokens and classes if the config has none; None for the config's.

    Args:
        config: Config of the training run.
        data: Its data.
    """
    classes = data.vocab_size or data.labels
    return "cross_entropy" if config.trainer.loss is None and classes else None
