"""CPU kernels in C, loaded with ctypes.

The NumPy backend, and the torch backend on the CPU, use them for the ops in `BACKENDS_OF_OP`.
Without the library (no compiler at install time, or `EMBER_ML_NATIVE=0`) the backends use their own
code.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path

from ember_ml._native import build

VARIABLE = "EMBER_ML_NATIVE"
"""Environment variable: 0 switches the kernels off; the name of an instruction set selects it."""
THREADS_VARIABLE = "EMBER_ML_NUM_THREADS"
KEPT_BYTES = 512 << 20
"""Largest amount of freed memory that `keep_freed_memory` keeps."""
_ON_BOTH = (
    *("causal_conv1d", "causal_conv1d_silu", "gated_long_conv", "long_conv"),
    *("rms_norm", "rotary_heads", "silu_gate", "softplus", "softplus_linear", "swiglu"),
    *("cross_entropy", "linear_recurrence", "selective_scan", "selective_scan_with_state"),
    *("gated_linear_attention", "gated_delta_rule", "spiking_scan"),
    *("closed_form", "gru", "liquid", "lstm", "synapses"),
)
_ON_NUMPY = (
    *("softmax", "log_softmax", "layer_norm", "attend", "gelu", "silu", "sigmoid", "erf", "glu"),
    *("rope", "embedding", "segment_sum"),
)
BACKENDS_OF_OP: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ON_BOTH, ("numpy", "torch")),
    **dict.fromkeys(_ON_NUMPY, ("numpy",)),
}
"""Backends of each op that has a C kernel."""


class _UnavailableError(Exception):
    """The library cannot be used; the message is the reason."""


class _UnknownValueError(_UnavailableError):
    """The environment variable asks for an instruction set that there is not."""


def _load() -> tuple[ctypes.CDLL, str]:
    """Return the library for this processor, and its instruction set."""
    wanted = os.environ.get(VARIABLE, "").strip().lower()
    if wanted in ("0", "false", "off", "no"):
        raise _UnavailableError(f"switched off by {VARIABLE}={os.environ[VARIABLE]}")
    levels = build.levels()[::-1]
    if wanted not in ("", "1", "true", "on", "yes", *levels):
        raise _UnknownValueError(f"{VARIABLE}={wanted} is none of 0, 1, {', '.join(levels)}")
    baseline = _open(levels[0])
    supported = levels[: baseline.ember_processor_level() + 1]
    if wanted not in levels:
        best = [level for level in supported if _path(level).is_file()][-1]
        return _open(best), best
    if wanted not in supported:
        raise _UnknownValueError(f"{VARIABLE}={wanted}: the processor does not support it")
    return _open(wanted), wanted


def _path(level: str) -> Path:
    return build.FOLDER / build.library_name(level)


def _open(level: str) -> ctypes.CDLL:
    path = _path(level)
    if not path.is_file():
        raise _UnavailableError(f"{path.name} was not built; it needs a C compiler")
    if _is_truncated(path):
        raise _UnavailableError(
            f"{path.name} cannot be loaded: the end of the file is missing; install Ember ML "
            "again, or run `make native` in a clone"
        )
    try:
        library = ctypes.CDLL(str(path))
        library.ember_source_hash.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise _UnavailableError(f"{path.name} cannot be loaded: {error}") from None
    built_from = library.ember_source_hash().decode()
    if build.SOURCES.is_dir() and built_from != build.source_hash():
        raise _UnavailableError(f"{path.name} was built from other sources; run `make native`")
    return library


def _is_truncated(path: Path) -> bool:
    """Return whether a file in the ELF format lacks its end; to load it would end the process.

    The table of the sections is the last part of the file.
    """
    with path.open("rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":  # the loader checks other formats
            return False
        if len(head) < 64:
            return True
        order = "<" if head[5] == 1 else ">"
        (table,) = struct.unpack_from(f"{order}Q", head, 40)
        size, count = struct.unpack_from(f"{order}HH", head, 58)
        if not count:
            return False
        file.seek(table + (count - 1) * size)
        last = file.read(size)
    return len(last) < size or not any(last)


def _number_of_threads() -> int:
    """Return the number of threads of a kernel from the environment, or all processors."""
    for name in (THREADS_VARIABLE, "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value) > 0:
            return int(value)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


library: ctypes.CDLL | None
"""The loaded library, or None: then the backends use their own code."""
try:
    library, _status = _load()
except _UnavailableError as _error:
    library, _status = None, str(_error)
    if isinstance(_error, _UnknownValueError):
        warnings.warn(f"the C kernels are off: {_error}", RuntimeWarning, stacklevel=2)
threads = _number_of_threads()
"""Number of threads of a kernel on the NumPy backend."""


def status() -> str:
    """Return the instruction set of the kernels in use, or why there are none."""
    return f"C kernels for {_status}" if library is not None else f"no C kernels: {_status}"


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """Use the backends' own code inside a `with` block, in all threads."""
    global library
    previous, library = library, None
    try:
        yield
    finally:
        library = previous


def keep_freed_memory() -> None:
    """Let the allocator keep freed memory for later arrays instead of returning it to the system.

    Without it, the arrays of every training step cost page faults: a quarter of a step of a small
    model on NumPy. Does nothing without the library, and where the C library is not glibc.
    """
    if library is not None:
        library.ember_keep_freed_memory(KEPT_BYTES)
