"""`ember kernels check`: it fails for programs that do not compile or spill registers."""

from __future__ import annotations

import pytest

from ember_ml.backend.kernel_table import TRITON
from ember_ml.backend.torch.kernels import ahead
from ember_ml.backend.torch.kernels.programs import linear_recurrence
from ember_ml.backend.torch.kernels.programs.builds import Build
from tests.kernels.compiled import programs
from tests.unit.cli.commands import ember, ember_json


def build(program, block):
    return Build(program, {"BLOCK": block}, warps=1)


def test_every_kernel_is_compiled():
    assert {name for name, builds in ahead._modules() if builds} == set(TRITON.values())


@pytest.mark.parametrize("target", ahead.TARGETS)
def test_a_program_that_compiles(target):
    result = ahead._compile("programs", build(programs.large, 64), target)
    assert result.passed
    assert 4 <= result.registers <= 64
    assert not result.spills


@pytest.mark.parametrize(("target", "block"), [("sm_80", 4096), ("gfx942", 16384)])
def test_spills_need_a_reason(target, block):
    result = ahead._compile("programs", build(programs.large, block), target)
    assert result.spills
    assert not result.passed
    assert result._replace(reason="a test").passed


def test_errors_of_the_compiler_are_reported():
    result = ahead._compile("programs", build(programs.wrong, 64), "sm_80")
    assert not result.passed
    assert result.error
    missing = Build(programs.wrong, {})
    assert "BLOCK" in ahead._compile("programs", missing, "sm_80").error


def test_the_command_reports_failures(monkeypatch):
    monkeypatch.setattr(ahead, "_modules", lambda: [("programs", [build(programs.wrong, 64)])])
    result = ember("kernels", "check", code=1)
    assert "failed" in result.stdout
    assert "0 of 3 passed" in result.stdout
    monkeypatch.setattr(
        ahead, "_modules", lambda: [("linear_recurrence", linear_recurrence.BUILDS[:1])]
    )
    rows = ember_json("kernels", "check")
    assert [row["target"] for row in rows] == list(ahead.TARGETS)
    assert all(row["passed"] and row["registers"] for row in rows)
