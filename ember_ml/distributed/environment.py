"""The place of this process among those that a launcher started."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from ember_ml.distributed.errors import DistributedError

_SLURM_PORT = 20000
"""First of the 20,000 ports that the number of a SLURM job selects from."""


class Environment(NamedTuple):
    """The place of this process among those that a launcher started.

    Attributes:
        rank: Number of this process.
        size: Number of processes.
        local_rank: Number of this process on its machine.
        launcher: What started it: "torchrun", "slurm", "mlx" or "none".
        restarts: How many times the launcher has restarted the processes.
    """

    rank: int
    size: int
    local_rank: int
    launcher: str
    restarts: int = 0

    @property
    def is_main(self) -> bool:
        """Whether this process writes logs and files that all processes share."""
        return self.rank == 0


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Return the environment that torchrun, SLURM or mlx.launch has set.

    Under SLURM, `MASTER_ADDR` and `MASTER_PORT` are set for torch if they are missing.

    Args:
        variables: Environment variables. Default: those of this process.
    """
    given = os.environ if variables is None else variables
    if "RANK" in given and "WORLD_SIZE" in given:
        rank, size = _number(given, "RANK"), _number(given, "WORLD_SIZE")
        local = _number(given, "LOCAL_RANK", rank)
        restarts = _number(given, "TORCHELASTIC_RESTART_COUNT", 0)
        return _checked(Environment(rank, size, local, "torchrun", restarts))
    if "MLX_RANK" in given:
        rank = _number(given, "MLX_RANK")
        return _checked(Environment(rank, _mlx_size(given), rank, "mlx"))
    if "SLURM_PROCID" in given and _number(given, "SLURM_NTASKS", 1) > 1:
        rank, size = _number(given, "SLURM_PROCID"), _number(given, "SLURM_NTASKS")
        if variables is None:
            _set_address(given)
        local, restarts = (
            _number(given, "SLURM_LOCALID", 0),
            _number(given, "SLURM_RESTART_COUNT", 0),
        )
        return _checked(Environment(rank, size, local, "slurm", restarts))
    return Environment(0, 1, 0, "none")


def _number(given: Mapping[str, str], name: str, default: int | None = None) -> int:
    value = given.get(name)
    if value is None and default is not None:
        return default
    if value is None or not re.fullmatch(r"\d+", value):
        raise DistributedError(f"the environment variable {name} must be a number, not {value!r}")
    return int(value)


def _checked(environment: Environment) -> Environment:
    rank, size, _, launcher, _ = environment
    if rank >= size:
        raise DistributedError(
            f"the environment variables of {launcher} say process {rank} of {size}; the first "
            "process is 0"
        )
    return environment


def _mlx_size(given: Mapping[str, str]) -> int:
    """Return the number of processes, from the file that lists their addresses."""
    if "MLX_WORLD_SIZE" in given:
        return _number(given, "MLX_WORLD_SIZE")
    path = given.get("MLX_HOSTFILE")
    if path is None:
        raise DistributedError("MLX_RANK is set, but neither MLX_HOSTFILE nor MLX_WORLD_SIZE is")
    try:
        with open(path, encoding="utf-8") as file:
            hosts = json.load(file)
    except (OSError, ValueError) as error:
        raise DistributedError(f"MLX_HOSTFILE: {path} cannot be read: {error}") from None
    if not isinstance(hosts, list):
        raise DistributedError(f"MLX_HOSTFILE: {path} must hold a list of addresses")
    return len(hosts)


def _set_address(given: Mapping[str, str]) -> None:
    """Set the address of the first process, which SLURM names in a list of machines."""
    nodes = given.get("SLURM_STEP_NODELIST", given.get("SLURM_JOB_NODELIST", ""))
    os.environ.setdefault("MASTER_ADDR", first_host(nodes) or "127.0.0.1")
    job = given.get("SLURM_JOB_ID", "0")
    port = _SLURM_PORT + int(re.sub(r"\D", "", job) or 0) % 20000
    os.environ.setdefault("MASTER_PORT", str(port))


def first_host(nodes: str) -> str:
    """Return the first machine of a SLURM list such as "gpu[03-05,9],cpu1".

    Args:
        nodes: The list.
    """
    match = re.match(r"([^,\[]+)(?:\[([^\]]+)\])?([^,]*)", nodes)
    if match is None:
        return ""
    name, numbers, rest = match.groups()
    return name + (re.split(r"[-,]", numbers)[0] if numbers else "") + (rest or "")
