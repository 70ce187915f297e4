"""Every optimizer against torch.optim or optax, on every backend."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, EmberError, ShapeError
from ember_ml.configs import Config, ConfigError
from ember_ml.nn import Parameter, StateDictError, tensor
from ember_ml.registry import available, create
from ember_ml.training.optimizer import SGD, AdamW, Muon, Optimizer, ScheduleFreeAdamW
from tests.backends import has_dtype, with_dtype

torch = pytest.importorskip("torch")
pytest.importorskip("torch._dynamo.testing")

SHAPES = [(), (5,), (4, 3), (3, 6), (2, 3, 4)]
STEPS = 20
NAMES = [entry.name.partition("/")[2] for entry in available("optimizers")]


def start(shapes: list[tuple[int, ...]] = SHAPES) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [np.asarray(rng.normal(size=shape), np.float32) for shape in shapes]


def gradients(shapes: list[tuple[int, ...]] = SHAPES, steps: int = STEPS) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(2)
    scale = 10.0 ** rng.uniform(-2, 1, size=len(shapes))
    return [
        [
            np.asarray(size * rng.normal(size=s), np.float32)
            for s, size in zip(shapes, scale, strict=True)
        ]
        for _ in range(steps)
    ]


def by_torch(
    make: Any, values: list[np.ndarray], grads: list[list[np.ndarray]]
) -> list[np.ndarray]:
    params = [torch.nn.Parameter(torch.tensor(value)) for value in values]
    optimizer = make(params)
    for step in grads:
        for param, grad in zip(params, step, strict=True):
            param.grad = torch.tensor(grad)
        optimizer.step()
    return [param.detach().numpy() for param in params]


def by_optax(
    make: Any, values: list[np.ndarray], grads: list[list[np.ndarray]]
) -> list[np.ndarray]:
    optax = pytest.importorskip("optax")
    optimizer = make(optax)
    params: Any = [np.asarray(value) for value in values]
    state = optimizer.init(params)
    for step in grads:
        updates, state = optimizer.update(step, state, params)
        params = optax.apply_updates(params, updates)
    return [np.asarray(param) for param in params]


def torch_case(ours: dict[str, Any], name: str, **theirs: Any) -> tuple[dict[str, Any], Any]:
    def reference(values: Any, grads: Any) -> Any:
        return by_torch(lambda ps: getattr(torch.optim, name)(ps, **theirs), values, grads)

    return ours, reference


def optax_case(ours: dict[str, Any], make: Any) -> tuple[dict[str, Any], Any]:
    return ours, lambda values, grads: by_optax(make, values, grads)


def muon_reference(values: list[np.ndarray], grads: list[list[np.ndarray]]) -> list[np.ndarray]:
    """Muon's formulas in float64 on matrices; AdamW of torch on the rest."""
    rest = [at for at, value in enumerate(values) if value.ndim != 2]
    options = {"lr": 0.02, "weight_decay": 0.3}
    others = by_torch(
        lambda ps: torch.optim.AdamW(ps, **options),
        [values[at] for at in rest],
        [[step[at] for at in rest] for step in grads],
    )
    result = []
    for at, value in enumerate(values):
        p, buffer = value.astype(np.float64), np.zeros(value.shape)
        for step in grads if value.ndim == 2 else []:
            g = step[at].astype(np.float64)
            buffer = 0.95 * buffer + 0.05 * g
            x = 0.05 * g + 0.95 * buffer
            x = x / np.linalg.norm(x)
            for _ in range(5):
                gram = x @ x.T
                x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
            scale = max(1.0, p.shape[0] / p.shape[1]) ** 0.5
            p = (1 - 0.02 * 0.3) * p - 0.02 * scale * x
        result.append(others.pop(0) if at in rest else p)
    return result


def schedule_free(optax: Any) -> Any:
    return optax.contrib.schedule_free_adamw(0.05, b1=0.8, b2=0.95, weight_decay=0.1)


CASES: dict[str, list[tuple[dict[str, Any], Any]]] = {
    "sgd": [
        torch_case({}, "SGD", lr=1e-3),
        torch_case(
            {"learning_rate": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
            *["SGD"],
            lr=0.1,
            momentum=0.9,
            dampening=0.3,
            weight_decay=0.1,
        ),
        torch_case(
            {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True},
            *["SGD"],
            lr=0.1,
            momentum=0.9,
            nesterov=True,
        ),
    ],
    "adam": [
        torch_case({}, "Adam"),
        torch_case(
            {
                "learning_rate": 0.1,
                "betas": (0.8, 0.95),
                "eps": 1e-3,
                "weight_decay": 0.1,
                "amsgrad": True,
            },
            *["Adam"],
            lr=0.1,
            betas=(0.8, 0.95),
            eps=1e-3,
            weight_decay=0.1,
            amsgrad=True,
        ),
    ],
    "adamw": [
        torch_case({}, "AdamW"),
        torch_case(
            {"learning_rate": 0.1, "betas": (0.8, 0.95), "weight_decay": 0.3, "amsgrad": True},
            *["AdamW"],
            lr=0.1,
            betas=(0.8, 0.95),
            weight_decay=0.3,
            amsgrad=True,
        ),
    ],
    "rmsprop": [
        torch_case({}, "RMSprop"),
        torch_case(
            {
                "learning_rate": 0.02,
                "alpha": 0.8,
                "eps": 1e-3,
                "weight_decay": 0.1,
                "momentum": 0.7,
                "centered": True,
            },
            *["RMSprop"],
            lr=0.02,
            alpha=0.8,
            eps=1e-3,
            weight_decay=0.1,
            momentum=0.7,
            centered=True,
        ),
    ],
    "adagrad": [
        torch_case({}, "Adagrad"),
        torch_case(
            {
                "learning_rate": 0.1,
                "learning_rate_decay": 0.05,
                "weight_decay": 0.1,
                "initial_accumulator": 0.2,
            },
            *["Adagrad"],
            lr=0.1,
            lr_decay=0.05,
            weight_decay=0.1,
            initial_accumulator_value=0.2,
        ),
    ],
    "adadelta": [
        torch_case({}, "Adadelta"),
        torch_case(
            {"learning_rate": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1},
            *["Adadelta"],
            lr=0.5,
            rho=0.8,
            eps=1e-4,
            weight_decay=0.1,
        ),
    ],
    "adafactor": [
        torch_case({}, "Adafactor"),
        torch_case(
            {
                "learning_rate": 0.3,
                "beta2_decay": -0.5,
                "eps": (1e-4, 1e-2),
                "clip": 1.5,
                "weight_decay": 0.1,
            },
            *["Adafactor"],
            lr=0.3,
            beta2_decay=-0.5,
            eps=(1e-4, 1e-2),
            d=1.5,
            weight_decay=0.1,
        ),
    ],
    "lion": [
        optax_case({}, lambda optax: optax.lion(1e-4)),
        optax_case(
            {"learning_rate": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.2},
            lambda optax: optax.lion(0.01, b1=0.8, b2=0.95, weight_decay=0.2),
        ),
    ],
    "lamb": [
        optax_case({}, lambda optax: optax.lamb(1e-3)),
        optax_case(
            {"learning_rate": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2},
            lambda optax: optax.lamb(0.05, b1=0.8, b2=0.95, eps=1e-3, weight_decay=0.2),
        ),
    ],
    "muon": [({"learning_rate": 0.02, "weight_decay": 0.3}, muon_reference)],
    "schedule_free_adamw": [
        optax_case({}, lambda optax: optax.contrib.schedule_free_adamw()),
        optax_case(
            {"learning_rate": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1}, schedule_free
        ),
    ],
}


def parameters(values: list[np.ndarray]) -> list[Parameter]:
    return [Parameter(value.copy(), name=f"p{at}") for at, value in enumerate(values)]


def run(optimizer: Optimizer, grads: list[list[np.ndarray]]) -> None:
    for step in grads:
        optimizer.step([tensor.array(grad) for grad in step])


def values_of(optimizer: Optimizer) -> list[np.ndarray]:
    return [parameter.numpy().copy() for parameter in optimizer.parameters]


def optimization_of(backend: str) -> Any:
    return importlib.import_module(f"ember_ml.backend.{backend}.optimization")


def host(array: Any) -> np.ndarray:
    return tensor.array(array).numpy().copy()


def same(mine: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_every_optimizer_has_a_reference() -> None:
    assert sorted(CASES) == NAMES


@pytest.mark.parametrize(
    ("name", "case"), [(name, at) for name in NAMES for at in range(len(CASES.get(name, [])))]
)
def test_equals_reference(backend: str, name: str, case: int) -> None:
    options, reference = CASES[name][case]
    optimizer = create(f"optimizers/{name}", parameters(start()), **options)
    run(optimizer, gradients())
    expected = reference(start(), gradients())
    for mine, theirs, first in zip(values_of(optimizer), expected, start(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
        assert mine.shape == first.shape
        assert not np.allclose(mine, first, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_update_is_pure_and_equals_step(backend: str, name: str) -> None:
    options = CASES[name][-1][0]
    stepped = create(f"optimizers/{name}", parameters(start()), **options)
    pure = create(f"optimizers/{name}", parameters(start()), **options)
    for step in gradients(steps=3):
        grads = [tensor.array(grad) for grad in step]
        stepped.step(grads)
        params, state = [each._data for each in pure.parameters], pure.state_arrays()
        before = [host(array) for array in [*params, *state]]
        native = [grad._data for grad in grads]
        renewed = pure.update(params, native, state, pure.scalars())
        assert same([host(array) for array in [*params, *state]], before)
        pure.commit(*renewed)
    assert pure.step_count == 3
    for mine, theirs in zip(values_of(pure), values_of(stepped), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_update_takes_arrays_for_scalars(backend: str, name: str) -> None:
    options = CASES[name][-1][0]
    by_number = create(f"optimizers/{name}", parameters(start()), **options)
    by_array = create(f"optimizers/{name}", parameters(start()), **options)
    for step in gradients(steps=3):
        native = [tensor.array(grad)._data for grad in step]
        for optimizer in (by_number, by_array):
            numbers: list[Any] = optimizer.scalars()
            assert all(type(number) is float for number in numbers)
            if optimizer is by_array:
                numbers = [tensor.array(number)._data for number in numbers]
            params = [each._data for each in optimizer.parameters]
            optimizer.commit(*optimizer.update(params, native, optimizer.state_arrays(), numbers))
    for mine, theirs in zip(values_of(by_array), values_of(by_number), strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_old_values_stay(backend: str, name: str) -> None:
    optimizer = create(f"optimizers/{name}", parameters(start()), **CASES[name][-1][0])
    run(optimizer, gradients(steps=1))
    matrix = optimizer.parameters[2]
    native = [each._data for each in optimizer.parameters]
    held = [
        *[each.value() for each in optimizer.parameters],
        matrix.T,
        *optimizer.state_dict()["tensors"].values(),
    ]
    grads = [tensor.array(grad) for grad in gradients(steps=2)[1]]
    before = [x.numpy().copy() for x in [*held, *grads]]
    raw = [host(array) for array in native]
    optimizer.step(grads)
    optimizer.step(grads)
    assert same([x.numpy() for x in [*held, *grads]], before)
    assert same([host(array) for array in native], raw)
    assert not np.array_equal(matrix.numpy(), before[2])


HOLDERS: dict[str, Any] = {
    "value": lambda p: p.value(),
    "native array": lambda p: p._data,
    "transpose": lambda p: p.T,
    "row": lambda p: p[0],
    "host array": lambda p: p.numpy(),
    "dlpack": lambda p: np.from_dlpack(p),
    "state": lambda p: p.value().reshape(-1),
    "another tensor": lambda p: tensor.convert_to_tensor(p._data),
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_each_way_to_hold_a_value(backend: str, kind: str) -> None:
    """One at a time: what one holder keeps alive must not depend on another."""
    params = parameters(start([(3, 4), (3, 4)]))
    optimizer = SGD(params, learning_rate=0.5)
    for _ in range(3):
        held = HOLDERS[kind](params[0])
        before = host(held)
        optimizer.step([ops.ones((3, 4)), ops.ones((3, 4))])
        assert np.array_equal(host(held), before)
        del held
    expected = start([(3, 4), (3, 4)])[0] - 1.5
    np.testing.assert_allclose(params[0].numpy(), expected, rtol=1e-5, atol=1e-6)


def test_arrays_that_parameters_were_created_from_are_unchanged(backend: str) -> None:
    given = np.ones((2, 3), np.float32)
    source = torch.ones(2, 3)
    params = [Parameter(given, name="a"), Parameter(source, name="b")]
    params[1].become(params[1].to_backend(backend))
    optimizer = SGD(params, learning_rate=0.5)
    optimizer.step([ops.ones((2, 3)), ops.ones((2, 3))])
    assert given.tolist() == source.tolist() == np.ones((2, 3)).tolist()
    assert params[0].tolist() == params[1].tolist() == np.full((2, 3), 0.5).tolist()


def test_memory_that_nobody_sees_is_used_again() -> None:
    with ember_ml.use_backend("torch"):
        params = parameters(start([(3, 4)]))
        optimizer = AdamW(params)
        optimizer.step([ops.ones((3, 4))])
        place, handle = params[0]._data.data_ptr(), id(params[0]._data)
        optimizer.step([ops.ones((3, 4))])
        assert params[0]._data.data_ptr() == place
        assert id(params[0]._data) != handle
        held = params[0].value()
        optimizer.step([ops.ones((3, 4))])
        assert params[0]._data.data_ptr() != place
        assert held._data.data_ptr() == place
        assert not params[0]._data.requires_grad


def test_a_step_does_not_disturb_a_tape(backend: str) -> None:
    weight = Parameter([2.5, 3.5], name="w")
    optimizer = SGD([weight], learning_rate=0.5)
    optimizer.step({"w": ops.ones(2)})
    with ember_ml.GradientTape() as tape:
        loss = (weight * weight * weight).sum()
    optimizer.step({"w": ops.ones(2)})
    assert weight.tolist() == [1.5, 2.5]
    assert tape.gradient(loss, weight).tolist() == [12.0, 27.0]


@pytest.mark.parametrize("name", NAMES)
def test_resumes_to_the_bit(backend: str, name: str) -> None:
    grads = gradients(steps=6)
    whole = create(f"optimizers/{name}", parameters(start()), **CASES[name][-1][0])
    run(whole, grads)
    first = create(f"optimizers/{name}", parameters(start()), **CASES[name][-1][0])
    run(first, grads[:3])
    saved = first.state_dict()
    plain = json.loads(json.dumps({key: saved[key] for key in saved if key != "tensors"}))
    second = create(f"optimizers/{name}", parameters(values_of(first)))
    second.load_state_dict({**plain, "tensors": saved["tensors"]})
    assert (second.step_count, second.learning_rate) == (3, whole.learning_rate)
    run(second, grads[3:])
    assert same(values_of(second), values_of(whole))


@pytest.mark.parametrize("name", NAMES)
def test_state_goes_to_every_backend(backend: str, name: str) -> None:
    grads = gradients(steps=6)
    with ember_ml.use_backend("numpy"):
        whole = create(f"optimizers/{name}", parameters(start()), **CASES[name][-1][0])
        run(whole, grads[:3])
        saved, values = whole.state_dict(), values_of(whole)
        run(whole, grads[3:])
    moved = create(f"optimizers/{name}", parameters(values)).load_state_dict(saved)
    assert {each.backend for each in moved.state_dict()["tensors"].values()} <= {backend}
    run(moved, grads[3:])
    for mine, theirs in zip(values_of(moved), values_of(whole), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_state_follows_a_model_that_moves(backend: str) -> None:
    grads = gradients(steps=4)
    stays = AdamW(parameters(start()))
    run(stays, grads)
    with ember_ml.use_backend("numpy"):
        moves = AdamW(parameters(start()))
        run(moves, grads[:2])
    for each in moves.parameters:
        each.become(each.to_backend(backend))
    run(moves, grads[2:])
    assert {each.backend for each in moves.parameters} == {backend}
    for mine, theirs in zip(values_of(moves), values_of(stays), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_keeps_float32_state(backend: str, name: str) -> None:
    grads = gradients(steps=3)
    half = [Parameter(value, dtype="float16", name=f"p{at}") for at, value in enumerate(start())]
    optimizer = create(f"optimizers/{name}", half)
    optimizer.learning_rate = 0.01
    run(optimizer, grads)
    full = create(f"optimizers/{name}", parameters(start()))
    full.learning_rate = 0.01
    run(full, grads)
    tensors = optimizer.state_dict()["tensors"].values()
    assert {str(each.dtype) for each in tensors} <= {"float32"}
    assert {str(each.dtype) for each in optimizer.parameters} == {"float16"}
    for mine, theirs in zip(values_of(optimizer), values_of(full), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "adagrad"])
def test_fused_kernels_equal_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ember_ml.use_backend("torch"):
        k = optimization_of("torch")
        assert k.fused(name, (0.1,)) is not None
        for options, _ in CASES[name]:
            fast = create(f"optimizers/{name}", parameters(start()), **options)
            slow = create(f"optimizers/{name}", parameters(start()), **options)
            for step in gradients():
                grads = [tensor.array(grad.T.copy()) for grad in step]
                fast.step([ops.transpose(x) for x in grads])
            with monkeypatch.context() as patch:
                patch.setattr(k, "fused", lambda name, values: None)
                run(slow, gradients())
            for mine, theirs in zip(values_of(fast), values_of(slow), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_muon_is_torchs(backend: str) -> None:
    shapes = [(4, 3), (3, 6)]
    if not has_dtype(backend, "bfloat16"):
        pytest.skip("the backend has no bfloat16")
    options = {"weight_decay": 0.3, "momentum": 0.9, "nesterov": False}
    mine = Muon(
        parameters(start(shapes)),
        learning_rate=0.02,
        adjust="match_rms_adamw",
        precision="bfloat16",
        **options,
    )
    run(mine, gradients(shapes))
    theirs = by_torch(
        lambda ps: torch.optim.Muon(ps, lr=0.02, adjust_lr_fn="match_rms_adamw", **options),
        start(shapes),
        gradients(shapes),
    )
    tolerance = 1e-6 if backend == "torch" else 5e-3  # of bfloat16, rounded in another order
    for a, b in zip(values_of(mine), theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def test_muon_needs_its_dtype(backend: str) -> None:
    if has_dtype(backend, "bfloat16"):
        pytest.skip("the backend has bfloat16")
    with pytest.raises(EmberError, match="bfloat16"):
        run(Muon(parameters(start([(4, 3)])), precision="bfloat16"), gradients([(4, 3)], 1))


def test_muon_leaves_matrices_of_a_group_to_adamw(backend: str) -> None:
    values, grads = start([(4, 3), (3, 6)]), gradients([(4, 3), (3, 6)])
    first, second = parameters(values)
    optimizer = Muon(
        [{"params": [first]}, {"params": [second], "matrices": False}],
        learning_rate=0.01,
        adamw_factor=0.5,
    )
    run(optimizer, grads)
    expected = by_torch(
        lambda ps: torch.optim.AdamW(ps, lr=0.005, weight_decay=0.1),
        values[1:],
        [step[1:] for step in grads],
    )
    np.testing.assert_allclose(second.numpy(), expected[0], rtol=1e-5, atol=1e-5)
    assert set(optimizer.state_dict()["tensors"]) == {
        "momentum_buffer/p0",
        "exp_avg/p1",
        "exp_avg_sq/p1",
    }


def test_schedule_free_gives_the_average(backend: str) -> None:
    optax = pytest.importorskip("optax")
    theirs = schedule_free(optax)
    params: Any = start()
    state = theirs.init(params)
    mine = ScheduleFreeAdamW(
        parameters(start()), learning_rate=0.05, betas=(0.8, 0.95), weight_decay=0.1
    )
    for step in gradients():
        updates, state = theirs.update(step, state, params)
        params = optax.apply_updates(params, updates)
        mine.step([tensor.array(grad) for grad in step])
    training = values_of(mine)
    mine.eval().eval()
    expected = optax.contrib.schedule_free_eval_params(state, params)
    for a, b in zip(values_of(mine), expected, strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-4, atol=1e-4)
    with pytest.raises(ArgumentError, match="train"):
        mine.step([tensor.array(grad) for grad in step])
    with pytest.raises(ArgumentError, match="train"):
        mine.scalars()
    mine.train()
    for a, b in zip(values_of(mine), training, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_schedule_free_weighs_by_the_greatest_rate(backend: str) -> None:
    factors = [0.25, 0.5, 1.0, 0.5]
    weight = Parameter([1.0], name="w")
    optimizer = ScheduleFreeAdamW([weight], learning_rate=0.1, eps=0.0)
    x = z = 1.0
    greatest = total = 0.0
    for factor in factors:
        optimizer.factor = factor
        optimizer.step([ops.ones(1)])
        rate = 0.1 * factor
        z -= rate  # the gradient over its root mean square is 1
        greatest = max(greatest, rate)
        total += greatest**2
        x += (z - x) * greatest**2 / total
    assert optimizer.eval().parameters[0].item() == pytest.approx(x, rel=1e-5)


class Model(nn.Module):
    def __init__(self) -> None:
        self.weight = Parameter([[1.0, 2.0]])
        self.bias = Parameter([3.0], decay=False)
        self.frozen = Parameter([4.0], trainable=False)

    def forward(self, x: Any) -> Any:
        return x @ self.weight.T + self.bias + self.frozen


def test_of_a_module(backend: str) -> None:
    model = Model()
    optimizer = SGD(model, learning_rate=0.5, weight_decay=0.1)
    assert optimizer.names == ["weight", "bias"]
    _, grads = nn.value_and_grad(model, lambda x: model(x).sum())(tensor.array([[1.0, 1.0]]))
    optimizer.step(grads)
    np.testing.assert_allclose(model.weight.numpy(), [[0.45, 1.4]], rtol=1e-6)  # 1 - 0.5 (1 + 0.1)
    np.testing.assert_allclose(model.bias.numpy(), [2.5], rtol=1e-6)  # no decay
    assert model.frozen.tolist() == [4.0]


def test_groups(backend: str) -> None:
    first, second = Parameter([1.0], name="a"), Parameter([1.0], name="b")
    groups = [{"params": [first], "learning_rate": 0.5}, {"params": [("second", second)]}]
    optimizer = SGD(groups, learning_rate=0.1)
    assert optimizer.names == ["a", "second"]
    assert [group.learning_rate for group in optimizer.groups] == [0.5, 0.1]
    optimizer.step([ops.ones(1), ops.ones(1)])
    np.testing.assert_allclose([first.item(), second.item()], [0.5, 0.9], rtol=1e-6)
    optimizer.groups[1].learning_rate = 0.2
    optimizer.factor = 0.5
    optimizer.step([ops.ones(1), ops.ones(1)])
    np.testing.assert_allclose([first.item(), second.item()], [0.25, 0.8], rtol=1e-6)
    optimizer.learning_rate = 0.4
    assert [group.learning_rate for group in optimizer.groups] == [0.4, 0.4]


@pytest.mark.parametrize("name", ["adamw", "sgd", "muon"])
def test_without_a_gradient_a_parameter_stays(backend: str, name: str) -> None:
    """Its own count of steps stays too, as in torch."""
    options, _ = CASES[name][-1]
    grads = gradients(steps=6)
    late = create(f"optimizers/{name}", parameters(start()), **options)
    for at, step in enumerate(grads):
        given: list[Any] = [tensor.array(grad) for grad in step]
        if at < 3:
            given[2] = None
        late.step(given)
        if at < 3:
            assert np.array_equal(late.parameters[2].numpy(), start()[2])
    alone = create(f"optimizers/{name}", parameters(start()[2:3]), **options)
    run(alone, [step[2:3] for step in grads[3:]])
    others = create(f"optimizers/{name}", parameters(start()), **options)
    run(others, grads)
    np.testing.assert_allclose(values_of(late)[2], values_of(alone)[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values_of(late)[1], values_of(others)[1], rtol=1e-5, atol=1e-6)
    assert late.state_dict()["extra"]["lags"] == {"p2": 3}


def test_a_missing_name_means_no_gradient(backend: str) -> None:
    optimizer = SGD(parameters(start([(2,), (3,)])), learning_rate=1.0)
    optimizer.step({"p1": ops.ones(3)})
    assert np.array_equal(values_of(optimizer)[0], start([(2,), (3,)])[0])
    optimizer.step([None, None])
    assert optimizer.step_count == 2


def test_apply_gradients(backend: str) -> None:
    params = parameters(start([(2,), (3,)]))
    optimizer = SGD(params, learning_rate=1.0)
    optimizer.apply_gradients([(ops.ones(3), params[1]), (ops.ones(2), params[0])])
    for mine, first in zip(values_of(optimizer), start([(2,), (3,)]), strict=True):
        np.testing.assert_allclose(mine, first - 1.0, rtol=1e-6)
    with pytest.raises(ArgumentError, match="apply_gradients"):
        optimizer.apply_gradients([(ops.ones(3), Parameter([1.0]))])


def test_large_models_are_updated_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    k = optimization_of("numpy")
    shapes = [(3 << 10,), (3 << 10,), (6 << 10,), (5,)]

    def chunks() -> list[list[int]]:
        plan = AdamW(parameters(start(shapes)))._current_plan()
        return [batch.indices for batch in plan.batches((), [0] * 4)]

    with ember_ml.use_backend("numpy"):
        assert k.CHUNK_BYTES == 64 << 20
        assert chunks() == [[0, 1, 2, 3]]
        monkeypatch.setattr(k, "CHUNK_BYTES", 25 << 10)
        assert chunks() == [[0, 1], [2, 3]]


def test_float64() -> None:
    for backend in with_dtype("float64"):
        with ember_ml.use_backend(backend):
            params = [
                Parameter(value.astype(np.float64), name=f"p{at}")
                for at, value in enumerate(start())
            ]
            optimizer = AdamW(params, learning_rate=0.1)
            run(optimizer, [[g.astype(np.float64) for g in step] for step in gradients()])
        params = [torch.nn.Parameter(torch.tensor(value, dtype=torch.float64)) for value in start()]
        theirs = torch.optim.AdamW(params, lr=0.1)
        for step in gradients():
            for param, grad in zip(params, step, strict=True):
                param.grad = torch.tensor(grad, dtype=torch.float64)
            theirs.step()
        for mine, param in zip(values_of(optimizer), params, strict=True):
            np.testing.assert_allclose(mine, param.detach().numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_zero_gradients_and_empty_parameters(backend: str, name: str) -> None:
    shapes = [(0, 3), (0,), (1, 1), (2,)]
    optimizer = create(f"optimizers/{name}", parameters(start(shapes)))
    run(optimizer, [[np.zeros(shape, np.float32) for shape in shapes]] * 2)
    assert [value.shape for value in values_of(optimizer)] == shapes
    assert all(np.isfinite(value).all() for value in values_of(optimizer))


def test_another_learning_rate_does_not_compile_anew() -> None:
    mx = pytest.importorskip("mlx.core")
    with ember_ml.use_backend("mlx"):
        traced = []

        class Watched(AdamW):
            def update_step(self, *args: Any) -> Any:
                traced.append(1)
                return super().update_step(*args)

        optimizer = Watched(parameters(start()))
        for at, step in enumerate(gradients(steps=4)):
            optimizer.learning_rate = 0.1 / (at + 1)
            optimizer.step([tensor.array(grad) for grad in step])
            mx.eval([each._data for each in optimizer.parameters])
    assert len(traced) == 1


@pytest.mark.parametrize("name", ["adamw", "schedule_free_adamw"])
def test_torchs_compiler_traces_an_update_once(name: str) -> None:
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounter()
    with ember_ml.use_backend("torch"):
        eager = create(f"optimizers/{name}", parameters(start()))
        traced = create(f"optimizers/{name}", parameters(start()))
        update = torch.compile(traced.update, backend=counter, fullgraph=True)
        for step in gradients(steps=3):
            eager.step([tensor.array(grad) for grad in step])
            numbers = [torch.tensor(number) for number in traced.scalars()]
            params = [each._data for each in traced.parameters]
            native = [torch.tensor(grad) for grad in step]
            traced.commit(*update(params, native, traced.state_arrays(), numbers))
    assert counter.frame_count == 1
    for mine, theirs in zip(values_of(traced), values_of(eager), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_configs(backend: str) -> None:
    config = Config.from_dict({"type": "optimizers/adamw", "learning_rate": 0.5})
    optimizer = config.create(parameters(start()))
    assert type(optimizer) is AdamW
    assert (optimizer.learning_rate, optimizer.config) == (0.5, config)
    assert repr(optimizer).startswith("AdamW(Group(5 parameters, learning_rate=0.5")


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: SGD(3), ArgumentTypeError, "a list of parameters"),
        (lambda: SGD([]), ArgumentError, "no trainable parameter"),
        (lambda: SGD([ops.ones(2)]), ArgumentTypeError, "Parameters"),
        (lambda: SGD([Parameter([1])]), ArgumentTypeError, "int64"),
        (lambda: SGD([Parameter([1.0])], learning_rate=-1.0), ConfigError, "learning_rate"),
        (lambda: SGD([Parameter([1.0])], nesterov=True), ConfigError, "momentum"),
        (lambda: SGD([{"params": [Parameter([1.0])], "rate": 1}]), ArgumentError, "rate"),
        (
            lambda: SGD([{"params": [Parameter([1.0])], "momentum": -1.0}]),
            ConfigError,
            "momentum",
        ),
        (lambda: AdamW([Parameter([1.0])], betas=(0.9, 1.0)), ConfigError, "betas"),
    ],
)
def test_bad_arguments(backend: str, make: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_the_same_parameter_twice(backend: str) -> None:
    weight = Parameter([1.0], name="w")
    with pytest.raises(ArgumentError, match="twice"):
        SGD([weight, weight])


def test_bad_gradients(backend: str) -> None:
    optimizer = SGD(parameters(start([(2,), (3,)])))
    with pytest.raises(ArgumentError, match="no parameter 'p3'"):
        optimizer.step({"p0": ops.ones(2), "p3": ops.ones(3)})
    with pytest.raises(ArgumentError, match="each of 2 parameters, got 1"):
        optimizer.step([ops.ones(2)])
    with pytest.raises(ShapeError, match=r"'p1' has the shape \(3,\), its gradient \(2,\)"):
        optimizer.step([ops.ones(2), ops.ones(2)])
    with pytest.raises(ArgumentTypeError, match="dict by name"):
        optimizer.step(3)
    assert optimizer.step_count == 0
    assert same(values_of(optimizer), start([(2,), (3,)]))


def test_bad_states(backend: str) -> None:
    optimizer = AdamW(parameters(start([(2,), (3,)])))
    state = optimizer.state_dict()
    with pytest.raises(ArgumentError, match="'optimizers/sgd'"):
        optimizer.load_state_dict({**state, "type": "optimizers/sgd"})
    tensors = {**state["tensors"], "exp_avg/p0": ops.ones(7), "extra/p0": ops.ones(1)}
    del tensors["exp_avg_sq/p1"]
    with pytest.raises(StateDictError) as caught:
        optimizer.load_state_dict({**state, "tensors": tensors})
    assert caught.value.missing == ["exp_avg_sq/p1"]
    assert caught.value.unexpected == ["extra/p0"]
    assert caught.value.misshaped == {"exp_avg/p0": ((2,), (7,))}
    groups = [{**state["groups"][0], "params": ["p0", "other"]}]
    with pytest.raises(StateDictError, match="missing: p1"):
        optimizer.load_state_dict({**state, "groups": groups})
    with pytest.raises(ArgumentError, match="1 groups, the state has 2"):
        optimizer.load_state_dict({**state, "groups": state["groups"] * 2})


def test_a_state_without_a_newer_option(backend: str) -> None:
    optimizer = AdamW(parameters(start([(2,)])), eps=1e-3)
    state = optimizer.state_dict()
    groups = [{"params": ["p0"], "learning_rate": 0.5}]
    optimizer.load_state_dict({**state, "groups": groups})
    assert (optimizer.learning_rate, optimizer.groups[0].options["eps"]) == (0.5, 1e-3)
    with pytest.raises(ConfigError, match="rate"):
        optimizer.load_state_dict({**state, "groups": [{**groups[0], "rate": 1.0}]})


OLD_STATE: dict[str, Any] = {
    "type": "optimizers/schedule_free_adamw",
    "step": 3,
    "groups": [
        {
            "learning_rate": 0.5,
            "betas": [0.9, 0.999],
            "eps": 1e-08,
            "weight_decay": 0.0,
            "weight_power": 2.0,
            "params": ["p0"],
        }
    ],
    "extra": {
        "factor": 0.5,
        "lags": {"p0": 1},
        "training": False,
        "greatest": [0.25],
        "weights": [0.125],
    },
}
"""A saved state of the first version of the format, without its tensors."""


def test_format_of_saved_states(backend: str) -> None:
    """Checkpoints depend on it: a change here breaks those that exist."""
    optimizer = ScheduleFreeAdamW(parameters(start([(2,)])))
    tensors = {"z/p0": tensor.array([1.0, 2.0]), "exp_avg_sq/p0": tensor.array([3.0, 4.0])}
    saved = optimizer.load_state_dict({**OLD_STATE, "tensors": tensors}).state_dict()
    assert (optimizer.step_count, optimizer.training, optimizer.factor) == (3, False, 0.5)
    values = {name: value.tolist() for name, value in saved["tensors"].items()}
    assert values == {"z/p0": [1.0, 2.0], "exp_avg_sq/p0": [3.0, 4.0]}
    assert {key: saved[key] for key in saved if key != "tensors"} == OLD_STATE


def test_parameters_of_two_backends() -> None:
    with ember_ml.use_backend("numpy"):
        first = Parameter([1.0], name="a")
    with ember_ml.use_backend("torch"):
        second = Parameter([1.0], name="b")
    with pytest.raises(ArgumentTypeError, match="numpy, torch"):
        SGD([first, second]).step([ops.ones(1), ops.ones(1)])
