"""`ember kernels` and the table behind it."""

from __future__ import annotations

import importlib.util
import sys

from ember_ml import backend
from ember_ml._core.op import OPS
from ember_ml._core.requirements import install_command
from ember_ml.backend import kernel_table
from tests.unit.cli.commands import ember, ember_json


def test_rows_name_ops_and_at_most_one_kernel_is_in_use():
    rows = backend.kernels()
    names = {key.rpartition(".")[2] for key in OPS}
    assert {row.op for row in rows} <= names
    assert {row.language for row in rows} <= {"C", "Triton", "Metal", "oneDNN", "framework"}
    places = [(row.op, row.backend, row.device) for row in rows if row.in_use]
    assert len(places) == len(set(places))
    assert all(row.reason for row in rows)
    for module in kernel_table.TRITON.values():
        path = f"ember_ml.backend.torch.kernels.{module}"
        assert importlib.util.find_spec(path) is not None, module


def test_the_command_prints_the_table():
    rows = ember_json("kernels")
    assert rows == [row._asdict() for row in backend.kernels()]
    lines = ember("kernels").stdout.splitlines()
    assert lines[0].split()[:4] == ["op", "backend", "device", "language"]
    assert len(lines) == len(rows) + 1


def test_check_names_the_command_that_installs_triton(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    assert install_command("triton") in ember("kernels", "check", code=2).stderr


def test_check_refuses_the_interpreter(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert "unset it" in ember("kernels", "check", code=2).stderr


def test_the_environment_disables_triton(monkeypatch):
    availability = importlib.import_module("ember_ml.backend.torch.kernels.availability")
    monkeypatch.setenv("EMBER_ML_TRITON", "0")
    assert availability._reason() == "disabled by EMBER_ML_TRITON=0"
    monkeypatch.delenv("EMBER_ML_TRITON")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert availability._reason() == "triton is not installed"


def test_kernels_without_the_frameworks(monkeypatch):
    monkeypatch.setattr(kernel_table, "is_installed", lambda name: name == "numpy")
    rows = [row for row in kernel_table.kernels() if row.backend != "numpy"]
    assert rows
    assert not any(row.in_use for row in rows)
    assert {row.reason for row in rows} == {"torch is not installed", "mlx is not installed"}
