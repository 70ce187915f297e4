"""Build and loading of the library: sanitizers, fallbacks and their reasons."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ember_ml import _native
from ember_ml._native import build
from ember_ml._native.calls import Kernel
from ember_ml._native.frame import Frame
from ember_ml.backend import use_backend
from ember_ml.backend.native_long_convolution import MOST_LENGTH
from tests.unit.native import sanitized
from tests.unit.native.cases import CASES, operands, run
from tests.unit.native.recurrence_cases import CASES as RECURRENCES
from tests.unit.native.sanitized_recurrences import ops_with_gradients

ROOT = Path(build.__file__).parents[2]


def python(*arguments, **variables):
    """Return the finished process of Python with environment variables."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)


def test_kernels_are_clean_under_sanitizers(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "levels", lambda: build.PROCESSORS.get("x86_64", ("generic",))[-1:])
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0", "-g")
    (library,) = build.build(tmp_path, flags=flags)
    compiler = build.find_compiler()
    preload = [
        subprocess.run(
            [*compiler, f"-print-file-name={name}"], capture_output=True, text=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    variables = {
        "LD_PRELOAD": " ".join(preload),
        "ASAN_OPTIONS": "detect_leaks=0",
        "EMBER_ML_NATIVE": "0",
        "OMP_NUM_THREADS": "1",
    }
    result = python("-m", sanitized.__name__, library, **variables)
    assert result.stdout.strip() == "clean", result.stderr[-3000:]


def test_every_exported_kernel_is_called(every_size):
    called = set()
    call_kernel, call_frame = Kernel.__call__, Frame.call

    def kernel(self, suffix, *arguments):
        called.add(self.names[suffix].removesuffix(f"_{suffix}"))
        call_kernel(self, suffix, *arguments)

    def frame(self, name, *arguments):
        called.add(name)
        call_frame(self, name, *arguments)

    every_size.setattr(Kernel, "__call__", kernel)
    every_size.setattr(Frame, "call", frame)
    for case in CASES.values():
        run(case, operands(case, 65))
    case = CASES["gated_long_conv"]
    run(case, operands(case, MOST_LENGTH + 1))
    with use_backend("numpy"):
        for name, case in RECURRENCES.items():
            ops_with_gradients(name, case.operands(np.random.default_rng(0), 3, 7))
    text = "".join(path.read_text() for path in build.SOURCES.glob("*.inc"))
    exported = set(re.findall(r"EXPORT void NAME\((ember_\w+)\)", text))
    assert exported - called == {"ember_adam"}  # optimizers have tests of their own
    for name in ("layer_norm", "rms_norm", "silu", "silu_gate", "sigmoid_gate"):  # from macros
        assert {f"ember_{name}", f"ember_{name}_adjoint"} <= called


STATUS = "from ember_ml import _native; print(_native.status(), _native.library is None)"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("0", "no C kernels: switched off by EMBER_ML_NATIVE=0 True"),
        ("off", "no C kernels: switched off by EMBER_ML_NATIVE=off True"),
        ("fast", "no C kernels: EMBER_ML_NATIVE=fast is none of 0, 1, "),
        (build.levels()[-1], f"C kernels for {build.levels()[-1]} False"),
    ],
)
def test_environment_variable(value, reason):
    result = python("-c", STATUS, EMBER_ML_NATIVE=value)
    assert result.stdout.startswith(reason), (result.stdout, result.stderr)
    warning = "RuntimeWarning: the C kernels are off: EMBER_ML_NATIVE=fast is none of"
    assert (warning in result.stderr) is (value == "fast")


CHECK = """
from tests.unit.native.cases import CASES, check, operands
from ember_ml import _native
assert _native.library is None
for case in CASES.values():
    check(case, operands(case, 65))
"""


def test_backends_work_without_the_library():
    result = python("-c", CHECK, EMBER_ML_NATIVE="0", OMP_NUM_THREADS="1")
    assert result.returncode == 0, result.stderr[-3000:]


def _load_from(folder, monkeypatch):
    monkeypatch.setattr(build, "FOLDER", folder)
    with pytest.raises(_native._UnavailableError) as caught:
        _native._load()
    return str(caught.value)


def test_missing_and_damaged_libraries(tmp_path, monkeypatch):
    monkeypatch.delenv("EMBER_ML_NATIVE", raising=False)
    name = build.library_name(build.levels()[-1])
    assert _load_from(tmp_path, monkeypatch) == f"{name} was not built; it needs a C compiler"
    (tmp_path / name).write_bytes(b"not a library")
    assert _load_from(tmp_path, monkeypatch).startswith(f"{name} cannot be loaded: ")


@pytest.mark.skipif(sys.platform != "linux", reason="libraries are in the ELF format")
@pytest.mark.parametrize("share", [0.0001, 0.5, 0.999])
def test_truncated_libraries(share, tmp_path, monkeypatch):
    """To load one would end the process with SIGBUS."""
    monkeypatch.delenv("EMBER_ML_NATIVE", raising=False)
    name = build.library_name(build.levels()[-1])
    whole = (build.FOLDER / name).read_bytes()
    half = whole[: int(share * len(whole))]
    assert not _native._is_truncated(build.FOLDER / name)
    for content in (half, half + bytes(len(whole) - len(half))):  # as after a loss of power
        (tmp_path / name).write_bytes(content)
        reason = _load_from(tmp_path, monkeypatch)
        assert reason.startswith(f"{name} cannot be loaded: the end of the file is missing")
        monkeypatch.undo()
        monkeypatch.delenv("EMBER_ML_NATIVE", raising=False)


def test_library_of_other_sources(tmp_path, monkeypatch):
    monkeypatch.delenv("EMBER_ML_NATIVE", raising=False)
    source = tmp_path / "src"
    source.mkdir()
    (source / "other.c").write_text(
        "const char *ember_source_hash(void) { return EMBER_SOURCE_HASH; }\n"
        "int ember_processor_level(void) { return 0; }\n"
    )
    original = build.SOURCES
    monkeypatch.setattr(build, "SOURCES", source)
    monkeypatch.setattr(build, "FLAGS", ("-shared", "-fPIC"))
    build.build(tmp_path)
    monkeypatch.setattr(build, "SOURCES", original)
    name = build.library_name(build.levels()[-1])
    message = f"{name} was built from other sources; run `make native`"
    assert _load_from(tmp_path, monkeypatch) == message


def test_failed_build_leaves_the_folder_unchanged(tmp_path, monkeypatch):
    name = build.library_name(build.levels()[-1])
    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(build.BuildError, match="no_such_header"):
        build.build(tmp_path, flags=("-include", "no_such_header.h"))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"old"
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with pytest.raises(build.BuildError, match="no C compiler: /nonexistent/cc not found"):
        build.build(tmp_path)
    monkeypatch.delenv("CC")
    shutil.rmtree(tmp_path)
    with pytest.raises(build.BuildError):
        build.build(tmp_path)


def test_switched_off_restores_the_library():
    before = _native.library
    with _native.switched_off():
        assert _native.library is None
    assert _native.library is before
    assert before is None or isinstance(before, ctypes.CDLL)
