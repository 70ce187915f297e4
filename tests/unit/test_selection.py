"""Which backend is active: order of precedence, scopes, persistence, errors."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import (
    BACKENDS,
    auto_select_backend,
    available,
    get_backend,
    get_backend_module,
    selection,
    selection_reason,
    set_backend,
    use_backend,
)
from ember_ml.nn import tensor


def run(code: str, home, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter with an empty home folder."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("EMBER_ML_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**keep, "HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None"
"""Code after which torch is not installed: the auto-detection need not load it."""


@pytest.fixture
def restored():
    before = (selection._chosen, selection._reason)
    yield
    selection._chosen, selection._reason = before


def test_import_loads_no_framework_but_numpy(tmp_path):
    others = "{'torch', 'mlx', 'mlx.core', 'jax', 'scipy'}"
    code = f"import sys, ember_ml; print({others} & set(sys.modules))"
    out = run(code, tmp_path)
    assert out.stdout.strip() == "set()", out.stderr


def test_numpy_backend_loads_no_other_framework(tmp_path):
    code = (
        "import sys, ember_ml; from ember_ml import ops; ops.sum(ops.ones((2, 2)));"
        "print({'torch', 'mlx.core', 'jax', 'scipy'} & set(sys.modules))"
    )
    out = run(code, tmp_path, EMBER_ML_BACKEND="numpy")
    assert out.stdout.strip() == "set()", out.stderr


def test_torch_backend_does_not_load_the_compiler(tmp_path):
    code = """
import sys
from ember_ml.training import Trainer
from ember_ml import nn
model = nn.models.LanguageModel("attention swiglu", 4, 8)
Trainer(model, "cross_entropy", progress=False).fit([[0, 1]], [[1, 2]], steps=1)
print("torch._dynamo" in sys.modules)
import torch
from ember_ml.backend.torch.constants import constant_result
both = [mark(lambda: 1) for mark in (constant_result, torch.compiler.assume_constant_result)]
print(vars(both[0]) == vars(both[1]))
"""
    out = run(code, tmp_path, EMBER_ML_BACKEND="torch")
    assert out.stdout.split() == ["False", "True"], out.stderr


def test_order_of_precedence(tmp_path):
    show = "import ember_ml as e; print(e.get_backend(), '|', e.backend.selection_reason())"
    assert "auto-detection" in run(f"{WITHOUT_TORCH}; {show}", tmp_path).stdout
    folder = tmp_path / ".ember"
    folder.mkdir()
    (folder / "backend").write_text("numpy\n")
    assert run(show, tmp_path).stdout.startswith("numpy | the file")
    assert run(show, tmp_path, EMBER_ML_BACKEND="mlx").stdout.startswith("mlx | the environment")
    code = f"""
import ember_ml as e
e.set_backend('numpy')
{show}
with e.use_backend('mlx'):
    {show}
"""
    lines = run(code, tmp_path, EMBER_ML_BACKEND="mlx").stdout.splitlines()
    assert lines[0].startswith("numpy | set_backend")
    assert lines[1].startswith("mlx | use_backend")


@pytest.mark.parametrize("content", [b"nonsense", b"", b"\xff\xfe", b"torch extra"])
def test_an_unreadable_choice_is_not_an_error(tmp_path, content):
    folder = tmp_path / ".ember"
    folder.mkdir()
    (folder / "backend").write_bytes(content)
    code = f"{WITHOUT_TORCH}; import ember_ml as e; print(e.backend.selection_reason())"
    out = run(code, tmp_path)
    assert out.stdout.startswith("auto-detection"), out.stderr


def test_persist(tmp_path):
    assert (
        run("import ember_ml as e; e.set_backend('numpy', persist=True)", tmp_path).returncode == 0
    )
    assert (tmp_path / ".ember" / "backend").read_text() == "numpy\n"
    assert [path.name for path in (tmp_path / ".ember").iterdir()] == ["backend"]
    assert run("import ember_ml as e; print(e.get_backend())", tmp_path).stdout.strip() == "numpy"


def test_set_backend_does_not_persist_unasked(tmp_path):
    run("import ember_ml as e; e.set_backend('numpy')", tmp_path)
    assert not (tmp_path / ".ember").exists()


def test_environment_with_an_unknown_backend(tmp_path):
    out = run("import ember_ml as e; e.get_backend()", tmp_path, EMBER_ML_BACKEND="tourch")
    assert "UnknownBackendError" in out.stderr
    assert "did you mean 'torch'" in out.stderr


def test_unknown_backend():
    with pytest.raises(ValueError, match=r"unknown backend 'pytorch'.*numpy, torch, mlx"):
        set_backend("pytorch")
    with pytest.raises(ValueError, match="unknown backend"):
        use_backend("nope")


def test_uninstalled_backend(tmp_path):
    code = """
import sys
sys.modules['mlx'] = None
import ember_ml
ember_ml.set_backend('mlx')
"""
    out = run(code, tmp_path)
    assert "BackendNotInstalledError" in out.stderr
    assert "pip install 'mlx" in out.stderr


def test_auto_select_backend():
    name, device = auto_select_backend()
    assert name in available()
    assert device in ember_ml.backend.selection.import_backend(name).devices()


def test_set_backend_and_old_tensors(restored):
    tensors = {}
    for name in BACKENDS:
        set_backend(name)
        assert get_backend() == name
        assert selection_reason() == f"set_backend({name!r})"
        assert get_backend_module().__name__ == f"ember_ml.backend.{name}"
        tensors[name] = ops.ones((2,))
    for name, x in tensors.items():
        assert x.backend == name
        assert (x + x).backend == name
        assert (x + x).tolist() == [2.0, 2.0]


def test_ops_set_backend(restored):
    from ember_ml.ops import add

    for name in BACKENDS:
        ops.set_backend(name)
        assert add(1.0, 2.0).backend == name


def test_use_backend_as_decorator():
    @use_backend("numpy")
    def inner():
        return get_backend()

    @use_backend("mlx")
    def outer():
        return inner(), get_backend()

    before = get_backend()
    assert outer() == ("numpy", "mlx")
    assert get_backend() == before


def test_a_shared_scope_in_several_threads():
    scope = use_backend("numpy")
    seen: list[str] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        with scope, scope:
            seen.append(get_backend())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["numpy"] * 4
    assert selection._open_scopes == 0


def test_use_backend_does_not_decorate_generators():
    with pytest.raises(TypeError, match="generator"):

        @use_backend("numpy")
        def values():
            yield get_backend()


def test_use_backend_after_an_error():
    before = get_backend()
    with pytest.raises(KeyError), use_backend("mlx"):
        raise KeyError
    assert get_backend() == before


def chain(name: str, steps: int) -> float:
    """Work whose result tells if another thread's backend leaked in."""
    with use_backend(name):
        total = ops.zeros((4,))
        for step in range(steps):
            total = total + ops.full((4,), float(step))
            assert total.backend == name
    return ops.sum(total).item()


def test_threads_on_two_backends():
    names = list(BACKENDS) * 2
    results: dict[int, float] = {}
    start = threading.Barrier(len(names))

    def work(index: int, name: str) -> None:
        start.wait()
        results[index] = chain(name, 200)

    threads = [threading.Thread(target=work, args=item) for item in enumerate(names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(len(names)), 4 * sum(range(200)))


def test_asyncio_tasks_on_different_backends():
    @use_backend("numpy")
    async def decorated() -> str:
        await asyncio.sleep(0)
        return get_backend()

    async def work(name: str, steps: int) -> float:
        with use_backend(name):
            total = ops.zeros((4,))
            for step in range(steps):
                total = total + ops.full((4,), float(step))
                await asyncio.sleep(0)
                assert get_backend() == name
                assert total.backend == name
        return ops.sum(total).item()

    async def main() -> list[float]:
        assert await decorated() == "numpy"
        return await asyncio.gather(*(work(name, 50) for name in list(BACKENDS) * 3))

    assert asyncio.run(main()) == [4 * sum(range(50))] * 3 * len(BACKENDS)


def test_devices(backend):
    assert ops.get_device() in ops.get_available_devices()
    x = ops.ones((2,))
    assert ops.get_device(x) == x.device == ops.get_device()
    assert ops.to_device(x, "cpu").tolist() == [1.0, 1.0]
    for bad in (lambda: ops.to_device(x, "quantum"), lambda: ops.ones((2,), device="quantum")):
        with pytest.raises(ValueError, match=f"the {backend} backend has no device 'quantum'"):
            bad()
    assert isinstance(ops.memory_usage(), dict)
    ops.synchronize()
    ops.synchronize(x)


def test_device_from_the_environment(tmp_path):
    code = "from ember_ml import ops; print(ops.get_device(), ops.ones((1,)).device)"
    out = run(code, tmp_path, EMBER_ML_DEVICE="cpu", EMBER_ML_BACKEND="mlx")
    assert out.stdout.split() == ["cpu", "cpu"], out.stderr
    out = run(code, tmp_path, EMBER_ML_DEVICE="quantum", EMBER_ML_BACKEND="numpy")
    assert "the numpy backend has no device 'quantum'; it has cpu" in out.stderr


def test_module_prints_a_report(tmp_path):
    command = [sys.executable, "-m", "ember_ml", "backends"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    for name in BACKENDS:
        assert f"\n{name} " in out
    assert "The active backend was selected by " in out


def test_from_native_loads_a_named_backend(tmp_path):
    code = (
        "import torch; from ember_ml.nn.tensor import Tensor;"
        "print(Tensor.from_native(torch.ones(2), 'torch').dtype)"
    )
    done = run(code, tmp_path, EMBER_ML_BACKEND="numpy")
    assert "float32" in done.stdout, done.stderr


def test_in_place_across_backends_stays_where_it_was():
    with use_backend("numpy"):
        x = tensor.array([1.0, 2.0])
    with use_backend("torch"), pytest.warns(ember_ml.BackendTransferWarning):
        x += tensor.array([3.0, 4.0])
    assert (x.backend, x.tolist(), (x + x).tolist()) == ("numpy", [4.0, 6.0], [8.0, 12.0])


def test_a_native_array_is_on_its_own_backend_loaded_or_not(tmp_path):
    code = """
import torch, ember_ml
from ember_ml import ops
with ember_ml.use_backend('numpy'):
    print(ops.exp(torch.ones(2)).backend, ops.exp(torch.nn.Parameter(torch.ones(2))).backend)
"""
    assert run(code, tmp_path).stdout.split() == ["torch", "torch"]


def test_mixed_backends_move_to_the_active_one():
    with use_backend("numpy"):
        x = tensor.array([1.0, 2.0])
    with use_backend("torch"):
        y = tensor.array([3.0, 4.0])
        with pytest.warns(ember_ml.BackendTransferWarning, match="numpy"):
            z = x + y
    assert z.backend == "torch"
    assert z.tolist() == [4.0, 6.0]


def test_a_name_that_is_an_object_of_its_own(restored: None, backend: str) -> None:
    name = "".join(list(backend))  # not the same object as the literal
    with use_backend(name):
        assert (ops.ones(2) + 1.0).tolist() == [2.0, 2.0]
    set_backend(name)
    assert (ops.ones(2) + 1.0).tolist() == [2.0, 2.0]
