"""Compilation of all programs ahead of time, without a GPU."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ember_ml._core.requirements import import_optional
from ember_ml.backend.torch.kernels import programs
from ember_ml.backend.torch.kernels.programs.builds import Build

TARGETS = ("sm_80", "sm_90", "gfx942")
"""NVIDIA A100 and H100, and AMD MI300."""

_HALVES = ("bf16", "fp16")


class Compiled(NamedTuple):
    """Result of compiling a program for a target.

    Attributes:
        module: Module of the program in `programs`.
        program: Name of the program.
        dtype: Dtype of its arrays.
        target: Name in `TARGETS`.
        registers: Registers of a thread.
        spills: Bytes of spilled registers of a thread.
        shared: Bytes of shared memory of a program instance.
        reason: Reason for the spills that the program states.
        error: Message of the compiler if it failed, otherwise empty.
    """

    module: str
    program: str
    dtype: str
    target: str
    registers: int = 0
    spills: int = 0
    shared: int = 0
    reason: str = ""
    error: str = ""

    @property
    def passed(self) -> bool:
        """Whether the program compiled, and spills nothing without a reason."""
        return not self.error and (not self.spills or bool(self.reason))


def compile_all(targets: tuple[str, ...] = TARGETS) -> Iterator[Compiled]:
    """Yield the results of all programs for all targets.

    Args:
        targets: Names in `TARGETS`.
    """
    import_optional("triton", "the compilation of Triton kernels")
    for name, builds in _modules():
        for build in builds:
            for target in targets:
                yield _compile(name, build, target)


def _modules() -> Iterator[tuple[str, list[Build]]]:
    """Yield the names and builds of all modules of programs."""
    for entry in pkgutil.iter_modules(programs.__path__):
        if entry.name != "builds":
            module = importlib.import_module(f"{programs.__name__}.{entry.name}")
            yield entry.name, module.BUILDS


def _compile(module: str, build: Build, target: str) -> Compiled:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    name = build.program.__name__.lstrip("_")
    dtype = next((x for x in _HALVES if f"*{x}" in build.types.values()), "fp32")
    result = Compiled(module, name, dtype, target, reason=build.spills)
    is_amd = target.startswith("gfx")
    where = GPUTarget("hip", target, 64) if is_amd else GPUTarget("cuda", int(target[3:]), 32)
    signature = build.signature()
    names = list(signature)
    aligned = {
        (at,): [["tt.divisibility", 16]]
        for at, kind in enumerate(signature.values())
        if kind.startswith("*")
    }
    source = ASTSource(build.program, signature, build.constants, aligned)
    missing = [x for x in names if signature[x] == "constexpr" and x not in build.constants]
    try:
        if missing:
            raise ValueError(f"no value for {', '.join(missing)}")
        binary = triton.compile(source, target=where, options={"num_warps": build.warps})
    except Exception as error:
        return result._replace(error=str(error).strip() or type(error).__name__)
    registers, spills = (
        _amd_usage(binary.asm["amdgcn"]) if is_amd else _usage(binary.asm["ptx"], target)
    )
    return result._replace(registers=registers, spills=spills, shared=binary.metadata.shared)


def _usage(ptx: str, target: str) -> tuple[int, int]:
    """Return registers and spills, as NVIDIA's assembler reports them."""
    from triton import knobs

    version = re.search(r"^\.target (\S+?)(?:,|$)", ptx, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.ptx")
        path.write_text(ptx, encoding="utf-8")
        done = subprocess.run(
            [
                *(knobs.nvidia.ptxas.path, "-v", f"-arch={version[1] if version else target}"),
                *(str(path), "-o", str(Path(folder, "kernel.cubin"))),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    stores = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    registers = re.search(r"Used (\d+) registers", done.stderr)
    spills = max((int(store) + int(load) for store, load in stores), default=0)
    return int(registers[1]) if registers else 0, spills


def _amd_usage(assembly: str) -> tuple[int, int]:
    """Return the vector registers, and the spilled ones in bytes, as AMD's compiler reports."""
    registers = re.search(r"\.vgpr_count:\s+(\d+)", assembly)
    spilled = re.search(r"\.vgpr_spill_count:\s+(\d+)", assembly)
    return int(registers[1]) if registers else 0, 4 * int(spilled[1]) if spilled else 0
