from __future__ import annotations

import pytest

from tests.distributed.processes import Processes


@pytest.fixture(scope="session")
def pools():
    """Processes by (number, backend), started on first use."""
    started: dict[tuple[int, str], Processes] = {}

    def processes(number: int, backend: str = "torch") -> Processes:
        if (number, backend) not in started:
            started[number, backend] = Processes(number, backend)
        return started[number, backend]

    yield processes
    for each in started.values():
        each.close()
