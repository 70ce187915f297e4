"""CSV, Parquet and Hugging Face datasets against pandas and pyarrow."""

from __future__ import annotations

import decimal
import gzip
import pickle
from collections.abc import Callable
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.api as sm
from pyarrow import parquet

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, IndexOutOfRangeError
from ember_ml.data import DataFileError, DataLoader, Dataset
from ember_ml.data.tables import CSVDataset, HFDataset, HFStream, ParquetDataset, from_hf


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Return a real table of numbers, with strings added."""
    table = sm.datasets.fair.load_pandas().data.iloc[:500].copy()
    table["count"] = np.arange(len(table))
    table["name"] = [f"näme {n}" for n in range(len(table))]
    table["group"] = np.array(["b", "a", "c"])[np.arange(len(table)) % 3]
    table["flag"] = table["age"] > 30
    return table


def csv(frame: pd.DataFrame, folder: Path, **options: object) -> Dataset:
    frame.to_csv(folder / "t.csv", index=False)
    return CSVDataset(folder / "t.csv", **options)


def parquet_file(frame: pd.DataFrame, folder: Path, **options: object) -> Dataset:
    frame.to_parquet(folder / "t.parquet", row_group_size=100)
    return ParquetDataset(folder / "t.parquet", **options)


def hugging_face(frame: pd.DataFrame, folder: Path, **options: object) -> Dataset:
    options.setdefault("stack", options.get("target") is not None)
    return from_hf(datasets.Dataset.from_pandas(frame, preserve_index=False), **options)


SOURCES: dict[str, Callable[..., Dataset]] = {
    "csv": csv,
    "parquet": parquet_file,
    "hf": hugging_face,
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Callable[..., Dataset]:
    return SOURCES[request.param]


def test_values_are_those_of_pandas(source, frame: pd.DataFrame, tmp_path: Path) -> None:
    dataset = source(frame, tmp_path)
    assert len(dataset) == len(frame)
    rows = [7, 0, 499, 7, -1]
    batch = dataset.batch(rows)
    assert list(batch) == list(frame.columns)
    for name in frame.columns:
        expected = frame[name].iloc[rows]
        if expected.dtype == float:
            assert batch[name].dtype == np.float32
            assert batch[name].tolist() == expected.astype(np.float32).tolist()
        else:
            assert list(batch[name]) == expected.tolist()
    assert batch["count"].dtype == np.int64
    assert isinstance(batch["name"], list)
    example = dataset[-1]
    assert example["name"] == "näme 499"
    assert example["count"] == 499
    with pytest.raises(IndexOutOfRangeError):
        dataset[500]


def test_inputs_and_targets(source, frame: pd.DataFrame, tmp_path: Path) -> None:
    columns = ["age", "children", "count", "flag"]
    dataset = source(frame, tmp_path, columns=columns, target="group", dtype="float64")
    inputs, targets = dataset.batch([5, 3])
    assert inputs.dtype == np.float64
    assert inputs.tolist() == frame[columns].iloc[[5, 3]].astype(float).to_numpy().tolist()
    assert dataset.classes == ("a", "b", "c")
    assert [dataset.classes[number] for number in targets] == frame["group"].iloc[[5, 3]].tolist()
    numbers = source(frame, tmp_path, columns=["age"], target="affairs")
    assert numbers.classes is None
    x, y = numbers[9]
    assert (x.shape, x.dtype, y.dtype) == ((1,), np.float32, np.float32)
    assert y == np.float32(frame["affairs"].iloc[9])
    named = source(frame, tmp_path, columns=["name", "age"], target="count", stack=False)
    assert named[4][0]["name"] == "näme 4"
    assert named[4][1] == 4


def test_the_dtype_of_the_table(source, frame: pd.DataFrame, tmp_path: Path) -> None:
    dataset = source(frame, tmp_path, columns=["age", "count"], dtype=None)
    assert dataset[0]["age"].dtype == np.float64
    stacked = source(frame, tmp_path, columns=["count"], dtype=None, stack=True)
    assert stacked[3].dtype == np.int64


@pytest.mark.parametrize("value", [None, float("nan")])
def test_a_missing_value_is_named(source, value: float | None, tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, value], "b": [1, 2, 3]})
    options = {"columns": ["b", "a"], "target": "b"}
    with pytest.raises(DataFileError, match=r"row 2 \(from 0\), column 'a' is (missing|NaN)"):
        source(table, tmp_path, **options).batch([0, 2])
    inputs, _ = source(table, tmp_path, **options, missing="nan").batch([2, 1])
    assert np.isnan(inputs[0, 1])
    assert inputs[1].tolist() == [2.0, 2.0]
    assert source(table, tmp_path, columns=["b"]).batch([0, 1])["b"].tolist() == [1, 2]


def test_missing_integers_and_strings(source, tmp_path: Path) -> None:
    table = pd.DataFrame({"a": pd.array([1, None], "Int64"), "s": ["x", None]})
    if source is csv:  # an empty string is a string in CSV files
        table = table.drop(columns="s")
    options = {"missing": "nan", "columns": ["a"]}
    assert np.isnan(source(table, tmp_path, **options).batch([0, 1])["a"][1])
    if source is not csv:
        with pytest.raises(DataFileError, match=r"row 1 \(from 0\), column 's' is missing"):
            source(table, tmp_path, missing="nan").batch([0, 1])


def test_wrong_columns(source, frame: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"there is no column 'agee'.*did you mean 'age'"):
        source(frame, tmp_path, columns=["agee"])
    with pytest.raises(ArgumentError, match="there is no column 'zzz'"):
        source(frame, tmp_path, target="zzz")
    with pytest.raises(ArgumentError, match="select at least one column"):
        source(frame, tmp_path, columns=[])
    with pytest.raises(ArgumentError, match="missing must be 'raise' or 'nan'"):
        source(frame, tmp_path, missing="drop")
    with pytest.raises(DataFileError, match="column 'name' has str values, which cannot be stack"):
        source(frame, tmp_path, target="age").batch([0])


@pytest.mark.usefixtures("on_numpy")
def test_a_loader_with_processes(source, frame: pd.DataFrame, tmp_path: Path) -> None:
    dataset = source(frame, tmp_path, columns=["age", "count"], target="group")
    options = {"batch_size": 100, "shuffle": True, "seed": 1}
    batches = list(DataLoader(dataset, num_workers=1, worker_type="process", **options))
    seen = np.concatenate([x.numpy()[:, 1] for x, _ in batches])
    assert sorted(seen.tolist()) == list(range(500))
    expected = [x.tolist() for x, _ in DataLoader(dataset, **options)]
    assert [x.tolist() for x, _ in batches] == expected
    other = pickle.loads(pickle.dumps(dataset))
    assert other.batch([1])[0].tolist() == dataset.batch([1])[0].tolist()


def test_several_files_and_given_classes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,label\n1,red\n2,blue\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"label,x\ngreen,3\n"))
    paths = [tmp_path / "a.csv", tmp_path / "b.csv.gz"]
    both = CSVDataset(paths, target="label")
    assert both.classes == ("blue", "green", "red")
    inputs, targets = both.batch([2, 0])
    assert (inputs.tolist(), targets.tolist()) == ([[3.0], [1.0]], [1, 2])
    other = CSVDataset(paths[0], target="label", classes=both.classes)
    assert other.batch([0, 1])[1].tolist() == [2, 0]
    message = r"b.csv.gz: the value in row 0 .*column 'label' is 'green', which is not among the 2"
    with pytest.raises(DataFileError, match=message):
        CSVDataset(paths[1], target="label", classes=["blue", "red"])
    with pytest.raises(ArgumentError, match="classes are for a target of strings"):
        CSVDataset(paths[0], ["x"], target="x", classes=["a"])
    (tmp_path / "c.csv").write_text("y,label\n1,red\n")
    with pytest.raises(DataFileError, match=r"c.csv: there is no column 'x', which .*a.csv has"):
        CSVDataset([paths[0], tmp_path / "c.csv"], target="label")


def test_forms_of_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('1;"a\nb;c"\n02;d\n')
    dataset = CSVDataset(
        tmp_path / "a.csv", header=["n", "s"], delimiter=";", types={"n": "string"}
    )
    assert dataset.batch([0, 1]) == {"n": ["1", "02"], "s": ["a\nb;c", "d"]}
    with pytest.raises(ArgumentError, match="delimiter="):
        CSVDataset(tmp_path / "a.csv", delimiter="ab")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read: Empty CSV file"),
        (b"a,b\n1,2\n3,4,5\n6,7\n", "Row #3: Expected 2 columns, got 3"),
        (b"a,b\n1,2\n3\n", "Row #3: Expected 2 columns, got 1"),
        (b"a,a\n1,2\n", "two columns named 'a'"),
        (b"a\xff,b\n1,2\n", "cannot be read: .*utf-8"),
        (b"a,b\n1,\xff\xfe\n", "column 'b' is not valid UTF-8"),
        (b"a,b\n1," + b"9" * 9 + b"x\n", "column 'b' has str values"),
        (b"\x1f\x8bnot gzip", "cannot be read"),
    ],
)
def test_odd_csv_files_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_bytes(content)
    with pytest.raises(DataFileError, match=message) as caught:
        CSVDataset(tmp_path / "odd.csv", stack=True)
    assert "odd.csv" in str(caught.value) or "two columns" in message


def test_text_among_numbers_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n2,oops\n")
    with pytest.raises(DataFileError, match=r"a.csv cannot be read: .*invalid value 'oops'"):
        CSVDataset(tmp_path / "a.csv", types={"b": "float64"})


def test_odd_parquet_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "odd.parquet"
    parquet.write_table(pa.table({"a": list(range(1000))}), path)
    content = path.read_bytes()
    middle = len(content) // 3
    damaged = content[:middle] + bytes(50) + content[middle + 50 :]
    for odd in (b"", b"PAR1", content[: len(content) // 2], b"x" * 100, content[8:]):
        path.write_bytes(odd)
        with pytest.raises(DataFileError, match=r"odd.parquet cannot be read"):
            ParquetDataset(path)
    path.write_bytes(damaged)
    try:
        ParquetDataset(path)
    except DataFileError as error:
        assert "odd.parquet cannot be read" in str(error)  # noqa: PT017  (the damage may hit values)
    with pytest.raises(DataFileError, match=r"gone.parquet is missing"):
        ParquetDataset(tmp_path / "gone.parquet")


def test_types_of_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "list": [[1.0, 2.0], [3.0]],
            "category": pa.array(["x", "y"]).dictionary_encode(),
            "decimal": [decimal.Decimal("1.50"), decimal.Decimal("2.25")],
            "small": pa.array([1, 2], pa.uint8()),
            "half": pa.array(np.array([0.5, 1.5], np.float16)),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    batch = ParquetDataset(tmp_path / "t.parquet").batch([1, 0])
    assert [row.tolist() for row in batch["list"]] == [[3.0], [1.0, 2.0]]
    assert batch["category"] == ["y", "x"]
    assert batch["decimal"].tolist() == [2.25, 1.5]
    assert (batch["small"].dtype, batch["half"].dtype) == (np.uint8, np.float32)


def test_labels_of_hugging_face() -> None:
    features = datasets.Features(
        {"x": datasets.Value("float32"), "y": datasets.ClassLabel(names=["no", "yes"])}
    )
    table = datasets.Dataset.from_dict({"x": [1.0, 2.0, 3.0], "y": [1, 0, 1]}, features=features)
    dataset = from_hf(table.select([2, 1]), target="y", stack=True)
    assert isinstance(dataset, HFDataset)
    assert dataset.classes == ("no", "yes")
    inputs, targets = dataset.batch([0, 1])
    assert (inputs.tolist(), targets.tolist()) == ([[3.0], [2.0]], [1, 0])


@pytest.mark.usefixtures("on_numpy")
def test_streams_of_hugging_face_resume() -> None:
    table = datasets.Dataset.from_dict({"x": [float(n) for n in range(10)], "s": ["a"] * 10})
    stream = from_hf(table.to_iterable_dataset(), ["x"], "s")
    assert isinstance(stream, HFStream)
    assert list(stream)[3] == ({"x": 3.0}, "a")
    assert list(stream.iterate_from(8)) == [({"x": 8.0}, "a"), ({"x": 9.0}, "a")]
    first, second = (DataLoader(stream, batch_size=3) for _ in range(2))
    iterator = iter(first)
    next(iterator)
    second.load_state_dict(first.state_dict())
    assert [x["x"].tolist() for x, _ in second] == [[3, 4, 5], [6, 7, 8], [9]]
    with pytest.raises(ArgumentError, match="there is no column 'z'"):
        list(from_hf(table.to_iterable_dataset(), ["z"]))
    with pytest.raises(ArgumentError, match="random access"):
        from_hf(table.to_iterable_dataset(), stack=True)
    with pytest.raises(ArgumentTypeError, match="not DatasetDict; select a split"):
        from_hf(datasets.DatasetDict({"train": table}))
    with pytest.raises(ArgumentTypeError, match="not list"):
        from_hf([1])


def test_a_quote_that_is_not_closed_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "quotes.csv"
    for end in ("", "\n", "\r\n", "\n5,c\n" * 1000):
        path.write_text(f'x,kind\n1,a\n2,"b\n3,a\n4,a{end}')
        with pytest.raises(DataFileError, match=r"quotes\.csv: .* row 1 .* no closing quote"):
            CSVDataset(path, target="kind")
    path.write_text('x,kind\n1,5" disk\n2,"line\nline"\n')
    assert CSVDataset(path, target="kind").classes == ('5" disk', "line\nline")


def test_a_value_longer_than_a_block_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"x,text\n1,{'a' * 3_000_000}\n2,b\n")
    assert [len(row["text"]) for row in CSVDataset(path)] == [3_000_000, 1]


def test_an_empty_label_is_not_a_class(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("x,kind\n1,a\n2,\n3,b\n")
    with pytest.raises(DataFileError, match=r"row 1 \(from 0\), column 'kind' is empty"):
        CSVDataset(path, target="kind")
    assert CSVDataset(path, target="kind", classes=["", "a", "b"]).batch([1])[1].tolist() == [0]


def test_a_table_without_rows_says_so(tmp_path: Path) -> None:
    path = tmp_path / "header.csv"
    path.write_text("x,kind\n")
    with pytest.raises(DataFileError, match=r"header\.csv: the table has no rows"):
        CSVDataset(path, target="kind")
