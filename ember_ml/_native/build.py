"""Build of the C kernels. Runs without Ember ML: when a wheel is built, or as a script.

`python ember_ml/_native/build.py` builds the libraries of a source tree in place.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
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
    """Return a hash of all sources, which a library contains to tell what it was built from."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.iterdir()):
        if path.suffix in (".c", ".h", ".inc"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def find_compiler() -> str:
    """Return the C compiler: $CC, or the first of cc, gcc and clang."""
    names = [os.environ["CC"]] if os.environ.get("CC") else ["cc", "gcc", "clang"]
    for name in names:
        if path := shutil.which(name):
            return path
    raise BuildError(f"no C compiler: {', '.join(names)} not found")


def levels() -> tuple[str, ...]:
    """Return the instruction sets to build for on this machine."""
    return PROCESSORS.get(platform.machine().lower(), ("generic",))


def library_name(level: str) -> str:
    """Return the file name of the library for an instruction set."""
    return f"libember_kernels-{level}{SUFFIX}"


def build(folder: Path, *, flags: tuple[str, ...] = ()) -> list[Path]:
    """Build the libraries into a folder and return their paths.

    Args:
        folder: Existing folder.
        flags: Further compiler flags.

    Raises:
        BuildError: If there is no compiler, or it fails.
    """
    if sys.platform == "win32":
        raise BuildError("the C kernels use POSIX threads; Windows is not supported")
    compiler = find_compiler()
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    paths = []
    for level in levels():
        path = folder / library_name(level)
        march = () if level == "generic" else (f"-march={level}", "-mprefer-vector-width=512")
        define = f'-DEMBER_SOURCE_HASH="{source_hash()}"'
        part = path.with_suffix(f".{os.getpid()}.part")
        command = [compiler, *FLAGS, *march, define, *flags, *sources, "-o", str(part), "-lm"]
        if sys.platform != "darwin":
            command.append("-lpthread")
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                raise BuildError(f"{' '.join(command)}\n{result.stderr}")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        paths.append(path)
    return paths


if __name__ == "__main__":
    try:
        for built in build(FOLDER):
            sys.stdout.write(f"{built}\n")
    except BuildError as error:
        sys.exit(f"the C kernels were not built: {error}")
