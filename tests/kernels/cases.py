"""Table of the kernels: the op that each one serves, a reference and its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

from ember_ml.backend import spiking
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.ops.linear_attention import gated_delta_rule, gated_linear_attention
from ember_ml.backend.torch.ops.nn.classification import cross_entropy
from ember_ml.backend.torch.ops.nn.gating import gated_rms_norm
from ember_ml.backend.torch.ops.nn.spiking import _plain, spiking_scan
from ember_ml.backend.torch.ops.recurrence import linear_recurrence
from ember_ml.backend.torch.ops.selective_scan import selective_scan, selective_scan_with_state
from ember_ml.backend.torch.ops.signal.filtering import causal_conv1d, causal_conv1d_silu

Arrays = list[Any]


class Case(NamedTuple):
    """A kernel and how to call it.

    Attributes:
        kernel: Name of the op of `torch.library` that must run.
        run: Op of the torch backend, which chooses the kernel.
        reference: The same function in plain torch, for float64.
        operands: Function of the length that returns the operands in float64.
        halves: Whether the kernel takes bfloat16.
        grads: Whether the kernel serves gradients.
        higher: Whether second derivatives are tested too.
    """

    kernel: str
    run: Callable[..., Any]
    reference: Callable[..., Any]
    operands: Callable[[int], Arrays]
    halves: bool = True
    grads: bool = True
    higher: bool = True


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


def uniform(*shape: int) -> torch.Tensor:
    return torch.rand(shape, dtype=torch.float64)


def strided(*shape: int) -> torch.Tensor:
    """Return random numbers whose memory is neither contiguous nor in order."""
    return normal(*shape[::-1], 2)[..., 0].permute(*reversed(range(len(shape))))


CASES: dict[str, Case] = {}


def recurrences() -> None:
    def run(reverse: bool, axis: int = 1) -> Callable[..., Any]:
        return lambda a, b, h0=None: linear_recurrence(a, b, h0, axis, reverse)

    def reference(reverse: bool, axis: int = 1) -> Callable[..., Any]:
        def states(a: Any, b: Any, h0: Any = None) -> Any:
            a, b = torch.broadcast_tensors(a, b)
            return kernels.linear_recurrence.reference(a, b, h0, axis, reverse)

        return states

    name = "triton_linear_recurrence"
    CASES["recurrence"] = Case(
        *(name, run(False), reference(False)),
        lambda time: [uniform(2, time, 3), normal(2, time, 3), normal(2, 3)],
    )
    CASES["recurrence reversed, strided, broadcast"] = Case(
        *(name, run(True), reference(True)),
        lambda time: [uniform(1, time, 1), strided(2, time, 3)],
    )
    CASES["recurrence along the last axis"] = Case(
        *(name, run(False, 2), reference(False, 2)),
        lambda time: [uniform(2, 3, time), normal(2, 3, time), normal(2, 3)],
    )


def selective(time: int, channels: int = 5, states: int = 3) -> Arrays:
    pairs = [normal(2, time, states) for _ in range(2)]
    rates = -3.0 * uniform(channels, states)
    return [strided(2, time, channels), uniform(2, time, channels), rates, *pairs, normal(channels)]


def scans() -> None:
    name = "triton_selective_scan"
    plain = kernels.selective_scan.reference
    CASES["selective scan"] = Case(name, selective_scan, lambda *given: plain(*given)[0], selective)
    CASES["selective scan without skip, one example"] = Case(
        *(name, selective_scan, lambda *given: plain(*given)[0]),
        lambda time: [x[:1] if x.ndim == 3 else x for x in selective(time, 1, 1)[:-1]],
    )
    CASES["selective scan with a state"] = Case(
        *(name, selective_scan_with_state, plain),
        lambda time: [*selective(time), normal(2, 5, 3)],
        halves=False,
        grads=False,
        higher=False,
    )


def constant_rest(*given: Any) -> spiking.Operands:
    """Return operands in which the steps left to rest have no gradient, as in the op."""
    operands = spiking.Operands(*given)
    if operands.state.shape[1] < 4:
        return operands
    *rows, rest = operands.state.unbind(1)
    return operands._replace(state=torch.stack([*rows, rest.detach()], 1))


def spikes() -> None:
    for name, names, options in (
        ("LIF", (), spiking.Options()),
        ("synaptic, hard reset", ("alpha",), spiking.Options("hard", 0, "sigmoid", 3.0)),
        ("adaptive, no reset", ("rho",), spiking.Options("none", 0, "triangle", 1.0)),
        ("all, resting", ("alpha", "rho", "mask"), spiking.Options("soft", 2, "fast_sigmoid")),
    ):
        rows = 1 + ("alpha" in names) + ("rho" in names) + (options.refractory > 0)

        def operands(time: int, names: Any = names, rows: int = rows) -> Arrays:
            state = normal(2, rows, 4)
            if rows == 4:
                state[:, -1] = torch.randint(0, 3, (2, 4))
            mask = torch.arange(time) < torch.tensor([[time], [max(1, time - 2)]])
            return [
                *(strided(2, time, 4), state, uniform(4), 0.5 + uniform(4)),
                uniform(4) if "alpha" in names else None,
                *((uniform(4), uniform(4)) if "rho" in names else (None, None)),
                *(None, None, mask if "mask" in names else None),
            ]

        CASES[f"spiking scan: {name}"] = Case(
            "triton_spiking_scan",
            lambda *given, options=options: spiking_scan(*given, **options._asdict()),
            lambda *given, options=options: _plain(constant_rest(*given), options),
            operands,
            halves=False,
        )


def rows() -> None:
    for name, options in (
        ("mean", {}),
        ("smoothed", {"label_smoothing": 0.2, "reduction": "none"}),
        ("sum, ignored", {"ignore_index": 1, "reduction": "sum"}),
    ):
        CASES[f"cross-entropy: {name}"] = Case(
            "triton_cross_entropy",
            lambda x, y, options=options: cross_entropy(x, y, **options),
            lambda x, y, options=options: F.cross_entropy(
                x.flatten(0, 1), y.flatten(), **options
            ).reshape(y.shape if "none" in options.values() else ()),
            lambda classes: [strided(2, 3, classes), torch.randint(0, classes, (2, 3))],
        )
    for first in (False, True):
        CASES[f"gated norm, gate first: {first}"] = Case(
            "triton_gated_rms_norm",
            lambda *given, first=first: gated_rms_norm(*given, eps=1e-5, gate_first=first),
            lambda *given, first=first: kernels.gated_rms_norm.reference(
                *given, *(() if len(given) == 3 else (None,)), 1e-5, first
            ),
            lambda size, first=first: [
                *(strided(3, 2, size), normal(3, 2, size)),
                *(() if first else (normal(size),)),
            ],
        )


def convolutions() -> None:
    for silu, run in ((False, causal_conv1d), (True, causal_conv1d_silu)):
        CASES[f"short convolution, SiLU: {silu}"] = Case(
            "triton_causal_conv1d",
            run,
            lambda x, weight, bias=None, silu=silu: kernels.causal_conv1d.reference(
                x, weight, bias, silu
            ),
            lambda time, silu=silu: [
                *(strided(2, 3, time), normal(3, 4), *((normal(3),) if silu else ())),
            ],
        )


def attentions() -> None:
    for name, batch, features, strict in (
        ("feature decay", 1, 3, False),
        ("feature decay, strict", 1, 3, True),
        ("head decay", 2, 1, False),
        ("no decay", 1, 0, False),
    ):
        bonus = torch.ones(1, 3, dtype=torch.float64) if strict else None

        def attend(*given: Any, bonus: Any = bonus) -> Any:
            decay = given[3] if len(given) > 3 else None
            bonus = None if bonus is None else 0.0 * bonus.to(given[0].dtype)
            return gated_linear_attention(*given[:3], decay, bonus)

        CASES[f"linear attention: {name}"] = Case(
            "triton_gated_linear_attention",
            attend,
            lambda *given, strict=strict: kernels.gated_linear_attention.reference(
                *given, *(() if len(given) > 3 else (None,)), strict
            ),
            lambda time, batch=batch, features=features: [
                *(normal(batch, 1, time, 3), strided(batch, 1, time, 3), normal(batch, 1, time, 5)),
                *((-uniform(1, 1, time, features),) if features else ()),
            ],
        )


def delta_rules() -> None:
    def operands(time: int, gated: bool) -> Arrays:
        keys = strided(1, 1, time, 3)
        keys = keys / keys.norm(dim=-1, keepdim=True)
        given = [normal(1, 1, time, 3), keys, normal(1, 1, time, 5), uniform(1, 1, time, 1)]
        return [*given, -uniform(1, 1, time, 1)] if gated else given

    for gated in (False, True):
        CASES[f"delta rule, decay: {gated}"] = Case(
            "triton_gated_delta_rule",
            gated_delta_rule,
            lambda *given: kernels.gated_delta_rule.reference(
                *given, *(() if len(given) > 4 else (None,))
            ),
            lambda time, gated=gated: operands(time, gated),
        )


for fill in (recurrences, scans, spikes, rows, convolutions, attentions, delta_rules):
    fill()
