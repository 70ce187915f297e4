"""Run functions in several processes that train together, inside a network of their own.

`python -m tests.distributed.host NUMBER BACKEND` reads tasks from standard input, one JSON line
each, and writes the results of all processes as one JSON line.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import math
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from typing import TextIO

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
PATIENCE = 10.0
"""Seconds that the other processes have after one has failed."""


def bring_up_loopback() -> None:
    """Enable the loopback interface of a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(handle, SIOCGIFFLAGS, request))[1]
        if not flags & IFF_UP:
            fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | IFF_UP))


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that no program uses."""
    handles = [socket.socket() for _ in range(count)]
    for handle in handles:
        handle.bind(("127.0.0.1", 0))
    ports = [handle.getsockname()[1] for handle in handles]
    for handle in handles:
        handle.close()
    return ports


def environment(rank: int, number: int, backend: str, ports: list[int], folder: str) -> dict:
    """Return the environment variables of a process, as its launcher would set them."""
    common = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "EMBER_ML_BACKEND": backend,
        "GLOO_SOCKET_IFNAME": "lo",
    }
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MLX_RANK", "MLX_HOSTFILE"):
        common.pop(name, None)
    if backend == "mlx":
        hosts = os.path.join(folder, "hosts.json")
        with open(hosts, "w") as file:
            json.dump([[f"127.0.0.1:{port}"] for port in ports], file)
        return {**common, "MLX_RANK": str(rank), "MLX_HOSTFILE": hosts}
    return {  # those of SLURM; tests of `ember launch` have those of torchrun
        **common,
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_NTASKS": str(number),
        "SLURM_STEP_NODELIST": "localhost",
        "MASTER_PORT": str(ports[0]),
    }


def serve(number: int, backend: str) -> None:
    """Start the processes, and forward tasks and results until standard input ends."""
    bring_up_loopback()
    ports = free_ports(max(number, 1))
    with tempfile.TemporaryDirectory() as folder:
        workers = []
        for rank in range(number):
            read, write = os.pipe()
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.distributed.host", "worker", str(write)],
                stdin=subprocess.PIPE,
                stdout=sys.stderr,
                env=environment(rank, number, backend, ports, folder),
                pass_fds=[write],
                text=True,
            )
            os.close(write)
            workers.append((process, os.fdopen(read)))
        for line in sys.stdin:
            for process, _ in workers:
                process.stdin.write(line)
                process.stdin.flush()
            replies = collect([results for _, results in workers])
            sys.stdout.write(json.dumps(replies) + "\n")
            sys.stdout.flush()
            if any("error" in reply for reply in replies):
                break  # the processes may wait for each other
        for process, results in workers:
            process.kill()
            process.wait()
            results.close()


def collect(pipes: list[TextIO]) -> list[dict]:
    """Return the answers of all processes; if one fails, the others have little time left."""
    answers: dict[int, dict] = {}
    deadline = math.inf
    while len(answers) < len(pipes):
        waiting = [pipe for at, pipe in enumerate(pipes) if at not in answers]
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select(waiting, [], [], None if math.isinf(left) else left)
        if not ready:
            break
        for pipe in ready:
            line = pipe.readline()
            answer = json.loads(line) if line else {"error": "the process ended"}
            answers[pipes.index(pipe)] = answer
            if "error" in answer:
                deadline = min(deadline, time.monotonic() + PATIENCE)
    return [answers.get(at, {"error": "no answer"}) for at in range(len(pipes))]


def work(descriptor: int) -> None:
    """Run tasks from standard input, and write their results to a pipe."""
    with os.fdopen(descriptor, "w") as results:
        for line in sys.stdin:
            task = json.loads(line)
            module, name = task["function"].split(":")
            try:
                function = getattr(importlib.import_module(module), name)
                answer = {"result": function(**task["arguments"])}
            except BaseException:
                answer = {"error": traceback.format_exc()}
            results.write(json.dumps(answer) + "\n")
            results.flush()


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        work(int(sys.argv[2]))
    else:
        serve(int(sys.argv[1]), sys.argv[2])
