"""Jobs in processes: results, reports, answers, failures and the end of the parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ember_ml._core.errors import ArgumentError
from ember_ml.training.sweeps import ClusterError, Job, ProcessRunner, RayRunner, work_name
from ember_ml.training.sweeps.jobs import fixed
from tests.unit.training.sweeps import works


def job(work, data, **options) -> Job:
    return Job(work_name(work), data, **options)


def outcomes(events) -> dict:
    return {event.job.data: (event.kind, event.value) for event in events if event.kind != "report"}


def test_all_jobs_are_done_on_one_thread_each() -> None:
    jobs = [job(works.square, each) for each in range(5)]
    events = list(ProcessRunner(2, "numpy")(fixed(jobs)))
    assert outcomes(events) == {each: ("done", each * each) for each in range(5)}
    assert [event.job.data for event in events if event.kind == "started"] == list(range(5))
    (_, done) = ProcessRunner(1, "numpy")(fixed([job(works.environment, None)]))
    assert done.value == ("numpy", "1")


def test_a_job_is_asked_for_when_a_worker_is_free() -> None:
    """The source sees the results so far, and is asked again after it had no job."""
    results: list[int] = []
    given: list[int] = []

    def source() -> Job | None:
        if len(given) > len(results) or len(given) == 4:
            return None  # waits for the job before
        given.append((results[-1] if results else 1) + 1)
        return job(works.square, given[-1])

    for event in ProcessRunner(2, "numpy")(source):
        if event.kind == "done":
            results.append(event.value)
    assert (given, results) == ([2, 5, 26, 677], [4, 25, 676, 677**2])


@pytest.mark.parametrize("stop_at", [None, 0, 2])
def test_answers(stop_at: int | None) -> None:
    jobs = [job(works.count, 4, answered=True), job(works.count, 3, answered=False)]
    ends = []
    for event in ProcessRunner(1, "numpy")(fixed(jobs)):
        if event.kind == "report" and event.value == stop_at:
            event.stop()
        if event.kind == "done":
            ends.append(event.value)
    first = [True] * 4 if stop_at is None else [True] * stop_at + [False]
    assert ends == [first, [True] * 3], "unanswered reports are not stopped"


def test_failures_take_only_their_job() -> None:
    jobs = [job(works.fail, how) for how in ("raise", "kill", "memory", "send")]
    jobs.insert(2, job(works.square, 3))
    found = outcomes(ProcessRunner(1, "numpy")(fixed(jobs)))
    assert found.pop(3) == ("done", 9)
    assert {kind for kind, _ in found.values()} == {"failed"}
    expected = {
        "raise": "ValueError: it burst",
        "kill": "its process died (exit code -9)",
        "memory": "MemoryError",
        "send": "fail.<locals>.<lambda>",
    }
    for how, text in expected.items():
        assert text in found[how][1]


def test_what_other_processes_cannot_import_is_refused() -> None:
    assert work_name("tests.unit.training.sweeps.works:square") == work_name(works.square)
    with pytest.raises(ArgumentError, match="cannot be imported by other processes"):
        work_name(lambda data, report: data)
    for name in ("nowhere:function", "os:nothing", "os", ""):
        with pytest.raises(ArgumentError, match="write module:function"):
            work_name(name)
    with pytest.raises(ArgumentError, match="workers must be at least 1, not 0"):
        ProcessRunner(0)


PARENT = """
from ember_ml.training.sweeps import Job, ProcessRunner
from ember_ml.training.sweeps.jobs import fixed
if __name__ == "__main__":
    job = Job("tests.unit.training.sweeps.works:wait_forever", None)
    for event in ProcessRunner(1, "numpy")(fixed([job])):
        print(event.value, flush=True)
"""


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "None\n"
        worker = int(parent.stdout.readline())
        assert _is_running(worker)
        os.kill(parent.pid, signal.SIGKILL)
    for _ in range(600):
        if not _is_running(worker):
            return
        time.sleep(0.1)
    pytest.fail("the worker still runs")


def _is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_cluster() -> None:
    """Reports are answered, and a failure takes only its job."""
    jobs = [
        job(works.count, 4, answered=True),
        job(works.square, 3),
        job(works.fail, "raise"),
        job(works.environment, None),
    ]
    ends, reports = {}, []
    for event in RayRunner(None, "numpy", workers=2)(fixed(jobs)):
        if event.kind == "report":
            reports.append(event.value)
            if event.value == 2:
                event.stop()
        if event.kind in ("done", "failed"):
            ends[event.job.data] = event.kind, event.value
    assert sorted(map(str, reports)) == ["0", "1", "2", "about to fail"]
    assert ends[4] == ("done", [True, True, False])
    assert ends[3] == ("done", 9)
    assert ends[None][1][0] == "numpy"
    assert ends["raise"][0] == "failed"
    assert "it burst" in ends["raise"][1]


def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(ClusterError, match=r"no Ray cluster at 127.0.0.1:1: .*refused"):
        next(RayRunner("127.0.0.1:1")(lambda: None))


def test_a_result_that_cannot_be_restored_fails_only_its_job() -> None:
    jobs = [job(works.unreadable, 0), job(works.square, 3)]
    found = outcomes(ProcessRunner(1, "numpy")(fixed(jobs)))
    assert found[0][0] == "failed"
    assert "not a number" in found[0][1]
    assert found[3] == ("done", 9)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_dead_worker_is_noticed_although_its_child_lives(tmp_path: Path) -> None:
    end = tmp_path / "the child has ended"
    found = outcomes(ProcessRunner(1, "numpy")(fixed([job(works.die_with_child, str(end))])))
    assert found == {str(end): ("failed", "its process died (exit code 3)")}
    assert not end.exists(), "the runner waited for the child"


@pytest.mark.parametrize("workers", ["2", 1.5, True])
def test_workers_must_be_an_integer(workers: object) -> None:
    with pytest.raises(TypeError, match="ProcessRunner: workers must be an integer"):
        ProcessRunner(workers)  # type: ignore[arg-type]


def test_data_that_cannot_be_sent_is_named() -> None:
    runner = ProcessRunner(1, "numpy")
    with pytest.raises(ArgumentError, match=r"the data of a job of .*works:square cannot be sent"):
        list(runner(fixed([job(works.square, lambda: 1)])))
