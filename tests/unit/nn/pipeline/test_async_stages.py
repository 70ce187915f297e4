"""Modules and backends in asynchronous pipelines: threads, evaluation, batches."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml.backend import get_backend, use_backend
from ember_ml.nn.module import Module
from ember_ml.nn.pipeline import AsyncPipeline, Batch
from tests.async_pipelines import collect, submit_all
from tests.backends import other_than


class Recording(Module):
    """Linear layer with dropout that records its threads, its backend and its mode."""

    def __init__(self) -> None:
        self.linear = nn.layers.Dense(3, 2)
        self.dropout = nn.layers.Dropout(0.5)
        self.threads: set[int] = set()
        self.modes: set[bool] = set()
        self.shapes: list[tuple[int, ...]] = []

    def forward(self, x: Any) -> Any:
        self.threads.add(threading.get_ident())
        self.modes.add(self.dropout.training)
        self.shapes.append(x.shape)
        return self.dropout(self.linear(x))


def inputs(number: int) -> list[np.ndarray]:
    return list(np.random.default_rng(0).standard_normal((number, 3)).astype(np.float32))


@pytest.mark.parametrize("batch", [None, Batch(4, 0.001)])
def test_a_module_runs_in_one_thread_in_inference_mode(backend: str, batch: Batch | None) -> None:
    model = Recording()
    with nn.module.inference_mode(model.modules()):
        expected = [model(x).numpy() for x in inputs(10)]
    model.threads.clear()
    pipe = AsyncPipeline(buffer=8).add_stage(model, name="model", batch=batch)
    results = pipe.run(inputs(10))
    for result, wanted in zip(results, expected, strict=True):
        assert result.backend == backend
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert len(model.threads) == 1
    assert threading.get_ident() not in model.threads
    assert model.modes == {False}
    assert model.dropout.training  # elsewhere it still trains
    if batch is not None:
        assert max(shape[0] for shape in model.shapes if len(shape) == 2) == 4


def test_lazy_arrays_are_evaluated_before_they_change_threads(backend: str) -> None:
    def double(x: Any) -> Any:
        return {"x": x + x, "parts": (x * 3.0, [x - 1.0])}

    def add(tree: Any) -> Any:
        return tree["x"] + tree["parts"][0] + tree["parts"][1][0]

    async def pass_on(x: Any) -> Any:
        return x * 1.0

    lazy = [ops.full((4,), float(number)) * 1.0 for number in range(6)]
    pipe = AsyncPipeline(buffer=3).add_stage(double, concurrency=2).add_stage(pass_on_all(pass_on))
    pipe.add_stage(add, concurrency=2)
    expected = [[6.0 * number - 1.0] * 4 for number in range(6)]
    assert [each.tolist() for each in pipe.run(lazy)] == expected
    assert [each.tolist() for each in pipe.run(x * 1.0 for x in lazy)] == expected

    async def main() -> list[Any]:
        made_here = [ops.full((4,), float(number)) * 1.0 for number in range(6)]
        async with pipe:
            submitted = await submit_all(pipe, [x * 1.0 for x in made_here])
            mapped = await collect(pipe.map([x * 1.0 for x in made_here]))
            read = await collect(pipe.map(ops.full((4,), float(n)) * 1.0 for n in range(6)))
            return [[each.tolist() for each in part] for part in (submitted, mapped, read)]

    assert asyncio.run(main()) == [expected] * 3


def pass_on_all(coroutine: Any) -> Any:
    """Return a coroutine function that applies another one to the arrays of a pytree."""

    async def stage(tree: Any) -> Any:
        return {
            "x": await coroutine(tree["x"]),
            "parts": (await coroutine(tree["parts"][0]), [await coroutine(tree["parts"][1][0])]),
        }

    return stage


def test_native_arrays_are_evaluated_too(backend: str) -> None:
    pipe = AsyncPipeline().add_stage(lambda x: (ops.full((2,), x) * 2.0).native)
    pipe.add_stage(lambda native: (nn.tensor.Tensor.from_native(native) + 1.0).tolist())
    assert pipe.run([1.0, 2.0]) == [[3.0, 3.0], [5.0, 5.0]]


def test_two_models_hand_over_between_their_threads(backend: str) -> None:
    first, second = nn.layers.Dense(3, 4, activation="tanh"), nn.layers.Dense(4, 2)
    expected = [second(first(x[None])).numpy()[0] for x in inputs(12)]
    pipe = AsyncPipeline(buffer=6).add_stage(first, batch=Batch(4, 0.001))
    pipe.add_stage(second, batch=Batch(3, 0.001))
    for result, wanted in zip(pipe.run(inputs(12)), expected, strict=True):
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_the_weights_of_a_new_model_are_evaluated(backend: str) -> None:
    model = nn.layers.Dense(3, 2)
    for parameter in model.parameters():
        parameter.assign(ops.ones(parameter.shape) * 2.0)  # lazy, of this thread
    pipe = AsyncPipeline().add_stage(model)
    for parameter in model.parameters():
        parameter.assign(ops.ones(parameter.shape) * 1.0)  # also after it was added
    assert pipe.run([[1.0, 1.0, 1.0]])[0].tolist() == [4.0, 4.0]


def test_batches_of_arrays_are_those_of_single_calls(backend: str) -> None:
    model = nn.layers.Dense(3, 2)
    double = [x.astype(np.float64) for x in inputs(3)]
    lists = [x.tolist() for x in inputs(3)]
    expected = [model(x).numpy() for x in inputs(3)]
    for values in (double, lists, [ops.asarray(x) for x in inputs(3)]):
        results = AsyncPipeline().add_stage(model, batch=Batch(4)).run(values)
        for result, wanted in zip(results, expected, strict=True):
            assert str(result.dtype) == "float32"
            np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5, atol=1e-6)


class Pair(Module):
    """Module of a dict that returns a tuple."""

    def forward(self, x: dict[str, Any]) -> Any:
        return x["a"] + x["b"], {"product": x["a"] * x["b"]}


def test_batches_of_pytrees(backend: str) -> None:
    values = [{"a": np.float32([n, 1]), "b": np.float32([2, n])} for n in range(5)]
    results = AsyncPipeline().add_stage(Pair(), batch=Batch(3)).run(values)
    for n, (total, rest) in enumerate(results):
        assert total.tolist() == [n + 2, n + 1]
        assert rest["product"].tolist() == [2 * n, n]


def test_an_item_of_another_shape_does_not_fail_its_batch(backend: str) -> None:
    model = nn.layers.Dense(3, 2)
    values = [*inputs(2), np.ones(5, np.float32), *inputs(3)[2:]]
    pipe = AsyncPipeline().add_stage(model, batch=Batch(4), on_error="yield", pure=True)
    results = pipe.run(values)
    assert [hasattr(each, "error") for each in results] == [False, False, True, False]
    assert results[2].index == 2


def test_a_module_result_without_a_row_for_each_item_is_an_error(on_numpy: None) -> None:
    class Mean(Module):
        def forward(self, x: Any) -> Any:
            return ops.mean(x)

    pipe = AsyncPipeline().add_stage(Mean(), batch=Batch(4))
    with pytest.raises(RuntimeError, match=r"a batch of 3 items must have 3 rows, not \(\)"):
        pipe.run(inputs(3))


def test_a_module_has_one_thread(on_numpy: None) -> None:
    with pytest.raises(ValueError, match="a module runs in one thread, so concurrency must be 1"):
        AsyncPipeline().add_stage(nn.layers.Dense(3, 2), concurrency=2)


def test_stages_use_the_backend_of_the_start(backend: str) -> None:
    def name(_: int) -> str:
        return get_backend()

    async def name_too(before: str) -> tuple[str, str]:
        return before, get_backend()

    pipe = AsyncPipeline().add_stage(name).add_stage(name_too)
    assert pipe.run([1, 2]) == [(backend, backend)] * 2

    async def main() -> Any:
        with use_backend(other_than(backend)):
            await pipe.start()
        result = await pipe.submit(1)  # the scope of the start has ended
        await pipe.aclose()
        return result

    assert asyncio.run(main()) == (other_than(backend),) * 2


class Callable:
    """Object with a coroutine as its call."""

    async def __call__(self, x: int) -> int:
        return x + 1


async def add(x: int, y: int) -> int:
    return x + y


def test_objects_partials_and_methods_are_stages(on_numpy: None) -> None:
    inner = AsyncPipeline().add_stage(lambda x: x * 10)

    async def main() -> list[int]:
        pipe = AsyncPipeline().add_stage(Callable()).add_stage(functools.partial(add, y=1))
        pipe.add_stage(inner.submit).add_stage(abs)
        assert list(pipe.stages) == ["callable", "partial", "submit", "abs"]
        async with inner, pipe:
            return await collect(pipe.map([1, -5]))

    assert asyncio.run(main()) == [30, 30]


def test_the_backend_of_the_start_outlives_its_scope() -> None:
    wanted = other_than(get_backend())

    async def main() -> Any:
        pipe = AsyncPipeline().add_stage(lambda _: get_backend())
        with use_backend(wanted):
            await pipe.start()
        result = await pipe.submit(1)  # no scope is open anywhere
        await pipe.aclose()
        return result

    assert asyncio.run(main()) == wanted
