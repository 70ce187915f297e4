"""Environment variables of torchrun, SLURM and mlx.launch."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ember_ml.distributed import DistributedError, Environment, read_environment
from ember_ml.distributed.environment import first_host
from tests.distributed.launching import command, variables
from tests.distributed.processes import ROOT

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


def sums() -> None:
    """Print the sum over the processes that SLURM has started."""
    from ember_ml.distributed.mesh import Mesh
    from ember_ml.distributed.world import World

    place = read_environment()
    world = World(Mesh(), "torch", timeout=120)
    total = world.group("world").sums([place.rank + 1.0])
    sys.stdout.write(f"{place.launcher} {os.environ['MASTER_ADDR']} {place.rank} {total}\n")
    world.group("world").barrier()


def srun(number: int) -> None:
    """Run `sums` in several processes, with the environment variables of srun."""
    words = [sys.executable, "-c", "from tests.distributed.test_environment import sums; sums()"]
    common = {**os.environ, "SLURM_NTASKS": str(number), "SLURM_JOB_ID": "77"}
    common |= {"SLURM_STEP_NODELIST": "localhost", "GLOO_SOCKET_IFNAME": "lo"}
    started = [
        subprocess.Popen(words, env={**common, "SLURM_PROCID": str(at), "SLURM_LOCALID": str(at)})
        for at in range(number)
    ]
    assert [process.wait() for process in started] == [0] * number


def test_processes_that_slurm_starts_find_each_other() -> None:
    done = subprocess.run(
        command("-c", "from tests.distributed.test_environment import srun; srun(2)"),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=variables(),
        timeout=300,
        check=False,
    )
    lines = sorted(done.stdout.splitlines())
    assert lines == [f"slurm localhost {rank} [3.0]" for rank in (0, 1)], done.stderr
