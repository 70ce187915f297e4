"""Values, dtypes and shapes of every op in the table, on every backend, in every dtype it takes."""

from __future__ import annotations

import pytest

from ember_ml import ops  # noqa: F401  (declares every op)
from ember_ml._core.dispatch import OPS
from ember_ml.backend import BACKENDS
from tests.conformance import cases
from tests.conformance.runner import has_dtype, run
from tests.conformance.table import CASES as CASES
from tests.conformance.table import rows_by_op


def test_every_op_has_a_case() -> None:
    missing = sorted(set(OPS) - {case.key for case in CASES})
    assert not missing, f"ops without a row in tests/conformance/cases: {missing}"


def test_cases_mirror_the_files_of_ops() -> None:
    assert {op.family for op in OPS.values()} == cases.FAMILIES


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@pytest.mark.parametrize("key", rows_by_op())
def test_op(key: str, backend: str) -> None:
    failures = []
    for case in rows_by_op()[key]:
        dtypes = [dtype for dtype in case.dtypes if has_dtype(backend, dtype)]
        assert dtypes, f"{case.label}: {backend} has none of {case.dtypes}"
        for dtype in dtypes:
            try:
                run(case, backend, dtype)
            except Exception as error:
                failures.append(f"{case.label} in {dtype}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)
