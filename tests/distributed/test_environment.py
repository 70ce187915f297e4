"""Environment variables of torchrun, SLURM and mlx.launch."""

from __future__ import annotations

import json
import os

import pytest

from ember_ml.distributed import DistributedError, Environment, read_environment
from ember_ml.distributed.environment import first_host

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
SLURM = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"}
TABLE = [
    ({}, Environment(0, 1, 0, "none")),
    (TORCHRUN, Environment(3, 4, 1, "torchrun")),
    ({**TORCHRUN, "TORCHELASTIC_RESTART_COUNT": "2"}, Environment(3, 4, 1, "torchrun", 2)),
    ({"RANK": "1", "WORLD_SIZE": "2"}, Environment(1, 2, 1, "torchrun")),
    (SLURM, Environment(5, 8, 1, "slurm")),
    ({**SLURM, "SLURM_RESTART_COUNT": "1"}, Environment(5, 8, 1, "slurm", 1)),
    ({**SLURM, **TORCHRUN}, Environment(3, 4, 1, "torchrun")),  # torchrun inside a SLURM job
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, Environment(0, 1, 0, "none")),
    ({"MLX_RANK": "1", "MLX_WORLD_SIZE": "2"}, Environment(1, 2, 1, "mlx")),
]


@pytest.mark.parametrize(("given", "expected"), TABLE, ids=lambda x: "-".join(map(str, x)))
def test_environment(given: dict[str, str], expected: Environment) -> None:
    assert read_environment(given) == expected
    assert expected.is_main == (expected.rank == 0)


def test_the_file_of_mlx_has_the_number_of_processes(tmp_path) -> None:
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps([["10.0.0.1:5000"], ["10.0.0.2:5000"], ["10.0.0.3:5000"]]))
    given = {"MLX_RANK": "2", "MLX_HOSTFILE": str(path)}
    assert read_environment(given) == Environment(2, 3, 2, "mlx")
    path.write_text("no JSON")
    with pytest.raises(DistributedError, match="cannot be read"):
        read_environment(given)


WRONG = [
    ({"RANK": "4", "WORLD_SIZE": "4"}, "process 4 of 4"),
    ({"RANK": "one", "WORLD_SIZE": "4"}, "RANK must be a number, not 'one'"),
    ({"MLX_RANK": "0"}, "neither MLX_HOSTFILE nor MLX_WORLD_SIZE"),
    ({"SLURM_PROCID": "-1", "SLURM_NTASKS": "2"}, "SLURM_PROCID must be a number"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=lambda x: "-".join(map(str, x)))
def test_wrong_variables_are_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(DistributedError, match=message):
        read_environment(given)


HOSTS = {
    "gpu01": "gpu01",
    "gpu[03-05,9],cpu1": "gpu03",
    "gpu[7]": "gpu7",
    "a,b": "a",
    "rack1-n[2,4]-ib": "rack1-n2-ib",
    "": "",
}


@pytest.mark.parametrize("nodes", HOSTS)
def test_first_machine_of_a_slurm_list(nodes: str) -> None:
    assert first_host(nodes) == HOSTS[nodes]


def place() -> tuple[str, str, int]:
    """Return the launcher, the address of the first process and the number of this one."""
    found = read_environment()
    return found.launcher, os.environ["MASTER_ADDR"], found.rank


def test_processes_that_slurm_starts_find_the_first_one(pools) -> None:
    expected = [["slurm", "localhost", rank] for rank in (0, 1)]
    assert pools(2).run("tests.distributed.test_environment:place") == expected
