"""Every schedule against torch's, optax's or its formula."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import pytest

from ember_ml._core.errors import ArgumentError
from ember_ml.configs import Config, ConfigError
from ember_ml.registry import available, create
from ember_ml.training import schedules
from ember_ml.training.schedules import Chained, Plateau

torch = pytest.importorskip("torch")
lr_scheduler = torch.optim.lr_scheduler
STEPS = 30


def by_torch(make: Any, steps: int = STEPS) -> list[float]:
    """Return the learning rates of a torch scheduler with a base of 1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SequentialLR's own use of a deprecated argument
        scheduler = make(optimizer)
        rates = []
        for _ in range(steps):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
    return rates


def by_optax(make: Any) -> list[float]:
    optax = pytest.importorskip("optax")
    schedule = make(optax)
    return [float(schedule(step)) for step in range(STEPS)]


def torch_case(ours: dict[str, Any], make: Any) -> tuple[dict[str, Any], Any]:
    return ours, lambda: by_torch(make)


def optax_case(ours: dict[str, Any], make: Any) -> tuple[dict[str, Any], Any]:
    return ours, lambda: by_optax(make)


def warmed_cosine(optimizer: Any) -> Any:
    rise = lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=5)
    wave = lr_scheduler.CosineAnnealingLR(optimizer, T_max=25, eta_min=0.2)
    return lr_scheduler.SequentialLR(optimizer, [rise, wave], milestones=[5])


def chain(optimizer: Any) -> Any:
    rise = lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=4)
    drop = lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    return lr_scheduler.SequentialLR(optimizer, [rise, drop], milestones=[4])


def one_cycle(**options: Any) -> Any:
    return lambda optimizer: lr_scheduler.OneCycleLR(
        optimizer, max_lr=1.0, total_steps=STEPS + 1, **options
    )


CASES: dict[str, list[tuple[dict[str, Any], Any]]] = {
    "constant": [
        ({}, lambda: [1.0] * STEPS),
        torch_case(
            {"factor": 0.3, "steps": 7}, lambda o: lr_scheduler.ConstantLR(o, 0.3, total_iters=7)
        ),
    ],
    "step": [
        torch_case({"step_size": 7}, lambda o: lr_scheduler.StepLR(o, 7)),
        torch_case(
            {"milestones": (20, 4, 4), "gamma": 0.5},
            lambda o: lr_scheduler.MultiStepLR(o, [20, 4, 4], gamma=0.5),
        ),
    ],
    "exponential": [
        torch_case({"gamma": 0.9}, lambda o: lr_scheduler.ExponentialLR(o, 0.9)),
        optax_case(
            {"gamma": 0.5, "decay_steps": 10}, lambda optax: optax.exponential_decay(1.0, 10, 0.5)
        ),
    ],
    "linear": [
        torch_case(
            {"total_steps": 10, "start_factor": 0.2, "final_factor": 0.7},
            lambda o: lr_scheduler.LinearLR(o, 0.2, 0.7, 10),
        ),
    ],
    "warmup": [
        torch_case(
            {"warmup_steps": 8, "start_factor": 0.25},
            lambda o: lr_scheduler.LinearLR(o, 0.25, 1.0, 8),
        ),
        optax_case({"warmup_steps": 8}, lambda optax: optax.linear_schedule(0.0, 1.0, 8)),
    ],
    "cosine": [
        torch_case({"total_steps": 30}, lambda o: lr_scheduler.CosineAnnealingLR(o, 30)),
        torch_case(
            {"total_steps": 30, "warmup_steps": 5, "start_factor": 0.1, "final_factor": 0.2},
            warmed_cosine,
        ),
        optax_case(
            {"total_steps": 20, "warmup_steps": 4, "final_factor": 0.1},
            lambda optax: optax.warmup_cosine_decay_schedule(0.0, 1.0, 4, 20, 0.1),
        ),
        torch_case(
            {"total_steps": 99, "restart_every": 4, "restart_growth": 2, "final_factor": 0.1},
            lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4, 2, eta_min=0.1),
        ),
        torch_case(
            {"total_steps": 99, "restart_every": 7},
            lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 7),
        ),
    ],
    "one_cycle": [
        torch_case({"total_steps": STEPS + 1}, one_cycle()),
        torch_case(
            {
                "total_steps": STEPS + 1,
                "rising_share": 0.4,
                "start_divisor": 5.0,
                "final_divisor": 10.0,
                "shape": "linear",
                "three_phases": True,
            },
            one_cycle(
                pct_start=0.4,
                div_factor=5.0,
                final_div_factor=10.0,
                anneal_strategy="linear",
                three_phase=True,
            ),
        ),
    ],
    "polynomial": [
        torch_case(
            {"total_steps": 20, "power": 2.0}, lambda o: lr_scheduler.PolynomialLR(o, 20, 2.0)
        ),
        optax_case(
            {"total_steps": 20, "power": 3.0, "final_factor": 0.2},
            lambda optax: optax.polynomial_schedule(1.0, 0.2, 3.0, 20),
        ),
    ],
    "inverse_sqrt": [
        (
            {"warmup_steps": 9},  # the paper's formula, over its greatest value
            lambda: [min(n**-0.5, n * 9**-1.5) / 9**-0.5 for n in range(1, STEPS + 1)],
        ),
    ],
    "plateau": [({}, lambda: [1.0] * STEPS)],
    "chained": [
        torch_case(
            {
                "parts": [
                    ({"type": "warmup", "warmup_steps": 4, "start_factor": 0.25}, 4),
                    (schedules.Step(step_size=3, gamma=0.5), 6),
                ]
            },
            chain,
        ),
    ],
}
NAMES = [entry.name.partition("/")[2] for entry in available("schedules")]


def test_every_schedule_has_a_reference() -> None:
    assert sorted(CASES) == NAMES


@pytest.mark.parametrize(
    ("name", "case"), [(name, at) for name in NAMES for at in range(len(CASES.get(name, [])))]
)
def test_equals_reference(name: str, case: int) -> None:
    options, reference = CASES[name][case]
    schedule = create(f"schedules/{name}", **options)
    mine = [schedule(step) for step in range(STEPS)]
    assert all(type(factor) is float for factor in mine)
    assert mine == pytest.approx(reference(), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_configs_and_state(name: str) -> None:
    schedule = create(f"schedules/{name}", **CASES[name][-1][0])
    again = Config.from_yaml(schedule.config.to_yaml()).create()
    again.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    assert [again(step) for step in range(STEPS)] == [schedule(step) for step in range(STEPS)]
    assert type(schedule).__name__ in repr(schedule)
    with pytest.raises(ArgumentError, match="-1"):
        schedule(-1)


@pytest.mark.parametrize(
    "name", ["linear", "cosine", "one_cycle", "polynomial"], ids=lambda name: name
)
def test_stays_at_its_end(name: str) -> None:
    schedule = create(f"schedules/{name}", total_steps=10)
    assert schedule(11) == schedule(1000)
    assert schedule(1000) < 0.01


VALUES = [
    5.0,
    4.0,
    4.0,
    3.9999,
    4.1,
    4.2,
    4.0,
    4.0,
    3.0,
    float("nan"),
    3.5,
    3.5,
    3.5,
    -1.0,
    -1.00005,
]
VALUES += [-1.0] * 12


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"patience": 2}, {"patience": 2}),
        (
            {"factor": 0.5, "patience": 0, "cooldown": 2, "least_factor": 0.2},
            {"factor": 0.5, "patience": 0, "cooldown": 2, "min_lr": 0.2},
        ),
        ({"patience": 1, "mode": "max"}, {"patience": 1, "mode": "max"}),
        (
            {"patience": 1, "threshold": 0.3, "threshold_mode": "absolute"},
            {"patience": 1, "threshold": 0.3, "threshold_mode": "abs"},
        ),
    ],
)
def test_plateau_is_torchs(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    values = [abs(value) for value in VALUES]  # below zero torch's relative threshold turns round
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    reference = lr_scheduler.ReduceLROnPlateau(optimizer, eps=0.0, **theirs)
    schedule = Plateau(**ours)
    for at, value in enumerate(values):
        reference.step(value)
        schedule.observe(value)
        assert schedule(at) == pytest.approx(optimizer.param_groups[0]["lr"]), at
    assert schedule(0) < 1.0


def test_plateau_below_zero() -> None:
    """A lower value is better, also if negative."""
    schedule = Plateau(patience=0, threshold=0.1)
    for value in [-1.0, -1.2, -1.5]:
        schedule.observe(value)
    assert schedule(0) == 1.0
    schedule.observe(-1.55)
    assert schedule(0) == pytest.approx(0.1)


def test_plateau_resumes() -> None:
    whole, first = Plateau(patience=1, cooldown=1), Plateau(patience=1, cooldown=1)
    for value in VALUES[:7]:
        whole.observe(value)
        first.observe(value)
    second = Plateau(patience=1, cooldown=1)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for value in VALUES[7:]:
        whole.observe(value)
        second.observe(value)
        assert second(0) == whole(0)


def test_chained_tells_its_parts() -> None:
    schedule = Chained([(schedules.Warmup(2), 2), (Plateau(factor=0.5, patience=0), 10)])
    for value in [1.0, 1.0]:
        schedule.observe(value)
    assert [schedule(step) for step in (1, 2)] == [0.5, 0.5]
    again = Chained([(schedules.Warmup(2), 2), (Plateau(factor=0.5, patience=0), 10)])
    assert again.load_state_dict(schedule.state_dict())(5) == 0.5
    with pytest.raises(ArgumentError, match="2 schedules, the state has 1"):
        again.load_state_dict({"parts": [{}]})


def test_get() -> None:
    assert schedules.get("constant")(3) == 1.0
    assert schedules.get(lambda step: 0.5)(3) == 0.5
    assert schedules.get(schedules.Linear(4).config)(2) == 0.5


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("step", {}, "step_size or milestones"),
        ("step", {"step_size": 2, "milestones": (3,)}, "step_size or milestones"),
        ("cosine", {"total_steps": 5, "warmup_steps": 5}, "more than warmup_steps"),
        ("linear", {"total_steps": 0}, "total_steps"),
        ("plateau", {"factor": 1.0}, "factor"),
        ("plateau", {"mode": "least"}, "mode"),
        ("chained", {"parts": []}, "parts"),
        ("chained", {"parts": [("nothing", 3)]}, "nothing"),
    ],
)
def test_bad_arguments(name: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        create(f"schedules/{name}", **options)


def test_one_cycle_peaks_at_one() -> None:
    schedule = schedules.OneCycle(total_steps=100)
    factors = [schedule(step) for step in range(100)]
    assert max(factors) == factors[29] == 1.0
    assert factors[0] == pytest.approx(1 / 25)
    assert math.isclose(factors[99], 1 / 25 / 1e4)
