"""The error of a lost connection names the process that hangs, has failed or is behind."""

from __future__ import annotations

import re
import time

import pytest

from ember_ml.distributed import DistributedError, watch
from ember_ml.distributed.watch import Watch

dist = pytest.importorskip("torch.distributed")
LOST = dist.DistBackendError("Timed out waiting 6000ms for recv operation to complete")


@pytest.fixture
def pair(monkeypatch):
    """Watches of two processes that share a store of torch, here in one process."""
    monkeypatch.setattr(watch, "INTERVAL", 0.02)
    monkeypatch.setattr(watch, "PATIENCE", 0.3)
    store = dist.HashStore()
    found = [
        Watch(rank, 3, lambda error: isinstance(error, dist.DistError), store) for rank in (0, 1)
    ]
    yield found
    for each in found:
        each._has_ended = True


def lost_contact(mine: Watch) -> str:
    """Return the message of a connection that is lost in a collective of step 9."""
    mine.start_step(9)
    with (
        pytest.raises(DistributedError) as caught,
        mine.during("gradients"),
        mine.during("all_sum"),
    ):
        raise LOST
    assert mine.doing == ""
    return str(caught.value)


def wait_for_signs() -> None:
    time.sleep(0.2)  # several intervals


def test_a_process_that_does_not_answer(pair) -> None:
    mine, other = pair
    other.start_step(8)
    with other.during("gradients"):
        wait_for_signs()
        other._has_ended = True
        wait_for_signs()
    lines = lost_contact(mine).split("\n  ")
    assert lines[0].startswith("process 0 in step 9 (gradients: all_sum) lost contact")
    assert "recv operation" in lines[0]
    assert lines[1] == "process 2 has given no sign of life since it started"  # no watch has it
    assert re.match(r"process 1 has not answered for \d+ s, since step 8 \(gradients\)", lines[2])


def test_a_process_that_answers_but_is_behind(pair) -> None:
    mine, other = pair
    other.start_step(8)
    with other.during("save"):
        wait_for_signs()
        message = lost_contact(mine)
    assert "process 1 answers, but has been in step 8 (save) for" in message


def test_a_process_that_waits_in_the_same_collective_is_not_named(pair) -> None:
    mine, other = pair
    other.start_step(9)
    with other.during("gradients"), other.during("all_sum"):
        wait_for_signs()
        assert "process 1" not in lost_contact(mine)


def test_a_process_that_failed(pair) -> None:
    mine, other = pair
    other.start_step(8)
    with pytest.raises(ValueError, match="no such token"), other.during("gradients"):
        raise ValueError("no such token\nmore")
    other._publish_end()
    failed = "process 1 failed in step 8: ValueError: no such token (gradients)"
    assert failed in lost_contact(mine)


def test_an_error_that_the_program_handles_is_forgotten(pair) -> None:
    mine, other = pair
    with pytest.raises(ValueError, match="once"), other.during("save"):
        raise ValueError("once")
    other.start_step(9)
    other._publish_end()
    assert "once" not in lost_contact(mine)


def test_other_errors_pass_unchanged(pair) -> None:
    with pytest.raises(RuntimeError, match="shapes"), pair[0].during("gradients"):
        raise RuntimeError("shapes differ")
