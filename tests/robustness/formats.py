"""Every file format that Ember reads: valid examples, and functions that read them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as arrow
from pyarrow import parquet

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import selection
from ember_ml.configs import Config, files
from ember_ml.data import MemoryMappedDataset
from ember_ml.data.tables import CSVDataset, ParquetDataset
from ember_ml.data.text import JSONLDataset, LineDataset, PackedTokens, Tokenizer, Vocabulary
from ember_ml.mad.report.gather import gather
from ember_ml.mad.store import Store
from ember_ml.nn.models.convert import FAMILIES, convert, export
from ember_ml.nn.models.convert.decoder import FULL
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.registry import components
from tests.examples_of import config_of
from tests.robustness.test_resume_damage import X, Y, everything, trainer
from tests.unit.mad.sweeps import result, write_sweep

POSITIONS: Any = {"positions": "sinusoidal", "max_length": 16}


class Format(NamedTuple):
    """File to damage, and what reads it.

    Attributes:
        file: The file.
        read: Reads the file and returns its meaning, for comparison.
        state: Returns what a refused read must not change.
        guarded: Whether a checksum detects all damage.
        unguard: File to remove first, so that the damage gets past the checksums; None for none.
    """

    file: Path
    read: Callable[[], object]
    state: Callable[[], object]
    guarded: bool
    unguard: Path | None


def formats(folder: Path) -> dict[str, Format]:
    """Write an example of each format, and return how to read them.

    Args:
        folder: Folder for the files.
    """
    found: dict[str, Format] = {}
    for part in (_checkpoint, _training, _texts, _corpora, _sweep, _transformers):
        found |= part(folder)
    return found


def components_of(folder: Path) -> dict[str, Format]:
    """Save an example of each registered layer, block and model.

    Args:
        folder: Folder for the checkpoints.
    """
    found: dict[str, Format] = {}
    for kind in ("layers", "blocks", "models"):
        for entry in components.available(kind):
            if isinstance(entry.target, type):
                found[entry.name] = _component(folder / entry.name, config_of(entry))
    return found


def _component(path: Path, config: Config) -> Format:
    ember_ml.save(config.create(), path)

    def read() -> object:
        return _values(ember_ml.load(path))

    return Format(path / "config.json", read, lambda: None, False, path / "checksums.json")


def _values(model: nn.Module) -> dict[str, bytes]:
    both = [*model.named_parameters(), *model.named_buffers()]
    return {name: x.numpy().tobytes() for name, x in both}


def _both(path: Path, name: str, read: Callable[[], object], state: Callable[[], object]):
    """Return a format twice: protected by checksums, and without them."""
    label = f"{path.name}/{name}"
    sums = path / "checksums.json"
    return {
        f"{label} with checksums": Format(path / name, read, state, True, None),
        label: Format(path / name, read, state, False, sums),
    }


def _checkpoint(folder: Path) -> dict[str, Format]:
    path = folder / "model"
    layers = "mamba rwkv6_time_mixer s4d attention swiglu"
    model = nn.models.LanguageModel(layers, vocab_size=5, hidden_size=8, **POSITIONS)
    ember_ml.save(model, path)
    target = nn.models.LanguageModel(layers, vocab_size=5, hidden_size=8, **POSITIONS)

    def read() -> object:
        return _values(ember_ml.load(path))

    def read_into() -> object:
        return _values(ember_ml.load(path, into=target))

    def state() -> object:
        return _values(target)

    found = _both(path, "config.json", read, state)
    found |= _both(path, "model.safetensors", read, state)
    into = _both(path, "model.safetensors", read_into, state)
    found |= {f"{name} (into)": each for name, each in into.items()}
    sums = Format(path / "checksums.json", read, state, True, None)
    return found | {"model/checksums.json": sums}


def _training(folder: Path) -> dict[str, Format]:
    trainer(folder / "run", 1).fit((X, Y), epochs=2, batch_size=8)
    path = folder / "run" / "last"
    target = trainer(folder / "other", 2)
    target.fit((X, Y), steps=2, batch_size=8)

    def read() -> object:
        target.resume(path)
        return everything(target)

    def state() -> object:
        return everything(target)

    found: dict[str, Format] = {}
    for name in ("training.json", "training.safetensors", "history.jsonl"):
        found |= _both(path, name, read, state)
    return found


def _texts(folder: Path) -> dict[str, Format]:
    run = folder / "run.yaml"
    (folder / "base.yaml").write_text("type: models/language_model\nvocab_size: 10\n")
    run.write_text("extends: base.yaml\nlayers: [attention, swiglu]\nhidden_size: &a 16\n# *a\n")
    data = folder / "data.npy"
    np.save(data, np.arange(12.0).reshape(4, 3))
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(Vocabulary(["a", "b"]).to_json())
    home = folder / "home" / ".ember"
    home.mkdir(parents=True)
    (home / "backend").write_text("numpy\n")

    def backend() -> object:
        before = os.environ.get("HOME"), os.environ.pop("EMBER_ML_BACKEND", None)
        os.environ["HOME"] = str(folder / "home")
        try:
            return selection._configured() is None or True
        finally:
            os.environ["HOME"] = before[0] or ""

    reads: dict[str, tuple[Path, Callable[[], object]]] = {
        "YAML": (run, lambda: files.load(run).to_dict()),
        "extended YAML": (folder / "base.yaml", lambda: files.load(run).to_dict()),
        "npy": (data, lambda: MemoryMappedDataset(data).batch([0]).tolist()),
        "vocabulary": (vocabulary, lambda: Vocabulary.read(vocabulary).tokens),
        "backend": (home / "backend", backend),
    }
    return {
        name: Format(path, read, lambda: None, False, None) for name, (path, read) in reads.items()
    }


def _corpora(folder: Path) -> dict[str, Format]:
    """Return the files of `data.text` and `data.tables`."""
    tokenizer = Tokenizer.train(["some text to merge"], "bpe", 270)
    tokenizer.save(folder / "tokenizer")
    tokens = PackedTokens.build(["some text", "more"], tokenizer, folder / "tokens")
    lines, rows, table = folder / "a.txt.gz", folder / "a.jsonl", folder / "a.csv"
    lines.write_bytes(gzip.compress("one\nzwei ü\n".encode()))
    rows.write_text('{"text": "one", "n": 1}\n{"text": "two", "n": 2.5}\n')
    table.write_text("a,b,c\n1,2.5,x\n2,3.5,y\n")
    columns = folder / "a.parquet"
    parquet.write_table(arrow.table({"a": [1, 2], "b": ["x", "y"]}), columns)

    def packed() -> object:
        dataset = PackedTokens(tokens, 2)
        dataset.verify()
        return [part.tolist() for part in dataset.batch([0, -1])]

    def load() -> object:
        loaded = Tokenizer.load(folder / "tokenizer")
        return loaded.decode(loaded.encode("some text"))

    reads: dict[str, tuple[Path, Callable[[], object]]] = {
        "tokenizer": (folder / "tokenizer" / "tokenizer.json", load),
        "special tokens": (folder / "tokenizer" / "special_tokens_map.json", load),
        "tokens": (tokens, packed),
        "compressed lines": (lines, lambda: list(LineDataset(lines))),
        "JSON lines": (rows, lambda: list(JSONLDataset(rows))),
        "CSV": (table, lambda: repr(CSVDataset(table)[0])),
        "Parquet": (columns, lambda: repr(ParquetDataset(columns)[0])),
    }
    return {
        name: Format(path, read, lambda: None, False, None) for name, (path, read) in reads.items()
    }


def _sweep(folder: Path) -> dict[str, Format]:
    path = folder / "sweep"
    counted = result(0.5)._replace(correct=(1, 2, 0), targets=(2, 2, 2))
    write_sweep(path, lambda run: counted if "attention" in run.architecture else "it burst")
    run = next((path / "runs").iterdir())
    failure = next((path / "failed").iterdir())

    def read() -> object:
        store = Store(path)
        return repr((store.about(), store.done(), store.failed())), gather(store) and None

    files: dict[str, Path] = {"sweep.json": path / "sweep.json", "failed.json": failure}
    names = ("config.json", "result.json", "curve.csv", "examples.csv")
    files |= {name: run / name for name in names}
    found = {
        f"sweep/{name}": Format(file, read, lambda: None, False, run / "checksums.json")
        for name, file in files.items()
    }
    guarded = Format(run / "result.json", read, lambda: None, True, None)
    return found | {"sweep/result.json with checksums": guarded}


def _transformers(folder: Path) -> dict[str, Format]:
    export(
        nn.models.TransformerModel(8, 16, gated=True, activation="silu", bias=False),
        folder / "llama",
    )
    for family, values in SMALL.items():
        config = FAMILIES[family].config(Settings("config.json", values))
        export(config.create(), folder / family, family)
    return {
        f"transformers/{family}/{name}": Format(
            folder / family / name, partial(_logits, folder / family), lambda: None, False, None
        )
        for family in ("llama", *SMALL)
        for name in ("config.json", "model.safetensors")
    }


def _logits(path: Path) -> object:
    return convert(path)(ops.zeros((1, 2), dtype="int64")).shape


DECODER = {
    "vocab_size": 8,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
SMALL: dict[str, dict[str, Any]] = {
    "gemma3_text": {**DECODER, "head_dim": 8, "layer_types": ["sliding_attention", FULL]},
    "jamba": {**DECODER, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2},
    "mamba2": {
        "vocab_size": 8,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_heads": 4,
        "head_dim": 8,
        "n_groups": 1,
        "state_size": 4,
    },
}
"""model_type -> values of a small config.json."""
