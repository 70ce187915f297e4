"""Every op of the table, on every backend, in every dtype it takes."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from ember_ml import ops  # noqa: F401  (declares every op)
from ember_ml._core.dispatch import OPS
from tests.conformance import cases
from tests.conformance.runner import has_dtype, run
from tests.conformance.table import CASES

for module in pkgutil.iter_modules(cases.__path__):
    importlib.import_module(f"tests.conformance.cases.{module.name}")

FOLDER = Path(__file__).parent


def known_gaps(backend: str) -> dict[str, str]:
    """Lines "op dtype  # reason" (dtype may be *) of the backend's file of known failures."""
    path = FOLDER / f"{backend}-xfails.txt"
    gaps = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        row, _, reason = line.partition("#")
        if row.strip():
            assert reason.strip(), f"{path.name}: {row.strip()} gives no reason"
            gaps[" ".join(row.split())] = reason.strip()
    return gaps


def test_every_op_has_a_case() -> None:
    missing = sorted(set(OPS) - {case.key for case in CASES})
    assert not missing, f"ops without a row in tests/conformance/cases: {missing}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_op(case, backend: str) -> None:
    gaps = known_gaps(backend)
    tried = [dtype for dtype in case.dtypes if has_dtype(backend, dtype)]
    assert tried, f"{backend} has none of {case.dtypes}"
    failures = []
    for dtype in tried:
        expected_to_fail = f"{case.key} {dtype}" in gaps or f"{case.key} *" in gaps
        try:
            run(case, backend, dtype)
        except Exception as error:
            if not expected_to_fail:
                failures.append(f"{dtype}: {type(error).__name__}: {error}")
        else:
            if expected_to_fail:
                failures.append(f"{dtype}: passes, though {backend}-xfails.txt lists it")
    assert not failures, "\n".join(failures)
