"""Child process of the mutation fuzzer: reads damaged files and prints what went wrong.

python -m tests.robustness.fuzz files|configs SEED COUNT [FORMAT ...]

"files" damages every file format; "configs" enlarges the numbers in the config of every component.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from ember_ml._core.errors import EmberError
from ember_ml.backend import use_backend
from tests.robustness.formats import Format, components_of, formats
from tests.robustness.mutations import enlarge, mutate

Damage = Callable[[bytes, random.Random], bytes]

SECONDS = 20
"""Time after which a read counts as hanging."""
SPARE = 160 << 20
"""Bytes of memory that reads may use beyond three times the size of the file."""


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise AssertionError("the system does not report the peak memory")


def problem(each: Format, original: object) -> str | None:
    """Return what is wrong with the read of a damaged file; None if nothing is."""
    before = each.state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            meaning = each.read()
    except EmberError:
        return None if each.state() == before else "a refused read changed the target"
    except Exception:
        return traceback.format_exc(limit=-6)
    if each.guarded and meaning != original:
        return "damage that a checksum covers was read"
    return None


def run(
    name: str, each: Format, damage: Damage, rng: random.Random, count: int
) -> list[dict[str, object]]:
    """Return the problems of some damaged versions of a file."""
    content = each.file.read_bytes()
    sums = None if each.unguard is None else each.unguard.read_bytes()
    original = each.read()
    found: list[dict[str, object]] = []
    start = peak_memory()
    try:
        if each.unguard is not None:
            each.unguard.unlink()
        for at in range(count):
            damaged = damage(content, rng)
            each.file.write_bytes(damaged)
            signal.alarm(SECONDS)
            what = problem(each, original)
            signal.alarm(0)
            if peak_memory() - start > 3 * len(content) + SPARE:
                what = f"{(peak_memory() - start) >> 20} MB of memory"
                start = peak_memory()
            if what is not None:
                found.append({"format": name, "at": at, "what": what, "file": repr(damaged[:300])})
    finally:
        each.file.write_bytes(content)
        if each.unguard is not None and sums is not None:
            each.unguard.write_bytes(sums)
    return found


def _hang(number: int, frame: object) -> None:
    raise TimeoutError(f"the read took more than {SECONDS} seconds")


def main(what: str, seed: int, count: int, names: list[str]) -> None:
    """Damage each format in turn, `count` times in all, and print the problems as JSON."""
    signal.signal(signal.SIGALRM, _hang)
    with tempfile.TemporaryDirectory() as folder, use_backend("numpy"):
        os.chdir(folder)
        examples, damage = (formats, mutate) if what == "files" else (components_of, enlarge)
        every = examples(Path(folder))
        chosen = {name: every[name] for name in names or every}
        share = -(-count // len(chosen))
        for name, each in chosen.items():
            found = run(name, each, damage, random.Random(f"{seed} {name}"), share)
            line = {"format": name, "count": share, "problems": found}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
