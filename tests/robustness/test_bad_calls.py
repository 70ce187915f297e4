"""Unusual and invalid calls: every backend accepts the same ones, or raises the same exception.

`known_differences.txt` lists the calls that still differ, with a reason each. It is strict: a call
that no longer differs must be removed. The normal suite runs a sample; EMBER_ROBUSTNESS=full runs
every call.
"""

from __future__ import annotations

import os
import warnings
import zlib
from pathlib import Path

import pytest

from ember_ml import use_backend
from ember_ml._core.errors import IndexOutOfRangeError
from ember_ml._core.op import OPS
from ember_ml.backend import available
from tests.robustness.probes import STORED, Probe, outcome, probes

LINES = (Path(__file__).parent / "known_differences.txt").read_text().splitlines()
REASONS = dict(line.split("  # ") for line in LINES)
KNOWN = set(REASONS)
EVERY = 1 if os.environ.get("EMBER_ROBUSTNESS") == "full" else 12
UNCHECKED = IndexOutOfRangeError.__name__
INTERNAL = ("indexing.getitem", "indexing.setitem", "indexing.additem")
"""Ops that take native keys."""


def is_public(key: str) -> bool:
    """Return whether users call the op; the others get checked arguments."""
    return not key.startswith("random.") and key not in INTERNAL and "general" not in key


FAMILIES = sorted({op.family for key, op in OPS.items() if is_public(key)})


def chosen(family: str) -> list[Probe]:
    keys = [key for key, op in OPS.items() if op.family == family and is_public(key)]
    found = [probe for key in keys for probe in probes(key, 1)]
    return [probe for probe in found if zlib.crc32(probe.label.encode()) % EVERY == 0]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_backend_reacts_alike(family: str) -> None:
    calls = chosen(family)
    outcomes: dict[str, list[str]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in available():
            with use_backend(name):
                found = [str(outcome(probe)) for probe in calls]
            if not outcomes:  # a lazy backend does not check index tensors: it reads anything
                calls = [each for each, got in zip(calls, found, strict=True) if got != UNCHECKED]
                found = [got for got in found if got != UNCHECKED]
            outcomes[name] = found
            wrong = [
                f"{p.label}: {got}" for p, got in zip(calls, found, strict=True) if STORED in got
            ]
            assert not wrong, f"{name} reports another dtype than it stores:\n" + "\n".join(wrong)
    rows = list(zip(calls, zip(*outcomes.values(), strict=True), strict=True))
    differ = {probe.label: each for probe, each in rows if len(set(each)) > 1}
    new = [f"{label}: {each}" for label, each in differ.items() if label not in KNOWN]
    assert not new, f"{', '.join(outcomes)} differ:\n" + "\n".join(new)
    if len(outcomes) == 3:
        agree = sorted({probe.label for probe in calls} & KNOWN - set(differ))
        assert not agree, "remove from known_differences.txt:\n" + "\n".join(agree)
