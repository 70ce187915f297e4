"""Sweeps that are stopped, killed and continued; failed runs and refused arguments."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ember_ml import mad
from ember_ml.configs import ConfigError
from ember_ml.mad import ProcessPool, Sweep, SweepError
from ember_ml.mad.cluster import ClusterError, RayPool
from ember_ml.mad.run import Result
from ember_ml.mad.store import Store, run_name
from ember_ml.registry import plugins
from ember_ml.registry.base import UnknownComponentError
from tests.robustness.scale import FULL, amount

ARCHITECTURES = ["attention+swiglu", "gru+swiglu"]
COMMAND = [
    *(sys.executable, "-m", "ember_ml", "--backend", "numpy", "mad", "run", *ARCHITECTURES),
    *("--scale", "tiny", "--workers", "2", "--out"),
]
MEASURED = ("seconds", "seconds_per_step")
"""What differs from one run to the next."""


def results(path: Path) -> dict[str, dict]:
    """Return the result of each run by the name of its folder."""
    found = {}
    for each in Store(path).done():
        plain = each.result._asdict()
        found[run_name(each.run)] = {k: v for k, v in plain.items() if k not in MEASURED}
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, dict]:
    path = tmp_path_factory.mktemp("sweep") / "whole"
    subprocess.run([*COMMAND, str(path)], check=True, capture_output=True, timeout=300)
    return results(path)


def test_killed_many_times_it_ends_as_if_undisturbed(undisturbed, tmp_path: Path) -> None:
    path = tmp_path / "sweep"
    rng = random.Random(0)
    for _ in range(amount(2, 5)):
        process = subprocess.Popen(
            [*COMMAND, str(path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(rng.uniform(0.5, 5.0))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        found = results(path) if (path / "sweep.json").exists() else {}
        assert all(undisturbed[name] == result for name, result in found.items())
    kept = {file: file.stat().st_mtime_ns for file in (path / "runs").glob("[!.]*/result.json")}
    subprocess.run([*COMMAND, str(path)], check=True, capture_output=True, timeout=300)
    assert results(path) == undisturbed
    assert len(undisturbed) == 12
    assert all(file.stat().st_mtime_ns == at for file, at in kept.items()), "not done again"
    assert (path / "report.html").exists()


def test_the_same_on_every_backend(undisturbed, backend: str) -> None:
    """The first steps agree to within rounding."""
    for run in Sweep(ARCHITECTURES, "unused", scale="tiny", backend="numpy").runs[:4]:
        result = mad.execute(run)
        expected = undisturbed[run_name(run)]
        for point, other in zip(result.curve, expected["curve"], strict=True):
            assert point.loss == pytest.approx(other.loss, rel=2e-3)
        assert result.loss == pytest.approx(expected["loss"], rel=5e-3)
        assert result.parameters == expected["parameters"]


@pytest.mark.skipif(not FULL, reason="`make robustness` runs sweeps on a cluster")
def test_on_a_ray_cluster(undisturbed, fragile: str, tmp_path: Path) -> None:
    """Results are reported as they arrive, including failures, and equal those of local runs."""
    options = {"scale": "tiny", "tasks": ["compression"], "backend": "numpy"}
    sweep = Sweep([*ARCHITECTURES, fragile], tmp_path / "s", **options)
    events: dict[str, list] = {run.architecture: [] for run in sweep.runs}
    for event in sweep.events(RayPool(None, "numpy")):
        events[event.run.architecture].append(event.payload)
    assert results(tmp_path / "s") == {
        name: result for name, result in undisturbed.items() if name.startswith("compression")
    }
    for name in ARCHITECTURES:
        began, *points, last = events[name]
        assert began is None
        assert points == list(last.curve)
    (failed,) = sweep.store.failed()
    assert (failed.run.architecture, failed.error) == (fragile, events[fragile][-1])
    assert "it burst" in failed.error


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"at 127.0.0.1:1: .*refused"),
        ("nowhere", r"at nowhere: the address must be host:port"),
        ("auto", r"that this machine is part of"),
    ],
)
def test_a_cluster_that_is_not_there(address: str, message: str) -> None:
    runs = Sweep(ARCHITECTURES, "unused", scale="tiny", backend="numpy").runs
    with pytest.raises(ClusterError, match=f"no Ray cluster {message}"):
        next(RayPool(address, "numpy")(runs))


def pool_of(outcome):
    """Return a pool in this process whose runs have the given outcomes."""
    from ember_ml.mad.pool import Event

    def pool(runs):
        for run in runs:
            yield Event(run, None)
            yield Event(run, outcome(run))

    return pool


RESULT = Result(0.5, 0.4, 1.0, 0.5, 1.0, 4, 1.0, 0.1, 10, 20, 0, ())


def test_a_failing_run_does_not_end_the_sweep(tmp_path: Path) -> None:
    sweep = Sweep(
        ARCHITECTURES, tmp_path / "s", scale="tiny", tasks=["compression"], backend="numpy"
    )
    bad = sweep.runs[0]
    sweep.run(pool_of(lambda run: "it burst" if run == bad else RESULT))
    assert [failed.error for failed in sweep.store.failed()] == ["it burst"]
    assert [done.run for done in sweep.store.done()] == [sweep.runs[1]]
    assert sweep.remaining() == [bad]
    sweep.run(pool_of(lambda run: RESULT))
    assert not sweep.store.failed()
    assert not sweep.remaining()


def test_an_error_within_a_run_is_reported(fragile: str, tmp_path: Path) -> None:
    sweep = Sweep([fragile], tmp_path / "s", scale="tiny", tasks=["compression"], backend="numpy")
    sweep.run(ProcessPool(1, "numpy"))
    (failed,) = sweep.store.failed()
    assert "it burst" in failed.error


@pytest.mark.filterwarnings("ignore:unequal sizes")
def test_a_layer_that_was_changed_is_run_again(fragile: str, tmp_path: Path) -> None:
    names = [fragile, "gru"]
    options = {"scale": "tiny", "tasks": ["compression"], "backend": "numpy"}
    Sweep(names, tmp_path / "s", **options).run(pool_of(lambda run: RESULT))
    assert not Sweep(names, tmp_path / "s", **options).remaining()
    file = Path(os.environ[plugins.VARIABLE])
    file.write_text(file.read_text().replace("return x", "return 2 * x"))
    later = Sweep(names, tmp_path / "s", **options)
    assert [run.architecture for run in later.remaining()] == [fragile]
    later.run(pool_of(lambda run: RESULT._replace(accuracy=0.75)))
    found = {each.run.architecture: each.result.accuracy for each in later.store.done()}
    assert found == {fragile: 0.75, "gru": 0.5}
    assert not later.remaining()


def test_a_process_that_dies_takes_only_its_run(tmp_path: Path) -> None:
    sweep = Sweep(
        ARCHITECTURES, tmp_path / "s", scale="tiny", tasks=["compression"], backend="numpy"
    )
    killed = []
    for event in sweep.events(ProcessPool(1, "numpy")):
        if event.payload is None and not killed:
            (child,) = _children()
            os.kill(child, signal.SIGKILL)
            killed.append(event.run)
    (failed,) = sweep.store.failed()
    assert failed.run == killed[0]
    assert "died" in failed.error
    assert [done.run for done in sweep.store.done()] == [
        run for run in sweep.runs if run not in killed
    ]


def _children() -> list[int]:
    import multiprocessing

    return [process.pid for process in multiprocessing.active_children() if process.pid]


def test_a_folder_of_another_sweep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    Sweep(ARCHITECTURES, path, scale="tiny", tasks=["compression"], backend="numpy").run(
        pool_of(lambda run: RESULT)
    )
    other = Sweep(ARCHITECTURES, path, scale="mini", backend="numpy")
    with pytest.raises(SweepError, match=r"another sweep: its scale is 'tiny', not 'mini'"):
        other.run(pool_of(lambda run: RESULT))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    with pytest.raises(SweepError, match=r"is not a sweep"):
        Sweep(ARCHITECTURES, tmp_path / "full", scale="tiny").run(pool_of(lambda run: RESULT))
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["thesis.tex"]


def test_architectures_may_join_later(tmp_path: Path) -> None:
    options = {"scale": "tiny", "tasks": ["compression"], "backend": "numpy"}
    Sweep(ARCHITECTURES[:1], tmp_path / "s", **options).run(pool_of(lambda run: RESULT))
    later = Sweep(ARCHITECTURES, tmp_path / "s", **options)
    assert [run.architecture for run in later.remaining()] == ARCHITECTURES[1:]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    options = {"scale": "tiny", "tasks": ["compression"], "backend": "numpy"}
    first, second = (Sweep(ARCHITECTURES, tmp_path / "s", **options) for _ in range(2))
    events = first.events(pool_of(lambda run: RESULT))
    next(events)
    with pytest.raises(SweepError, match=r"another process is working in .*s; wait for it"):
        second.run(pool_of(lambda run: RESULT))
    events.close()
    second.run(pool_of(lambda run: RESULT))
    assert not first.remaining()


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            "attention[num_hads=3]+swiglu",
            "2 problems\n.*num_hads: there is no such key; did you mean 'num_heads'",
        ),
        ("attention[num_heads=3]+swiglu", r"features \(16\) must be divisible by num_heads \(3\)"),
        ("attention[causal=false]+swiglu", "is not causal"),
        ("(attention+swiglu)x500000000", "more than 10,000 layers"),
        ("lstm[bidirectional=true]", r"LSTM maps \(1, 2, 16\) to \(1, 2, 32\)"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_it_begins(
    pattern: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"^(architecture|pattern).*{message}"):
        Sweep([pattern], tmp_path / "s", scale="tiny")
    assert not (tmp_path / "s").exists()


def test_an_auto_encoder_may_look_at_all() -> None:
    assert Sweep(["attention[causal=false]"], "unused", scale="tiny", tasks="compression").runs


def test_unknown_names() -> None:
    with pytest.raises(ConfigError, match=r"'atention'.*did you mean 'attention'"):
        Sweep(["atention+swiglu"], "unused")
    with pytest.raises(UnknownComponentError, match="did you mean 'compression'"):
        Sweep(ARCHITECTURES, "unused", tasks=["compresion"])
    with pytest.raises(ValueError, match="did you mean 'mini'"):
        Sweep(ARCHITECTURES, "unused", scale="mni")
    with pytest.raises(ValueError, match="named twice"):
        Sweep(["gru", "gru"], "unused")


FULL_DISK = """
import resource, sys
from ember_ml.mad import Sweep
from tests.integration.test_mad_sweep import RESULT, pool_of
tasks = ["compression", "memorization"]
sweep = Sweep(["gru"], sys.argv[1], scale="tiny", tasks=tasks, backend="numpy")
sweep.open()
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))  # no file may grow beyond 64 bytes
try:
    sweep.run(pool_of(lambda run: RESULT))
except OSError as error:
    print("OSError", error)
"""


def test_a_write_that_fails_leaves_nothing_that_counts(tmp_path: Path) -> None:
    path = tmp_path / "s"
    out = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, timeout=120
    )
    assert out.stdout.startswith("OSError"), out.stderr
    assert "run the same command to continue" in out.stdout
    assert Store(path).done() == []
    assert json.loads((path / "sweep.json").read_text())["scale"] == "tiny"
    assert not list(path.rglob("result.json"))


def test_a_name_does_not_stand_for_two_architectures(tmp_path: Path) -> None:
    options = {"scale": "tiny", "tasks": ["compression"], "backend": "numpy"}
    pool = pool_of(lambda run: RESULT)
    Sweep([("ours", "attention+swiglu")], tmp_path / "s", **options).run(pool)
    with pytest.raises(SweepError, match="'ours'"):
        Sweep([("ours", "gru+swiglu")], tmp_path / "s", **options).run(pool)


@pytest.mark.parametrize(
    ("name", "content"),
    [("result.json", "{}"), ("result.json", "{"), ("curve.csv", "a,b\n1,2\n")],
)
def test_a_damaged_run_is_named(tmp_path: Path, name: str, content: str) -> None:
    sweep = Sweep(["gru"], tmp_path / "s", scale="tiny", tasks="compression", backend="numpy")
    sweep.run(pool_of(lambda run: RESULT))
    (folder,) = (tmp_path / "s" / "runs").iterdir()
    (folder / name).write_text(content)
    with pytest.raises(SweepError, match=f"{folder.name}.*remove .* to repeat the run"):
        sweep.store.done()


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": 0},
        {"hidden_size": "wide"},
        {"learning_rates": []},
        {"learning_rates": [None]},
        {"steps": -1},
        {"harder": 1},
        {"unknown": 1},
    ],
)
def test_damaged_settings_are_named(tmp_path: Path, change: dict) -> None:
    sweep = Sweep(["gru"], tmp_path / "s", scale="tiny", tasks="compression", backend="numpy")
    sweep.open()
    info = json.loads((tmp_path / "s" / "sweep.json").read_text())
    info["settings"] |= change
    (tmp_path / "s" / "sweep.json").write_text(json.dumps(info))
    with pytest.raises(SweepError, match=r"sweep.json is damaged: its settings must be"):
        sweep.store.about()
