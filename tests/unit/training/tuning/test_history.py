"""The history file: what several processes, crashes and damage leave of it."""

from __future__ import annotations

import json
import math
import os
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from ember_ml.training.tuning import (
    Choice,
    Float,
    HistoryError,
    HistoryWarning,
    SelfTuningModule,
    TuningError,
)

SPACE = {"x": Float(0.0, 1.0), "kind": Choice(["a", "b"])}


def tuner(path, **options):
    return SelfTuningModule(SPACE, path, sampler="random", **options)


@pytest.fixture
def path(tmp_path):
    """Return a history with two completed trials, a failed one and a running one."""
    path = tmp_path / "runs.jsonl"
    own = tuner(path)
    for score in (0.5, 0.25):
        trial = own.ask({"log_examples": 2.0})
        own.report(trial, 1, score / 2)
        own.tell(trial, score)
    own.fail(own.ask(), "it raised")
    own.ask()
    return path


def states(own):
    return [trial.state for trial in own.trials]


def test_a_new_tuner_reads_what_was_written(path):
    first = json.loads(path.read_text().splitlines()[1])
    other = tuner(path, task=first["task"])
    assert states(other) == ["done", "done", "failed", "running"]
    assert other.trials[0].reports == [(1, 0.25)]
    assert other.trials[2].reason == "it raised"
    assert other.best.id == 0
    assert other.best.scores == {"val_accuracy": 0.5}
    assert first["space"] == other.space.fingerprint()
    assert first["meta"] == {"log_examples": 2.0}


def test_every_cut_of_the_file_is_survived(path, tmp_path):
    """Cut the file at every byte, as a crash would, and continue the search."""
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    task = json.loads(lines[1])["task"]
    start = len(lines[0])
    for cut in range(start, len(content), 7):
        copy = tmp_path / "cut.jsonl"
        copy.write_bytes(content[:cut])
        text = content[:cut]
        whole = text.split(b"\n")
        torn = whole.pop()
        complete = len(whole) + _is_json(torn)
        own = tuner(copy, task=task)
        told = sum(b'"told"' in line for line in content.splitlines()[:complete])
        assert states(own).count("done") == told
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            own.tell(own.ask(), 1.0)
        expected = bool(torn) and not _is_json(torn)
        assert bool([w for w in caught if w.category is HistoryWarning]) is expected
        assert copy.read_bytes().startswith(content[:cut])  # nothing is lost
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the torn line is declared, so reading is silent
            assert states(tuner(copy, task=task)).count("done") == told + 1


def _is_json(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def test_a_damaged_line_in_the_middle_is_skipped_with_its_number(path):
    lines = path.read_text().splitlines()
    task = json.loads(lines[1])["task"]
    assert json.loads(lines[3])["kind"] == "told"
    lines[3] = lines[3][:10] + "\x00" + lines[3][11:]
    path.write_text("\n".join(lines) + "\n")
    with pytest.warns(HistoryWarning, match=r"runs.jsonl, line 4: skipped"):
        own = tuner(path, task=task)
    assert states(own) == ["running", "done", "failed", "running"]
    assert own.ask().id == 0  # its score is lost, so it runs again


def test_a_record_of_an_unknown_trial_is_skipped_with_its_number(path):
    with open(path, "a") as file:
        file.write('{"kind":"told","id":99,"values":{"val_accuracy":1.0}}\n')
    count = len(path.read_text().splitlines())
    with pytest.warns(HistoryWarning, match=f"line {count}: skipped: .*trial 99"):
        tuner(path)


def test_a_history_of_another_space_is_refused_with_the_differences(path):
    other = {"x": Float(0.0, 2.0), "y": Float(0.0, 1.0)}
    before = path.read_bytes()
    with pytest.raises(HistoryError) as error:
        SelfTuningModule(other, path, sampler="random")
    for part in ("kind is only in the file", "y is missing in the file", "x is Float(0.0, 2.0)"):
        assert part in str(error.value)
    with pytest.raises(HistoryError, match=r"objectives are .*val_loss"):
        tuner(path, metric="val_loss", mode="min")
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["hello\n", '{"kind":"asked"}\n', '{"kind":"space"}\n'])
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "other.jsonl"
    path.write_text('{"a": 1}\n' if content == "hello\n" else content)
    with pytest.raises(HistoryError, match=r"other\.jsonl, line 1"):
        tuner(path)


def test_tasks_share_a_file_and_have_their_own_best(tmp_path):
    path = tmp_path / "runs.jsonl"
    for task, scores in {"a": (0.1, 0.2), "b": (0.9, 0.8)}.items():
        own = tuner(path, task=task)
        for score in scores:
            own.tell(own.ask(), score)
    assert tuner(path, task="a").best.scores == {"val_accuracy": 0.2}
    assert tuner(path, task="b").best.scores == {"val_accuracy": 0.9}
    assert len(tuner(path, task="c").search().others) == 4


def test_a_trial_whose_process_has_ended_runs_again_under_its_number(tmp_path):
    path = tmp_path / "runs.jsonl"
    own = tuner(path)
    own.tell(own.ask(), 1.0)
    trial = own.ask()
    assert own.ask().id == 2  # a living tuner's trials are left alone
    assert tuner(path).ask().id == 3
    params = dict(trial)
    own = None
    again = tuner(path)
    restarted = again.ask()
    assert (restarted.id, dict(restarted), restarted.seed) == (1, params, trial.seed)
    assert {again.ask().id, again.ask().id, again.ask().id} == {2, 3, 4}


def test_writers_on_several_processes_lose_nothing(tmp_path):
    path = tmp_path / "runs.jsonl"
    tuner(path)
    children = []
    for child in range(4):
        pid = os.fork()
        if not pid:
            try:
                own = tuner(path)
                for at in range(10):
                    own.tell(own.ask(), child + at / 100)
                os._exit(0)
            except BaseException:
                os._exit(1)
        children.append(pid)
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    assert codes == [0] * 4
    own = tuner(path)
    assert sorted(own.history.trials) == list(range(40))
    scores = sorted(trial.scores["val_accuracy"] for trial in own.trials)
    assert scores == sorted(child + at / 100 for child in range(4) for at in range(10))


def test_errors_of_tell(tmp_path):
    own, other = tuner(tmp_path / "a.jsonl"), tuner(tmp_path / "b.jsonl")
    trial = own.ask()
    with pytest.raises(TuningError, match="must be finite, not nan"):
        own.tell(trial, float("nan"))
    with pytest.raises(TuningError, match="must be a number, not 'high'"):
        own.tell(trial, "high")
    with pytest.raises(TuningError, match="no objective 'val_acuracy'; did you mean"):
        own.tell(trial, {"val_acuracy": 1.0})
    with pytest.raises(TuningError, match="not a trial of this history"):
        other.tell(trial, 1.0)
    own.tell(trial, 1.0)
    with pytest.raises(TuningError, match=r"trial 0 is .*over"):
        own.tell(trial, 1.0)
    with pytest.raises(TuningError, match=r"report: trial 0 is .*over"):
        own.report(trial, 1, 1.0)


def test_proposals_depend_on_the_seed_only(tmp_path):
    def params(name, seed):
        own = tuner(tmp_path / name, seed=seed)
        return [dict(own.ask()) for _ in range(4)]

    assert params("a", 0) == params("b", 0) != params("c", 1)


@pytest.mark.parametrize("content", [b"my notes\nline 2\n", bytes(range(256)), b"[1, 2]\n", b"x"])
def test_a_foreign_file_is_refused_and_not_changed(content, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HistoryWarning)
        with pytest.raises(HistoryError, match=r"notes\.txt: not a history of trials"):
            tuner(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("in_memory", [False, True])
def test_threads_share_a_tuner(in_memory, tmp_path):
    own = tuner(None if in_memory else tmp_path / "runs.jsonl")

    def run(_):
        trial = own.ask()
        own.report(trial, 1, 0.5)
        own.tell(trial, trial["x"])
        return trial.id

    with ThreadPoolExecutor(6) as pool:
        numbers = list(pool.map(run, range(40)))
    assert sorted(numbers) == list(range(40))
    assert states(own) == ["done"] * 40
    if not in_memory:
        assert states(tuner(tmp_path / "runs.jsonl")) == ["done"] * 40


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ([1.0], r"ask: meta must be a mapping of names to numbers.*not \[1.0\]"),
        ({"n": math.nan}, "ask: the meta-feature 'n' must be finite, not nan"),
        ({"n": "many"}, "ask: meta 'n'"),
    ],
)
def test_wrong_meta_features_are_named(meta, message) -> None:
    own = tuner(None)
    with pytest.raises(TuningError, match=message):
        own.ask(meta)
    assert not own.trials
