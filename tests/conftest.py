"""Fixtures for every test: one run on each backend of the table."""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
import threading
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from ember_ml import autodiff
from ember_ml.backend import BACKENDS, available, use_backend
from ember_ml.registry import plugins
from ember_ml.registry.components import REGISTRY
from tests.backends import TRACING


def pytest_configure() -> None:
    """Restore SIGINT, which a shell ignores in background jobs and all their children.

    Some virtual machines report matrix tiles (AMX) but do not run them: without this limit, a
    bfloat16 product of torch would end the process there.
    """
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection() -> None:
    """Collect tests without garbage collections, which would visit them again and again."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection.

    Code that measures memory collects garbage often. A collection takes half a second with tens of
    thousands of tests.
    """
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Exempt from garbage collection what a file of tests leaves, such as imported frameworks."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --quick, which `make quick` uses."""
    help_text = "run a sample: a row of every test function on the first backend, and on another"
    parser.addoption("--quick", action="store_true", help=help_text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --quick, keep a sample of the rows of every test function."""
    if not config.getoption("--quick"):
        return
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {id(item) for name, rows in functions.items() for item in _sample(name, rows)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


STARTS_PROGRAMS = (
    "tests/distributed/",
    "tests/kernels/",
    "tests/integration/",
    "tests/robustness/",
    "tests/unit/cli/",
    "tests/unit/test_selection.py",
    "tests/unit/data/test_workers.py",
    "tests/unit/data/test_persistent_workers.py",
    "tests/unit/mad/test_tuning.py",
    "tests/unit/training/sweeps/",
    "tests/unit/training/tuning/test_during_training.py",
    "tests/unit/training/tuning/test_parallel.py",
    "tests/unit/training/tuning/test_population.py",
    "tests/unit/interop/test_exporting.py",
    "tests/conformance/test_torch_modules.py",
)
"""Tests that start processes, clusters, browsers, compilers or whole programs; --quick leaves them
out."""


def _sample(name: str, rows: list[pytest.Item]) -> list[pytest.Item]:
    """Return one row of the first backend, and one of another backend."""
    backends = [getattr(item, "callspec", None) for item in rows]
    names = [spec.params.get("backend") if spec is not None else None for spec in backends]
    if name.startswith(STARTS_PROGRAMS):
        return []
    first = next(iter(BACKENDS))
    near = [item for item, each in zip(rows, names, strict=True) if each in (None, first)]
    far = [item for item, each in zip(rows, names, strict=True) if each not in (None, first)]
    at = zlib.crc32(name.encode())
    return [group[at % len(group)] for group in (near, far) if group]


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test on each backend; in CI a missing one is a failure."""
    name = request.param
    if name not in available():
        if os.environ.get("CI"):
            pytest.fail(f"the {name} backend is not installed")
        pytest.skip(f"the {name} backend is not installed")
    with use_backend(name):
        yield name


@pytest.fixture
def on_numpy() -> Iterator[None]:
    """Run the test on NumPy alone, where the backend makes no difference."""
    with use_backend("numpy"):
        yield


@pytest.fixture
def trace(backend: str) -> Iterator[Callable[..., Any]]:
    """Yield `autodiff.compile`; clear torch's compile cache afterwards (it grows slow)."""
    yield functools.partial(autodiff.compile, **TRACING.get(backend, {}))
    if "torch._dynamo" in sys.modules:
        sys.modules["torch"].compiler.reset()


@pytest.fixture
def scratch_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the components that the test registers."""
    REGISTRY.available()  # what comes with the package is there before, and stays
    for name in ("_entries", "_names"):
        monkeypatch.setattr(REGISTRY, name, dict(getattr(REGISTRY, name)))
    monkeypatch.setenv(plugins.VARIABLE, "")


FRAGILE = '''
from ember_ml import nn
from ember_ml.registry import register


@register("layers/fragile")
class Fragile(nn.Module):
    """Bursts if a sequence has more than two tokens."""

    def __init__(self, features: int) -> None:
        self.features = features

    def forward(self, x):
        if x.shape[1] > 2:
            raise RuntimeError("it burst")
        return x
'''


@pytest.fixture
def fragile(scratch_registry: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Register a layer, also in started processes, that fails during training."""
    path = tmp_path_factory.mktemp("plugin") / "fragile.py"
    path.write_text(FRAGILE)
    plugins.use(str(path))
    return "fragile"
