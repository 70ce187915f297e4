"""`ember quantize`: store the weights of a checkpoint as integers."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ember_ml.cli import output
from ember_ml.cli.generate import find_checkpoint
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.cli.text_encoders import TextEncoder
    from ember_ml.data import Dataset
    from ember_ml.nn import Module

BATCH_SIZE = 16


def quantize(
    settings: Settings,
    checkpoint: Annotated[
        Path, typer.Argument(help="Folder of a checkpoint or of a training run.")
    ],
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    bits: Annotated[int, typer.Option(help="Bits per weight: 8 or 4.")] = 8,
    group_size: Annotated[
        int, typer.Option(min=1, help="Number of weights of a row that share a scale.")
    ] = 64,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Module to keep in floating point; repeatable.",
            show_default="head",
        ),
    ] = None,
    embeddings: Annotated[
        bool, typer.Option("--embeddings", help="Quantize embeddings too.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="TEXT|YAML",
            help="Text file, or the YAML file of a training run, to measure the quality on.",
        ),
    ] = None,
    seq_len: Annotated[int, typer.Option(min=1, help="Tokens per window of a text file.")] = 256,
    as_json: JsonOption = False,
) -> None:
    """Store the weights of a model as integers of 8 or 4 bits, for inference."""
    import ember_ml
    from ember_ml.cli.text_encoders import write_encoder
    from ember_ml.nn.quantization import quantize as quantized
    from ember_ml.nn.quantization.model import SKIP

    folder = find_checkpoint(checkpoint)
    _check_target(folder, out)
    encoder = _encoder(folder)
    model = ember_ml.load(folder)
    measure = None if data is None else _measure(data, encoder, model, seq_len)
    small, report = quantized(
        model,
        bits,  # type: ignore[arg-type]
        group_size,
        SKIP if skip is None else skip,
        embeddings=embeddings,
    )
    scores = {} if measure is None else {"before": measure(model), "after": measure(small)}
    ember_ml.save(small, out)
    if encoder is not None:
        write_encoder(out, encoder, replace=False)
    if as_json:
        unit = {} if measure is None else {"unit": measure.unit, **scores}
        output.write_json({**asdict(report), "ratio": report.ratio, **unit, "out": str(out)})
        return
    output.say(str(report))
    if measure is not None:
        before, after = scores.values()
        output.say(f"{measure.unit}: {before:.4f} -> {after:.4f} ({after - before:+.4f})")
    output.say(f"saved  {out}")


def _check_target(folder: Path, out: Path) -> None:
    """Raise an error if the target is the checkpoint to read."""
    from ember_ml._core.errors import ArgumentError

    if out.resolve() == folder.resolve():
        raise ArgumentError(
            f"{out} is the checkpoint to quantize, which would be replaced; choose another folder"
        )


def _encoder(folder: Path) -> TextEncoder | None:
    from ember_ml.cli.text_encoders import read_encoder

    return read_encoder(folder) or read_encoder(folder.parent)


class _Measure(NamedTuple):
    """Cross-entropy on a dataset, in bits.

    Args:
        dataset: Inputs and target tokens.
        tokens_per_unit: Number of tokens in a character, or 1.
        unit: What is measured.
    """

    dataset: Dataset
    tokens_per_unit: float
    unit: str

    def __call__(self, model: Module) -> float:
        """Return the bits that the model needs for a character or token."""
        from ember_ml.training import Trainer

        values = Trainer(model, "cross_entropy").evaluate(self.dataset, batch_size=BATCH_SIZE)
        return float(values["loss"]) / math.log(2.0) * self.tokens_per_unit


def _measure(path: Path, encoder: TextEncoder | None, model: Module, seq_len: int) -> _Measure:
    """Return the measure of a text file, or of the held-out data of a training run."""
    from ember_ml._core.errors import ArgumentError

    if path.suffix in (".yaml", ".yml"):
        return _run_measure(path, encoder)
    if encoder is None:
        raise ArgumentError(
            "the checkpoint has no vocab.json or tokenizer.json, so it cannot encode text; pass "
            "the YAML file of its training run (--data train.yaml)"
        )
    from ember_ml.cli.text_encoders import encode
    from ember_ml.data.text import TokenWindows
    from ember_ml.data.text.lines import read_text

    ids = encode(encoder, read_text(path), str(path))
    length = min(seq_len, getattr(model, "max_length", None) or seq_len, max(1, len(ids) - 1))
    return _text_measure(TokenWindows(ids, length, str(path)), encoder)


def _run_measure(path: Path, encoder: TextEncoder | None) -> _Measure:
    from ember_ml.cli.training_data import load_data
    from ember_ml.configs.train_run import TrainRunConfig

    loaded = load_data(TrainRunConfig.load(path), path.parent, encoder)
    dataset = loaded.train if loaded.validation is None else loaded.validation
    if loaded.encoder is None:
        return _Measure(dataset, 1.0, "bits per token")
    return _text_measure(dataset, loaded.encoder)


def _text_measure(dataset: Dataset, encoder: TextEncoder) -> _Measure:
    _, targets = dataset.batch(range(len(dataset)))
    ids = [int(token) for token in targets.reshape(-1)]
    characters = len(encoder.decode(ids))
    return _Measure(dataset, len(ids) / max(1, characters), "bits per character")
