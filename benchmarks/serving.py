"""Throughput and latency of `ember serve`: many streaming clients against one at a time.

The server and the clients are two processes. The model has 4 layers of attention with 256 features
and computes on PyTorch with one thread.

Usage: python benchmarks/serving.py [--clients 64] [--tokens 64] [--overloads 10]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import ember_ml
from ember_ml import nn, ops

VOCABULARY = 2048
PROMPT = 32
LAYERS = "(attention swiglu)x4"


@dataclass
class Answer:
    """What a client received."""

    status: int
    tokens: int = 0
    first: float = 0.0
    """Seconds to the first token."""
    gaps: list[float] = field(default_factory=list)
    """Seconds between events."""
    seconds: float = 0.0

    @property
    def per_token(self) -> float:
        """Mean seconds of a token after the first."""
        return (self.seconds - self.first) / max(1, self.tokens - 1)


async def ask(url: str, tokens: int, seed: int) -> Answer:
    """Request a stream, and read it to the end."""
    address = urlsplit(url)
    prompt = [(7 * seed + 3 * at) % VOCABULARY for at in range(PROMPT)]
    body = json.dumps(
        {
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": 1.0,
            "seed": seed,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(head.encode() + body)
    answer = Answer(int((await reader.readline()).split()[1]))
    last = 0.0
    async for line in reader:
        if not line.startswith(b"data: {"):
            continue
        now = time.perf_counter() - started
        if b'"usage"' in line:
            answer.tokens = json.loads(line[6:])["usage"]["completion_tokens"]
            continue
        if last:
            answer.gaps.append(now - last)
        else:
            answer.first = now
        answer.seconds = last = now
    writer.close()
    return answer


async def ask_all(url: str, clients: int, tokens: int) -> tuple[list[Answer], float]:
    """Return the answers of clients that ask at the same time, and the seconds they took."""
    started = time.perf_counter()
    answers = await asyncio.gather(*(ask(url, tokens, seed) for seed in range(clients)))
    return answers, time.perf_counter() - started


async def ask_one_by_one(url: str, count: int, tokens: int) -> tuple[list[Answer], float]:
    """Return the answers of one client after the other, and the seconds they took."""
    started = time.perf_counter()
    answers = [await ask(url, tokens, seed) for seed in range(count)]
    return answers, time.perf_counter() - started


class Server:
    """`ember serve` in a process."""

    def __init__(self, folder: Path, backend: str, *options: str) -> None:
        command = [sys.executable, "-m", "ember_ml", "serve", str(folder), "--port", "0"]
        root = str(Path(__file__).parents[1])
        self.process = subprocess.Popen(
            [*command, "--backend", backend, *options],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root},
            cwd=root,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        if found is None:
            raise SystemExit(f"the server does not start: {line}")
        self.url = found.group()

    def memory(self) -> float:
        """Return the resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return float("nan")
        found = re.search(r"VmRSS:\s+(\d+)", status.read_text())
        return int(found.group(1)) / 1024 if found else float("nan")

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        code = self.process.wait(60)
        print(f"exit code after SIGTERM: {code}")


def quantiles(name: str, values: list[float]) -> None:
    """Print the median and the 99th percentile in milliseconds."""
    ranked = sorted(values)
    high = ranked[min(len(ranked) - 1, int(0.99 * len(ranked)))]
    print(f"  {name:<22} p50 {1e3 * statistics.median(values):8.2f} ms   p99 {1e3 * high:8.2f} ms")


def report(title: str, answers: list[Answer], seconds: float) -> float:
    """Print the measurements of a run, and return the tokens per second."""
    rate = sum(each.tokens for each in answers) / seconds
    print(f"{title}: {rate:.0f} tokens/s")
    quantiles("time to first token", [each.first for each in answers])
    quantiles("time per token", [each.per_token for each in answers])
    quantiles("time between events", [gap for each in answers for gap in each.gaps])
    return rate


def save_model(folder: Path) -> None:
    """Save the model."""
    ops.random.set_seed(0)
    ember_ml.save(nn.models.LanguageModel(LAYERS, VOCABULARY, 256), folder)


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--overloads", type=int, default=10)
    parser.add_argument("--backend", default="torch")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        save_model(place)
        options = ("--max-batch", str(given.clients), "--queue", str(given.clients // 2))
        server = Server(place, given.backend, *options)
        try:
            measure(server, given)
        finally:
            server.stop()


def measure(server: Server, given: argparse.Namespace) -> None:
    """Print the measurements of one server."""
    asyncio.run(ask_all(server.url, given.clients, given.tokens))  # warm up
    before = server.memory()
    ratios = []
    for _ in range(given.rounds):
        alone = report("one at a time", *asyncio.run(ask_one_by_one(server.url, 6, given.tokens)))
        title = f"{given.clients} at once"
        joint = report(title, *asyncio.run(ask_all(server.url, given.clients, given.tokens)))
        ratios.append(joint / alone)
    print(f"throughput, {given.clients} at once / one at a time: {statistics.median(ratios):.1f}x")
    print(f"memory of the server: {before:.0f} MB at first, {server.memory():.0f} MB now")
    for _ in range(given.overloads):
        overload(server, given)


def overload(server: Server, given: argparse.Namespace) -> None:
    """Ask for twice the sequences that a server accepts, and print what it answers."""
    places = given.clients + given.clients // 2
    answers, _ = asyncio.run(ask_all(server.url, 2 * places, given.tokens))
    statuses = [each.status for each in answers]
    print(
        f"2x overload, {2 * places} clients for {places} places: {statuses.count(200)} served, "
        f"{statuses.count(503)} refused (503), "
        f"{len(statuses) - statuses.count(200) - statuses.count(503)} others; "
        f"memory {server.memory():.0f} MB"
    )


if __name__ == "__main__":
    main()
