"""Build of the C kernels. Runs without Ember ML: when a wheel is built, or as a script.

`python ember_ml/_native/build.py` builds the libraries of a source tree in place.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCES = FOLDER / "src"
FLAGS = (
    *("-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden"),
    # Vectorizes comparisons and products with sums; keeps NaN, infinities and rounding as they are.
    *("-fno-trapping-math", "-fno-math-errno", "-ffp-contract=fast"),
    "-fopenmp-simd",  # sums in the order of the vectors where a loop asks for it
)
SUFFIX = {"darwin": ".dylib"}.get(sys.platform, ".so")
PROCESSORS = {"x86_64": ("x86-64-v4", "x86-64-v3", "x86-64"), "amd64": ("x86-64",)}
"""Instruction sets to build for, the best first; other machines have one library."""


class BuildError(RuntimeError):
    """The C kernels cannot be built on this machine."""


def source_hash() -> str:
    """Return a hash of all sources. A library contains the hash of the sources of its build."""
    import hashlib  # here, because every program that uses NumPy imports this file

    digest = hashlib.sha256()
    for path in sorted(SOURCES.iterdir()):
        if path.suffix in (".c", ".h", ".inc"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def find_compiler() -> list[str]:
    """Return the command of the C compiler: $CC, or the first of cc, gcc and clang."""
    import shlex
    import shutil

    given = shlex.split(os.environ.get("CC", ""))
    for command in [given] if given else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    raise BuildError(f"no C compiler: {given[0] if given else 'cc, gcc, clang'} not found")


def levels() -> tuple[str, ...]:
    """Return the instruction sets to build for on this machine."""
    machine = os.uname().machine.lower() if hasattr(os, "uname") else ""
    return PROCESSORS.get(machine, ("generic",))


def library_name(level: str) -> str:
    """Return the file name of the library for an instruction set."""
    return f"libember_kernels-{level}{SUFFIX}"


def build(folder: Path, *, flags: tuple[str, ...] = ()) -> list[Path]:
    """Build the libraries into a folder and return their paths.

    The libraries in the folder are replaced when all are compiled. An instruction set that the
    compiler does not know is left out, but not the last one, which every processor has.

    Args:
        folder: Existing folder.
        flags: Further compiler flags.

    Raises:
        BuildError: If there is no compiler, it fails, or the folder cannot be written to.
    """
    from concurrent.futures import ThreadPoolExecutor

    if sys.platform == "win32":
        raise BuildError("the C kernels use POSIX threads; Windows is not supported")
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise BuildError(f"{folder} is not a folder that can be written to")
    compiler, names = find_compiler(), levels()
    parts = {level: folder / f".{library_name(level)}.{os.getpid()}.part" for level in names}
    try:
        with ThreadPoolExecutor() as pool:
            errors = pool.map(lambda level: _compile(compiler, level, flags, parts[level]), names)
        if error := list(errors)[-1]:
            raise BuildError(error)
        return [path for level in names if (path := _install(parts[level], folder, level))]
    except OSError as error:
        raise BuildError(str(error)) from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _compile(compiler: list[str], level: str, flags: tuple[str, ...], part: Path) -> str:
    """Compile a library; return the error, or an empty string."""
    import shlex
    import subprocess

    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    march = () if level == "generic" else (f"-march={level}", "-mprefer-vector-width=512")
    define = f'-DEMBER_SOURCE_HASH="{source_hash()}"'
    command = [*compiler, *FLAGS, *march, define, *flags, *sources, "-o", str(part), "-lm"]
    if sys.platform != "darwin":
        command.append("-lpthread")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{shlex.join(command)}\n{result.stderr}" if result.returncode else ""


def _install(part: Path, folder: Path, level: str) -> Path | None:
    """Move a compiled library to its place; remove an old one if there is no new one."""
    path = folder / library_name(level)
    if not part.is_file():
        path.unlink(missing_ok=True)
        return None
    part.replace(path)
    return path


if __name__ == "__main__":
    try:
        for built in build(FOLDER):
            sys.stdout.write(f"{built}\n")
    except BuildError as error:
        sys.exit(f"the C kernels were not built: {error}")
