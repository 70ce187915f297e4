"""Check the wheels built from the source distribution with and without a C compiler.

With a compiler the wheel is for this platform and contains the kernels; without one it is for any
platform, and the backends use their own code. Both compute the same numbers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.typing.check import install  # noqa: E402

REQUIREMENTS = ("hatchling", "hatch-fancy-pypi-readme>=24")
NUMBERS = """
import math
import ember_ml as ember
from ember_ml import ops

ember.set_backend("numpy")
x = [[math.sin(row * 100.0 + i) for i in range(100)] for row in range(10)]
out = ops.softmax(ops.asarray(x)).tolist()
for row, result in zip(x, out):
    total = sum(map(math.exp, row))
    assert max(abs(math.exp(a) / total - b) for a, b in zip(row, result)) < 1e-7
"""


def build_sdist(folder: Path) -> Path:
    """Build the source distribution with hatchling and return its path."""
    venv.create(folder / "build", with_pip=True)
    python = folder / "build" / "bin" / "python"
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *quiet, *REQUIREMENTS], check=True)
    code = f"from hatchling.build import build_sdist; build_sdist({str(folder)!r})"
    subprocess.run([python, "-c", code], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    (sdist,) = folder.glob("ember_ml-*.tar.gz")
    return sdist


def build_wheel(sdist: Path, folder: Path, **variables: str) -> Path:
    """Build a wheel from the source distribution and return its path."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    environment = {**os.environ, **variables}
    subprocess.run([*command, str(folder), str(sdist)], check=True, env=environment)
    (wheel,) = folder.glob("ember_ml-*.whl")
    return wheel


def status(python: Path) -> str:
    """Return what `ember info` reports about the kernels, after a test of the numbers."""
    own = ("PYTHONPATH", "EMBER_ML_NATIVE")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    run = {"check": True, "cwd": python.parent, "env": environment}
    subprocess.run([python, "-c", NUMBERS], **run)
    command = [python, "-m", "ember_ml", "info", "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, **run).stdout)["kernels"]


def main() -> None:
    """Build both wheels and check their tags, contents, status and numbers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sdist = build_sdist(folder)
        with tarfile.open(sdist) as archive:
            names = archive.getnames()
        assert any(each.endswith("ember_ml/_native/src/kernels.h") for each in names), names
        assert not any(each.endswith((".so", ".dylib")) for each in names), names
        for kind, variables, is_native in (
            ("native", {}, True),
            ("pure", {"CC": "/nonexistent/cc"}, False),
        ):
            wheel = build_wheel(sdist, folder / kind, **variables)
            assert wheel.stem.split("-", 2)[2].startswith("py3-none-"), wheel.name
            assert wheel.stem.endswith("-any") is not is_native, wheel.name
            report = status(install(wheel, folder / kind / "venv"))
            expected = "C kernels for " if is_native else "no C kernels: "
            assert report.startswith(expected), report
            print(f"{wheel.name}: {report}")


if __name__ == "__main__":
    main()
