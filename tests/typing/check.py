"""Check the built wheel: it contains the examples, and mypy and pyright accept consumer.py."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONSUMER = Path(__file__).with_name("consumer.py")


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the package and return its path."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("ember_ml-*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """Return a Python that has the wheel and, from this environment, its dependencies."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    shutil.unpack_archive(wheel, site, "zip")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"


def copy_examples(python: Path, folder: Path) -> None:
    """Copy the examples of the installed package with its command."""
    command = [python, "-m", "ember_ml", "examples", "all", "--out", folder]
    subprocess.run(command, check=True, cwd=python.parent, stdout=subprocess.DEVNULL)
    assert (folder / "own_parts.py").is_file()


def main() -> int:
    """Return how many checkers found an error."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = install(build_wheel(folder), folder / "venv")
        copy_examples(python, folder / "examples")
        shutil.copy(CONSUMER, folder)
        tools = Path(sys.executable).parent
        checks = (
            [tools / "mypy", "--strict", "--python-executable", python, "--config-file="],
            [tools / "basedpyright", "--pythonpath", python, "--level", "error"],
        )
        settings = '[tool.basedpyright]\ntypeCheckingMode = "standard"\ninclude = ["consumer.py"]\n'
        (folder / "pyproject.toml").write_text(settings)
        runs = [subprocess.run([*check, "consumer.py"], cwd=folder) for check in checks]
    return sum(run.returncode != 0 for run in runs)


if __name__ == "__main__":
    raise SystemExit(main())
