"""Spiking neurons against snnTorch, Norse, a float64 loop and a simulator of events."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ember_ml import GradientTape, nn, ops
from ember_ml._core.dispatch import OPS
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.backend import use_backend
from ember_ml.configs import Config, ConfigError
from ember_ml.nn import surrogates
from ember_ml.nn.layers import (
    ALIF,
    LIF,
    LeakyIntegrator,
    RecurrentLIF,
    Spiking,
    SpikingLayer,
    Synaptic,
    decay,
)
from ember_ml.nn.layers.sequence_mixing.spiking.recurrent import delayed_weights
from ember_ml.nn.tensor import array
from ember_ml.ops.nn.spiking import stepwise_scan
from tests.backends import has_dtype
from tests.unit.nn import norse_neurons, spiking_loops

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import snntorch
    from snntorch import surrogate as theirs

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.4, 1.1, (2, 40, 4)).astype(np.float32)
WEIGHT = RNG.normal(0.0, 0.4, (4, 4)).astype(np.float32)
FACTORS = np.cos(np.arange(X.size, dtype=np.float32)).reshape(X.shape)
SURROGATES: dict[str, tuple[surrogates.Surrogate, Callable[[torch.Tensor], torch.Tensor]]] = {
    "fast_sigmoid": (surrogates.FastSigmoid(25.0), theirs.fast_sigmoid(slope=25)),
    "atan": (surrogates.Atan(2.0), theirs.atan(alpha=2.0)),
    "sigmoid": (surrogates.Sigmoid(9.0), theirs.sigmoid(slope=9)),
    "straight_through": (surrogates.StraightThrough(), theirs.straight_through_estimator()),
}


def run(layer: SpikingLayer, x: Any = X) -> tuple[Any, Any, dict[str, Any], Any]:
    """Return spikes, voltages and the gradients of a weighted sum by parameters and input."""
    x = array(x).astype(layer.beta.dtype)
    factors = array(FACTORS[:, : x.shape[1]]).astype(x.dtype)
    with GradientTape() as tape:
        tape.watch(x)
        out = layer.run(x)
        loss = (out.spikes * factors).sum() + 0.1 * (out.voltages * factors).sum()
    names = dict(layer.named_parameters())
    grads = tape.gradient(loss, [x, *names.values()])
    rest = {name: g.numpy() for name, g in zip(names, grads[1:], strict=True)}
    return out.spikes.numpy(), out.voltages.numpy(), rest, grads[0].numpy()


def theirs_run(module: torch.nn.Module) -> tuple[Any, Any, dict[str, Any], Any]:
    """Return the same of an snnTorch neuron, whose voltages are those before the reset."""
    x = torch.tensor(X, requires_grad=True)
    state: tuple[torch.Tensor, ...] = tuple(
        torch.zeros_like(x[:, 0])
        for _ in range(2 if isinstance(module, (snntorch.Synaptic, snntorch.RLeaky)) else 1)
    )
    spikes, voltages = [], []
    for now in x.unbind(1):
        z, *state = module(now, *state)
        spikes.append(z)
        voltages.append(state[-1])
        if isinstance(module, snntorch.RLeaky):
            state = [z, state[-1]]
    z, v = torch.stack(spikes, 1), torch.stack(voltages, 1)
    factors = torch.tensor(FACTORS)
    ((z * factors).sum() + 0.1 * (v * factors).sum()).backward()
    grads = {name: p.grad.numpy() for name, p in module.named_parameters() if p.grad is not None}
    return z.detach().numpy(), v.detach().numpy(), grads, x.grad.numpy()


def leaky(**options: Any) -> Callable[..., torch.nn.Module]:
    return lambda fire: snntorch.Leaky(
        spike_grad=fire, learn_beta=True, learn_threshold=True, **options
    )


def rleaky(fire: Any) -> torch.nn.Module:
    module = snntorch.RLeaky(
        beta=1.0, linear_features=4, all_to_all=True, spike_grad=fire, learn_recurrent=True
    )
    module.recurrent.weight.data = torch.tensor(WEIGHT)
    module.recurrent.bias.data.zero_()
    return module


def recurrent(fire: surrogates.Surrogate, **options: Any) -> RecurrentLIF:
    layer = RecurrentLIF(4, surrogate=fire, **options)
    layer.weight.assign(WEIGHT)
    return layer


LEARNED = {"learn_beta": True, "learn_threshold": True}
# snnTorch subtracts the threshold after the decay of the next step, which is the same for beta = 1,
# except for the gradient of beta itself.
PAIRS: dict[str, tuple[Callable[..., SpikingLayer], Callable[..., torch.nn.Module]]] = {
    "hard": (
        lambda fire: LIF(4, 0.85, 0.9, "hard", surrogate=fire, **LEARNED),
        leaky(beta=0.85, threshold=0.9, reset_mechanism="zero"),
    ),
    "soft": (
        lambda fire: LIF(4, 1.0, 0.9, surrogate=fire, learn_threshold=True),
        leaky(beta=1.0, threshold=0.9),
    ),
    "none": (
        lambda fire: LIF(4, 0.5, 0.9, "none", surrogate=fire, **LEARNED),
        leaky(beta=0.5, threshold=0.9, reset_mechanism="none"),
    ),
    "synaptic": (
        lambda fire: Synaptic(
            4, 0.6, 1.0, surrogate=fire, learn_alpha=True, learn_threshold=True
        ),
        lambda fire: snntorch.Synaptic(
            alpha=0.6, beta=1.0, spike_grad=fire, learn_alpha=True, learn_beta=True,
            learn_threshold=True,
        ),
    ),
    "recurrent": (lambda fire: recurrent(fire, beta=1.0), rleaky),
}  # fmt: skip


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("pair", PAIRS)
def test_neurons_equal_snntorch(pair: str, name: str, backend: str) -> None:
    ours, other = PAIRS[pair]
    surrogate, fire = SURROGATES[name]
    spikes, voltages, grads, grad_x = run(ours(surrogate))
    z, v, their_grads, their_grad_x = theirs_run(other(fire))
    assert 0.05 < z.mean() < 0.95
    np.testing.assert_array_equal(spikes, z)
    np.testing.assert_allclose(voltages, v, rtol=1e-4, atol=1e-4)
    scale = max(1.0, float(np.abs(their_grad_x).max()))
    np.testing.assert_allclose(grad_x / scale, their_grad_x / scale, rtol=2e-3, atol=2e-4)
    named = {name.replace("recurrent.", ""): g for name, g in their_grads.items()}
    for key, grad in grads.items():
        # snnTorch has one value for all neurons
        total = grad if grad.shape == named[key].shape else grad.sum()
        size = max(1.0, float(np.abs(named[key]).max()))
        np.testing.assert_allclose(total / size, named[key] / size, rtol=2e-3, atol=2e-4)


class Kernel(torch.autograd.Function):
    """A step with the derivative that a function computes."""

    @staticmethod
    def forward(ctx: Any, u: torch.Tensor, slope: Callable[..., torch.Tensor]) -> torch.Tensor:
        ctx.save_for_backward(u)
        ctx.slope = slope
        return (u > 0).to(u.dtype)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        return g * ctx.slope(ctx.saved_tensors[0]), None


def atan(u: torch.Tensor) -> torch.Tensor:
    """snnTorch's own function rounds its gradient to float32."""
    return Kernel.apply(u, lambda u: 1 / (1 + (np.pi * u) ** 2))


def triangle(u: torch.Tensor) -> torch.Tensor:
    return Kernel.apply(u, lambda u: 0.3 * torch.clamp(1 - u.abs(), min=0))


LOOPS: dict[str, tuple[Callable[[], SpikingLayer], dict[str, Any]]] = {
    "soft": (lambda: LIF(4, 0.8, **LEARNED), {}),
    "hard": (lambda: LIF(4, 0.8, reset="hard", **LEARNED), {}),
    "refractory": (lambda: LIF(4, 0.8, refractory=3, **LEARNED), {}),
    "refractory hard": (lambda: LIF(4, 0.8, reset="hard", refractory=1, **LEARNED), {}),
    "triangle": (
        lambda: LIF(4, 0.8, surrogate={"type": "triangle", "slope": 0.3}, **LEARNED),
        {"fire": triangle},
    ),
    "synaptic": (lambda: Synaptic(4, 0.5, 0.7, learn_alpha=True, **LEARNED), {}),
    "synaptic refractory": (
        lambda: Synaptic(4, 0.5, 0.7, reset="hard", refractory=2, learn_alpha=True, **LEARNED),
        {},
    ),
    "adaptive": (
        lambda: ALIF(4, 0.8, rho=0.9, strength=0.3, learn_decays=True, learn_thresholds=True),
        {},
    ),
    "adaptive refractory": (
        lambda: ALIF(4, 0.8, rho=0.9, strength=0.3, reset="hard", refractory=2,
                     learn_decays=True, learn_thresholds=True),
        {},
    ),
    "recurrent": (lambda: recurrent("atan", beta=0.8, **LEARNED), {}),
    "recurrent synaptic": (lambda: recurrent("atan", beta=0.7, alpha=0.4, reset="hard"), {}),
    "recurrent refractory": (lambda: recurrent("atan", beta=0.8, refractory=2, **LEARNED), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_neurons_equal_a_float64_loop(name: str, backend: str) -> None:
    create, options = LOOPS[name]
    layer = create()
    exact = has_dtype(backend, "float64")
    layer = layer.to(dtype="float64") if exact else layer
    spikes, voltages, grads, grad_x = run(layer, X.astype(np.float64) if exact else X)
    parts = ("beta", "threshold", "alpha", "rho", "strength", "weight")
    leaves = {
        part: torch.tensor(getattr(layer, part).numpy(), dtype=torch.float64).requires_grad_()
        for part in parts
        if getattr(layer, part, None) is not None
    }
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    options = {"fire": atan, **options}
    z, v = spiking_loops.loop(
        x, **leaves, **options, reset=layer.reset, refractory=layer.refractory
    )
    assert 0.03 < z.mean() < 0.95
    factors = torch.tensor(FACTORS, dtype=torch.float64)
    ((z * factors).sum() + 0.1 * (v * factors).sum()).backward()
    tolerance = 1e-9 if exact else 1e-3
    np.testing.assert_array_equal(spikes, z.detach().numpy())
    np.testing.assert_allclose(voltages, v.detach().numpy(), rtol=tolerance, atol=tolerance)
    for key, grad in {"x": grad_x, **grads}.items():
        if key != "delays":
            want = (x if key == "x" else leaves[key]).grad.numpy()
            size = max(1.0, float(np.abs(want).max()))
            np.testing.assert_allclose(
                grad / size, want / size, rtol=tolerance, atol=tolerance, err_msg=key
            )


NORSE = json.loads(norse_neurons.FILE.read_text())
FIRE = surrogates.FastSigmoid(1.0)  # Norse 1.1.0 does not use its slope
NORSE_LAYERS: dict[str, Callable[[], SpikingLayer]] = {
    "plain": lambda: LIF(3, 0.8, reset="hard", surrogate=FIRE),
    "recurrent": lambda: RecurrentLIF(3, 0.8, reset="hard", surrogate=FIRE),
    "synaptic": lambda: Synaptic(3, 0.7, 0.8, reset="hard", surrogate=FIRE),
    "refractory": lambda: LIF(3, 0.8, reset="hard", refractory=3, surrogate=FIRE),
    "adaptive": lambda: ALIF(3, 0.8, 1.0, 0.95, 0.4 * 0.95, reset="hard", surrogate=FIRE),
}


@pytest.mark.parametrize("name", NORSE_LAYERS)
def test_neurons_equal_norse(name: str, backend: str) -> None:
    """Norse scales inputs by dt / tau = 0.2. Its adaptive neuron delays them by one step."""
    expected = NORSE[name]
    x = 0.2 * np.array(NORSE["x"], np.float32)
    if name == "adaptive":
        x = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], axis=1)
    layer = NORSE_LAYERS[name]()
    if name == "recurrent":
        layer.weight.assign(0.2 * np.array(NORSE["weight"], np.float32))
    x = array(x)
    factors = array(np.cos(np.arange(x.size, dtype=np.float32)).reshape(x.shape))
    with GradientTape() as tape:
        tape.watch(x)
        out = layer.run(x)
        loss = (out.spikes * factors).sum()
    spikes = np.array(expected["spikes"])
    np.testing.assert_array_equal(out.spikes.numpy(), spikes)
    after = out.voltages.numpy() * (1 - spikes)
    np.testing.assert_allclose(after, expected["after"], rtol=1e-4, atol=1e-5)
    if "grad_x" in expected:
        grads = tape.gradient(loss, [x, *([layer.weight] if name == "recurrent" else [])])
        np.testing.assert_allclose(0.2 * grads[0].numpy(), expected["grad_x"], rtol=1e-3, atol=1e-5)
        if name == "recurrent":
            want = np.array(expected["grad_weight"])
            np.testing.assert_allclose(0.2 * grads[1].numpy(), want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("max_delay", [1, 2, 7])
def test_delays_equal_a_simulator_of_events(max_delay: int, backend: str) -> None:
    ops.random.set_seed(max_delay)
    layer = RecurrentLIF(6, 0.8, reset="hard", max_delay=max_delay)
    rng = np.random.default_rng(max_delay)
    delays = rng.integers(1, max_delay + 1, (6, 6))
    layer.set_delays(delays)
    weight = rng.normal(0.0, 0.8, (6, 6)).astype(np.float32)
    layer.weight.assign(weight)
    x = rng.uniform(-0.3, 0.8, (2, 30, 6)).astype(np.float32)
    spikes = layer(array(x)).numpy()
    for example, train in zip(x, spikes, strict=True):
        want = spiking_loops.events(example.astype(np.float64), 0.8, 1.0, weight, delays)
        np.testing.assert_array_equal(train, want)
    assert 0.05 < spikes.mean() < 0.95


def test_learned_delays_transmit_a_mixture_and_have_gradients(backend: str) -> None:
    weight = RNG.normal(size=(3, 3))
    delays = RNG.uniform(1.05, 3.95, (3, 3))
    delays[0] = [1.0, 2.0, 4.0]  # steps themselves: the derivative to one side
    factors = RNG.normal(size=(4, 3, 3))
    dtype = "float64" if has_dtype(backend, "float64") else "float32"
    w, d, factor = (array(value.astype(dtype)) for value in (weight, delays, factors))
    with GradientTape() as tape:
        tape.watch([w, d])
        taps = delayed_weights(w, d, 4)
        loss = (taps * factor).sum()
    below = np.minimum(np.floor(delays), 3).astype(int)
    want = np.zeros((4, 3, 3))
    slope = np.zeros((3, 3))
    for i, j in np.ndindex(3, 3):
        late = delays[i, j] - below[i, j]
        want[below[i, j] - 1, i, j] = weight[i, j] * (1 - late)
        want[below[i, j], i, j] = weight[i, j] * late
        change = factors[below[i, j], i, j] - factors[below[i, j] - 1, i, j]
        slope[i, j] = weight[i, j] * change
    np.testing.assert_allclose(taps.numpy(), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tape.gradient(loss, d).numpy(), slope, rtol=1e-4, atol=1e-5)


def test_a_learned_delay_of_whole_steps_equals_a_fixed_one(backend: str) -> None:
    ops.random.set_seed(0)
    fixed = RecurrentLIF(4, max_delay=3)
    learned = RecurrentLIF(4, max_delay=3, learn_delays=True)
    learned.weight.assign(fixed.weight)
    learned.set_delays(fixed.delays.astype("float32"))
    x = array(3 * X)
    np.testing.assert_array_equal(fixed(x).numpy(), learned(x).numpy())
    _, grads = nn.value_and_grad(learned, lambda: learned(x).sum())()
    assert np.abs(grads["delays"].numpy()).max() > 0


class Cubic(surrogates.Surrogate):
    """A surrogate without a kernel."""

    def smooth(self, u: Any) -> Any:
        return u * u * u


def test_custom_surrogates_run_step_by_step(backend: str) -> None:
    arctan = type("Own", (surrogates.Surrogate,), {"smooth": surrogates.Atan().smooth})()
    reference = run(LIF(4, refractory=1, **LEARNED))
    for got, want in zip(
        run(LIF(4, refractory=1, surrogate=arctan, **LEARNED)), reference, strict=True
    ):
        for key in want if isinstance(want, dict) else [...]:
            np.testing.assert_allclose(got[key], want[key], rtol=1e-4, atol=1e-5)
    x = nn.Parameter([-0.5, 0.5])
    with GradientTape() as tape:
        spikes = Cubic()(x)
    assert spikes.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(tape.gradient(spikes, x).numpy(), [0.75, 0.75])


@pytest.mark.parametrize("options", [{}, {"refractory": 2, "reset": "hard"}])
def test_kernels_equal_the_body_in_higher_derivatives(
    options: dict[str, Any], backend: str
) -> None:
    size = 1 + (2 if options else 1)
    operands = [X[:, :6, :3], np.zeros((2, size, 3)), [0.8] * 3, [0.7] * 3, [0.6] * 3]
    operands = [array(np.asarray(each, np.float32)) for each in operands]

    def second(function: Callable[..., Any]) -> list[Any]:
        with GradientTape() as outer:
            outer.watch(operands)
            with GradientTape() as inner:
                inner.watch(operands)
                z, v, last = function(*operands, **options)
                loss = (z * v).sum() + (last[:, :2] * last[:, :2]).sum()
            first = inner.gradient(loss, operands, unconnected_gradients="zero")
            total = sum((g * g).sum() for g in first)
        return [g.numpy() for g in outer.gradient(total, operands, unconnected_gradients="zero")]

    body = OPS["nn.spiking.spiking_scan"].body
    for got, want in zip(second(ops.spiking_scan), second(body), strict=True):
        scale = max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(got / scale, want / scale, rtol=1e-3, atol=1e-4)


def test_the_op_of_torch_compilers() -> None:
    from ember_ml.backend.torch.ops.nn import spiking

    arrays = [X[:, :5, :3], np.zeros((2, 4, 3)), *[[0.8] * 3] * 4, [0.2] * 3]
    arrays += [RNG.normal(size=(2, 3, 3)), np.zeros((2, 2, 3))]
    operands = [torch.tensor(np.asarray(x, np.float32), requires_grad=True) for x in arrays]
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    args = (*operands, mask, "hard", 2, "atan", 2.0)
    torch.library.opcheck(torch.ops.ember_ml.spiking_scan, args)

    def loss(*operands: torch.Tensor) -> torch.Tensor:
        z, v, last = spiking.spiking_scan(*operands, mask, "hard", 2)
        return (z * v).sum() + last.sum()

    want = torch.autograd.grad(loss(*operands), operands)
    try:
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        got = torch.autograd.grad(compiled(*operands), operands)
    finally:
        torch.compiler.reset()
    for ours, expected in zip(got, want, strict=True):
        torch.testing.assert_close(ours, expected)


def test_memory_holds_spikes_and_voltages_only() -> None:
    """The forward pass of plain neurons saves nothing else for the backward pass."""
    from ember_ml.backend.spiking import Operands, Options
    from ember_ml.backend.torch.spiking import run as scan

    x = torch.ones(2, 5, 3)
    ones = torch.ones(3)
    _, saved = scan(Operands(x, torch.zeros(2, 1, 3), 0.9 * ones, ones), Options(), save=True)
    assert saved == (None, None, None)


def test_decay(backend: str) -> None:
    assert decay(20.0) == pytest.approx(np.exp(-1 / 20))
    assert decay(0.02, dt=0.001) == pytest.approx(np.exp(-1 / 20))
    for tau, dt in ((0.0, 1.0), (-1.0, 1.0), (1.0, 0.0), (float("nan"), 1.0), (np.inf, 1.0)):
        with pytest.raises(ArgumentError, match=r"decay: (tau|dt) \(.*above 0"):
            decay(tau, dt)


BAD_CONFIGS: dict[str, tuple[Callable[[], object], str]] = {
    "threshold 0": (lambda: LIF(4, threshold=0.0), "threshold"),
    "threshold below 0": (lambda: ALIF(4, threshold=-1.0), "threshold"),
    "beta above 1": (lambda: LIF(4, beta=1.5), "beta"),
    "alpha below 0": (lambda: Synaptic(4, alpha=-0.1), "alpha"),
    "rho NaN": (lambda: ALIF(4, rho=float("nan")), "rho"),
    "refractory": (lambda: LIF(4, refractory=-1), "refractory"),
    "reset": (lambda: LIF(4, reset="zero"), "reset"),
    "surrogate": (lambda: LIF(4, surrogate="atanh"), "surrogate"),
    "max_delay": (lambda: RecurrentLIF(4, max_delay=0), "max_delay"),
    "width": (lambda: Spiking(nn.activations.get("relu")), "neurons"),
}


@pytest.mark.parametrize("name", BAD_CONFIGS)
def test_bad_configs(name: str) -> None:
    create, field = BAD_CONFIGS[name]
    with pytest.raises((ConfigError, ArgumentError), match=field):
        create()


def nan(value: float) -> Any:
    x = X.copy()
    x[1, 3, 2] = value
    return array(x)


ERRORS: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "NaN": (lambda: LIF(4)(nan(np.nan)), ArgumentError, "LIF: a voltage is NaN.*never fire"),
    "infinite": (lambda: LIF(4, reset="hard")(nan(np.inf)), ArgumentError, "a voltage is NaN"),
    "delays": (
        lambda: RecurrentLIF(4, max_delay=9)(array(X[:, :8])),
        ArgumentError,
        r"largest delay \(9 steps\) is longer than the sequence \(8 steps\)",
    ),
    "set_delays": (
        lambda: RecurrentLIF(4, max_delay=3).set_delays(4),
        ArgumentError,
        r"from 1 to max_delay \(3\) steps, got values from 4 to 4",
    ),
    "set_delays 0": (
        lambda: RecurrentLIF(4, max_delay=3).set_delays(np.zeros((4, 4), int)),
        ArgumentError,
        "from 1 to max_delay",
    ),
    "fractions": (
        lambda: RecurrentLIF(4, max_delay=3).set_delays(1.5),
        ArgumentError,
        "integers unless learn_delays=True",
    ),
    "learn_delays": (
        lambda: RecurrentLIF(4, learn_delays=True),
        ArgumentError,
        "max_delay of at least 2, got 1",
    ),
    "width": (lambda: LIF(3)(array(X)), ShapeError, r"\(batch, time, 3\), got \(2, 40, 4\)"),
    "axes": (lambda: LIF(4)(array(X[0])), ShapeError, r"got \(40, 4\)"),
    "text": (lambda: LIF(4)("spikes"), ArgumentTypeError, "LIF: expected a tensor, got str"),
    "nothing": (lambda: LIF(4)(None), ArgumentTypeError, "LIF: expected a tensor, got NoneType"),
    "mask": (
        lambda: LIF(4)(array(X), mask="all"),
        ArgumentTypeError,
        "LIF: expected a tensor, got str",
    ),
    "state": (
        lambda: LIF(4)(array(X), state=3),
        ShapeError,
        r"shapes \[\(2, 4\)\], got \['int'\]",
    ),
    "states": (
        lambda: Spiking(nn.layers.Dense(4, 4))(array(X), state=()),
        ShapeError,
        "a tuple of 2 states, one for each of Dense, LIF, got 0",
    ),
    "memory": (
        lambda: RecurrentLIF(4, max_delay=10**9),
        ArgumentError,
        r"max_delay \(1000000000 steps\) is too large for 4 neurons",
    ),
    "no state": (
        lambda: LIF(4)(array(X), state=()),
        ShapeError,
        r"LIF: expected a state with the shapes \[\(2, 4\)\], got \[\]",
    ),
    "history": (
        lambda: RecurrentLIF(4, max_delay=3)(
            array(X), state=(ops.ones((2, 4)), ops.ones((2, 2, 4)))
        ),
        ShapeError,
        r"shapes \[\(2, 4\), \(2, 3, 4\)\], got \[\(2, 4\), \(2, 2, 4\)\]",
    ),
    "op: x": (
        lambda: ops.spiking_scan(ops.ones((2, 3)), *[ops.ones((1, 1, 3))] * 3),
        ShapeError,
        r"x has shape \(2, 3\); expected \(batch, time, neurons\)",
    ),
    "op: state": (
        lambda: ops.spiking_scan(array(X), ops.ones((2, 2, 4)), *[ops.ones((4,))] * 2),
        ShapeError,
        r"state has shape \(2, 2, 4\); expected \(2, 1, 4\)",
    ),
    "op: pair": (
        lambda: ops.spiking_scan(
            array(X), ops.ones((2, 2, 4)), *[ops.ones((4,))] * 2, rho=ops.ones((4,))
        ),
        ArgumentError,
        "pass rho and strength together",
    ),
    "op: reset": (
        lambda: ops.spiking_scan(
            array(X), ops.ones((2, 1, 4)), *[ops.ones((4,))] * 2, reset="zero"
        ),
        ArgumentError,
        "reset='zero' must be one of",
    ),
    "op: surrogate": (
        lambda: ops.spiking_scan(
            array(X), ops.ones((2, 1, 4)), *[ops.ones((4,))] * 2, surrogate="box"
        ),
        ArgumentError,
        "surrogate='box' must be one of",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, backend: str) -> None:
    call, error, message = ERRORS[name]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", SURROGATES)
def test_infinite_voltages_fire(name: str, backend: str) -> None:
    surrogate, _ = SURROGATES[name]
    assert surrogate([-np.inf, -1.0, 1.0, np.inf]).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_a_state_may_be_a_single_voltage(backend: str) -> None:
    layer, voltages = LIF(4), ops.full((2, 4), 0.5)
    spikes, _ = layer(array(X), state=voltages)
    expected, _ = layer(array(X), state=(voltages,))
    np.testing.assert_array_equal(spikes.numpy(), expected.numpy())


def test_delays_may_be_longer_than_a_part_of_a_sequence(backend: str) -> None:
    layer = RecurrentLIF(4, max_delay=9)
    x = array(2 * X)
    out, state = layer(x[:, :5], state=layer.initial_state(2))
    rest, _ = layer(x[:, 5:], state=state)
    parts = np.concatenate([out.numpy(), rest.numpy()], axis=1)
    np.testing.assert_array_equal(parts, layer(x).numpy())


def test_the_wrapper_runs_any_layer_and_any_neuron(backend: str) -> None:
    layer = Spiking({"type": "layers/dense", "in_features": 4, "out_features": 6}, "layers/alif")
    assert isinstance(layer.neuron, ALIF)
    assert layer.neuron.features == layer.out_features == 6
    twin = Config.from_yaml(layer.config.to_yaml()).create()
    twin.load_state_dict(layer.state_dict())
    x = array(3 * X)
    np.testing.assert_array_equal(layer(x).numpy(), layer.neuron(layer.layer(x)).numpy())
    np.testing.assert_array_equal(layer(x).numpy(), twin(x).numpy())
    gru = Spiking(nn.layers.GRU(4, 5), LIF(5, threshold=0.1))
    whole = gru(x).numpy()
    y, state = gru.unroll(x[:, :3])
    np.testing.assert_array_equal(y.numpy(), whole[:, :3])
    assert len(state) == 2


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8"])
def test_currents_may_be_spikes_of_another_type(dtype: str, backend: str) -> None:
    spikes = (X > 0.4).astype(dtype)
    out = LIF(4, threshold=1.5)(array(spikes))
    assert out.dtype.name == "float32"
    want = LIF(4, threshold=1.5)(array(spikes.astype(np.float32)))
    np.testing.assert_array_equal(out.numpy(), want.numpy())


def test_a_leaky_integrator_is_an_exponential_average(backend: str) -> None:
    layer = LeakyIntegrator(4, 0.7)
    kernel = 0.7 ** np.arange(40)
    want = [np.convolve(X[0, :, at], kernel)[:40] for at in range(4)]
    np.testing.assert_allclose(layer(array(X)).numpy()[0].T, want, rtol=1e-4, atol=1e-5)


def test_learned_values_stay_in_range(backend: str) -> None:
    layer = LIF(4, **LEARNED)
    layer.beta.assign(np.array([1.4, -0.2, 0.5, 1.0], np.float32))
    layer.threshold.assign(np.array([-1.0, 0.0, 1.0, 2.0], np.float32))
    spikes, voltages, *_ = run(layer)
    same = LIF(4)
    same.beta.assign(np.array([1.0, 0.0, 0.5, 1.0], np.float32))
    same.threshold.assign(np.array([1e-6, 1e-6, 1.0, 2.0], np.float32))
    np.testing.assert_array_equal(spikes, same(array(X)).numpy())
    assert np.isfinite(voltages).all()


def test_the_scan_of_a_custom_surrogate_checks_and_takes_no_steps(backend: str) -> None:
    one = ops.ones((4,))
    empty = ops.ones((2, 0, 4))
    z, _, last = stepwise_scan(
        Cubic(), empty, ops.ones((2, 1, 4)), one, one, reset="soft", refractory=0
    )
    assert z.shape == (2, 0, 4)
    assert last.shape == (2, 1, 4)


def test_steps_that_are_not_contiguous(backend: str) -> None:
    time_first = array(np.ascontiguousarray(X.transpose(1, 0, 2)))
    layer = recurrent("atan", max_delay=2)
    out = layer(ops.transpose(time_first, (1, 0, 2)))
    np.testing.assert_array_equal(out.numpy(), layer(array(X)).numpy())


def test_gradients_of_transforms_agree() -> None:
    """torch.func differentiates in plain steps, autograd by the kernel."""
    with use_backend("torch"):
        ones = torch.ones(4)
        x = torch.tensor(X)

        def loss(x: torch.Tensor) -> torch.Tensor:
            z, v, _ = OPS["nn.spiking.spiking_scan"].natives["torch"](
                x, torch.zeros(2, 1, 4), 0.9 * ones, ones
            )
            return (z * torch.tensor(FACTORS)).sum() + v.sum()

        leaf = x.clone().requires_grad_()
        loss(leaf).backward()
        torch.testing.assert_close(torch.func.grad(loss)(x), leaf.grad)
