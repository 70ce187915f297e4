"""Neural circuit policy that learns to drive, compared with a GRU of the same size.

    python examples/control.py [--backend torch] [--epochs 40] [--seeds 3] [--quick]

A car (a bicycle model with delayed steering) follows winding roads. At irregular times, a camera
measures the offset in the lane, the heading and the curvature ahead, with noise, and drops frames.
The models imitate an expert that knows the true state, then drive alone on unseen roads. The script
prints the imitation error and the driving errors; runs/control/control.png shows the drives, the
wiring and the activity of the neurons.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import ember_ml as ember
from ember_ml import nn, ops
from ember_ml.nn.layers import GRUCell, Recurrent
from ember_ml.nn.models import LiquidModel
from ember_ml.training import Trainer

WHEELBASE, LAG, FULL_LOCK = 2.7, 0.2, 0.5  # m, s, rad
SIGHT, ROADSIDE = 0.6, 2.0  # s the camera looks ahead; offset in m that counts as a crash
TICK = 0.1  # s; the unit of timespans
UNITS = 32
COLORS = {"expert": "0.2", "NCP": "tab:orange", "GRU": "tab:blue"}


class Roads(NamedTuple):
    """Roads with their curvature, speed, frame times and noise."""

    waves: np.ndarray  # (3, roads, 6): amplitude (1/m), frequency (1/m), phase of the curvature
    speed: np.ndarray  # (roads,) in m/s
    spans: np.ndarray  # (roads, frames) in s: time until the next frame
    noise: np.ndarray  # (roads, frames, 3): noise of offset, heading and curvature

    def curvature(self, s: np.ndarray) -> np.ndarray:
        """Return the curvature in 1/m at a distance in m."""
        amplitude, frequency, phase = self.waves
        return (amplitude * np.sin(frequency * s[:, None] + phase)).sum(axis=1)


def make_roads(rng: np.random.Generator, count: int, frames: int, dropped: float = 0.2) -> Roads:
    """Return random roads with a frame every 50 to 150 ms; up to three in a row are dropped."""
    lengths = rng.uniform(40.0, 200.0, (count, 6))
    phases = rng.uniform(0.0, 2 * np.pi, (count, 6))
    waves = np.stack([rng.normal(0.0, 0.008, (count, 6)), 2 * np.pi / lengths, phases])
    spans = rng.uniform(0.05, 0.15, (count, frames, 4))
    gaps = np.cumprod(rng.random((count, frames, 3)) < dropped, axis=2)
    spans = spans[:, :, 0] + (spans[:, :, 1:] * gaps).sum(axis=2)
    noise = rng.normal(0.0, 1.0, (count, frames, 3)) * [0.1, 0.02, 0.003]
    return Roads(waves, rng.uniform(9.0, 15.0, count), spans, noise)


def move(car: np.ndarray, command: np.ndarray, roads: Roads, span: np.ndarray) -> np.ndarray:
    """Return the cars (distance, offset, heading, steering) after holding a command for a time."""
    for _ in range(10):
        s, offset, heading, steering = car
        bend = roads.curvature(s)
        along = roads.speed * np.cos(heading) / np.maximum(1 - offset * bend, 0.2)
        turn = roads.speed * np.tan(steering) / WHEELBASE - bend * along
        lag = (command - steering) / LAG
        car = car + span / 10 * np.stack([along, roads.speed * np.sin(heading), turn, lag])
    return car


def expert(car: np.ndarray, roads: Roads) -> np.ndarray:
    """Return the steering of the Stanley controller, applied to the state after the lag."""
    s, offset, heading, steering = car
    ahead = LAG + TICK / 2
    bend = roads.curvature(s + roads.speed * ahead / 2)
    turn = roads.speed * (np.tan(steering) / WHEELBASE - bend)
    offset = offset + roads.speed * np.sin(heading) * ahead
    wanted = np.arctan(WHEELBASE * roads.curvature(s + roads.speed * ahead))
    steer = wanted - (heading + turn * ahead / 2) - np.arctan(1.5 * offset / roads.speed)
    return np.clip(steer, -FULL_LOCK, FULL_LOCK)


def see(car: np.ndarray, roads: Roads, frame: int) -> np.ndarray:
    """Return the scaled measurements: offset, heading, curvature ahead, speed."""
    bend = roads.curvature(car[0] + roads.speed * SIGHT)
    seen = np.stack([car[1], car[2], bend], axis=1) + roads.noise[:, frame]
    speed = (roads.speed[:, None] - 12.0) / 2.0
    return np.concatenate([seen * [2.0, 10.0, 40.0], speed], axis=1)


def drive(
    roads: Roads, steer: Callable[..., np.ndarray], start: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Drive all roads; return measurements, the expert's steering and the paths."""
    count, frames = roads.spans.shape
    car = np.zeros((4, count))
    car[1] = start * np.linspace(-1.0, 1.0, count)
    seen, wanted, path = [], [], []
    since = np.ones((count, 1))
    for frame in range(frames):
        seen.append(np.concatenate([see(car, roads, frame), since], axis=1).astype("float32"))
        wanted.append(expert(car, roads).astype("float32") / FULL_LOCK)
        path.append(car)
        car = move(car, steer(car, seen[-1], frame), roads, roads.spans[:, frame])
        since = roads.spans[:, frame, None] / TICK
    return np.stack(seen, axis=1), np.stack(wanted, axis=1)[..., None], np.stack(path)


def lesson(seed: int, count: int, frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Return drives of the expert under random disturbances, which demonstrate recovery."""
    rng = np.random.default_rng(seed)
    roads = make_roads(rng, count, frames)
    pushes = rng.normal(0.0, 0.1, (count, -(-frames // 8))).repeat(8, axis=1)
    push = pushes * rng.random((count, 1))
    return drive(roads, lambda car, _, at: expert(car, roads) + push[:, at], start=1.0)[:2]


def inputs(model: Any, seen: Any) -> Any:
    """Return the inputs of a model: the time is a feature for the GRU, but not for the NCP."""
    return seen[..., :-1] if isinstance(model, LiquidModel) else seen


def lessons(model: Any, seen: np.ndarray, wanted: np.ndarray) -> dict[str, np.ndarray]:
    """Return a batch for the trainer: inputs, targets and the model's argument `timespans`."""
    return {"inputs": inputs(model, seen), "timespans": seen[..., -1], "targets": wanted}


def gated_like(model: nn.Module) -> nn.Module:
    """Return the GRU with a linear head whose parameter count is closest to the model's."""
    candidates = [Recurrent(GRUCell(5, size), proj_size=1) for size in range(8, 2 * UNITS)]
    return min(candidates, key=lambda gru: abs(gru.num_parameters() - model.num_parameters()))


def train(model: nn.Module, data: Any, held_out: Any, seed: int, epochs: int) -> list[float]:
    """Train on the expert's drives and return the held-out error after each epoch."""
    trainer = Trainer(
        model,
        "mse",
        optimizer={"type": "adam", "learning_rate": 1e-2},
        schedule="cosine",
        clip_norm=1.0,
        seed=seed,
        progress=False,
    )
    data, held_out = (lessons(model, *each) for each in (data, held_out))
    history = trainer.fit(data, held_out, epochs=epochs, batch_size=16)
    model.eval()
    return history.column("val_loss")


class Pilot:
    """Controller that runs a model step by step, with a state for each car."""

    def __init__(self, model: Any, roads: Roads) -> None:
        self.model, self.state = model, model.initial_state(len(roads.speed))
        self.activity: list[np.ndarray] = []  # (cars, neurons) for each frame

    def __call__(self, car: np.ndarray, seen: np.ndarray, frame: int) -> np.ndarray:
        """Return the steering for the measurements; the true state is not used."""
        x = ops.asarray(seen)
        steering, self.state = self.model.step(inputs(self.model, x), self.state, x[:, -1:])
        self.activity.append(self.state.numpy())
        return np.clip(steering.numpy()[:, 0], -1.0, 1.0) * FULL_LOCK


def judge(path: np.ndarray) -> tuple[float, float]:
    """Return the mean absolute offset (ROADSIDE after a crash) and the fraction of crashed cars."""
    offsets = np.abs(path[:, 1])
    crashed = np.maximum.accumulate(offsets > ROADSIDE, axis=0)
    return float(np.where(crashed, ROADSIDE, offsets).mean()), float(crashed[-1].mean())


def on_map(roads: Roads, at: int, s: np.ndarray, offset: Any) -> np.ndarray:
    """Return map coordinates of positions on a road, with offsets enlarged 20 times."""
    ends = np.arange(0.0, s.max() + 0.5, 0.5)
    bends = [roads.curvature(np.full(len(roads.speed), end))[at] for end in ends]
    heading = np.cumsum(bends) * ends[1]
    middle = np.cumsum([np.cos(heading), np.sin(heading)], axis=1) * ends[1]
    x, y, angle = (np.interp(s, ends, line) for line in (*middle, heading))
    return np.stack([x - 20 * offset * np.sin(angle), y + 20 * offset * np.cos(angle)])


def draw(roads: Roads, paths: dict, curves: dict, ncp: Pilot, file: Path) -> None:
    """Plot drives on the most winding road, learning curves, wiring and neuron activity."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    (road, curve), (wires, neurons) = figure.subplots(2, 2)
    at = int(np.abs(roads.waves[0]).sum(axis=1).argmax())
    for side in (-0.5, 0.5):
        road.plot(*on_map(roads, at, paths["expert"][:, 0, at], side), color="0.8", lw=1)
    for name, path in paths.items():
        line = path[np.maximum.accumulate(np.abs(path[:, 1, at])) <= ROADSIDE, :, at]
        road.plot(*on_map(roads, at, line[:, 0], line[:, 1]), color=COLORS[name], lw=1, label=name)
    for name, lines in curves.items():
        for at, line in enumerate(lines):
            curve.semilogy(line, color=COLORS[name], lw=1, label=None if at else name)
    with rc_context({"legend.fontsize": 7}):
        ncp.model.circuit.cells[0].wiring.draw(wires)
    image = neurons.imshow(np.array(ncp.activity)[:, at].T, aspect="auto", cmap="coolwarm")
    figure.colorbar(image, ax=neurons)
    road.set(title="unseen road; gray: 0.5 m offset, enlarged 20 times", xlabel="m")
    road.set_aspect("equal", adjustable="datalim")
    curve.set(title="imitation error of each seed", xlabel="epoch", ylabel="held-out MSE")
    neurons.set(title="activity of the NCP on that road", xlabel="frame", ylabel="inter to motor")
    road.legend(frameon=False)
    curve.legend(frameon=False)
    figure.savefig(file, dpi=80)


def show(name: str, mse: float, drives: Any) -> None:
    """Print a row of the table."""
    columns = [f"{offset:.3f} m {crashed:7.1%}" for offset, crashed in drives]
    print(f"{name:8}  {mse:12.5f}     " + "          ".join(columns), flush=True)


def compare(options: argparse.Namespace) -> None:
    """Train both models with each seed, evaluate them on unseen roads, and plot the results."""
    count, frames, length = (8, 8, 12) if options.quick else (192, 128, 200)
    data, held_out = lesson(0, count, frames), lesson(1, count // 2, frames)
    tests = [
        make_roads(np.random.default_rng(2), count // 2, length, dropped) for dropped in (0.2, 0.6)
    ]
    driven = [drive(roads, lambda car, *_, r=roads: expert(car, r))[2] for roads in tests]
    paths, curves, found = {"expert": driven[0]}, defaultdict(list), defaultdict(list)
    print("          held-out MSE      offset crashed          with 60 % of the frames dropped")
    show("expert", 0.0, map(judge, driven))
    for seed, name in itertools.product(range(options.seeds), ("NCP", "GRU")):
        ops.random.set_seed(seed)
        model = LiquidModel(4, 1, units=UNITS)
        if name == "GRU":
            model = gated_like(model)
        curves[name].append(train(model, data, held_out, seed, options.epochs))
        pilots = [Pilot(model, roads) for roads in tests]
        driven = [drive(roads, pilot)[2] for roads, pilot in zip(tests, pilots, strict=True)]
        found[name].append([judge(path) for path in driven])
        show(f"{name} {seed}", curves[name][-1][-1], found[name][-1])
        paths[name] = driven[0]
        if name == "NCP":
            circuit = pilots[0]
    for name, drives in found.items():
        show(f"{name} mean", np.mean([curve[-1] for curve in curves[name]]), np.mean(drives, 0))
    print(f"parameters: NCP {circuit.model.num_parameters()}, GRU {model.num_parameters()}")
    draw(tests[0], paths, curves, circuit, options.out / "control.png")


def main(arguments: list[str] | None = None) -> None:
    """Parse the options and run on the selected backend."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default=ember.get_backend(), help="default: the active one")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--out", type=Path, default=Path("runs/control"))
    parser.add_argument("--quick", action="store_true", help="few short roads, two epochs, a seed")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs, options.seeds = 2, 1
    options.out.mkdir(parents=True, exist_ok=True)
    with ember.use_backend(options.backend):
        compare(options)


if __name__ == "__main__":
    main()
