"""Gradients, batching and compilation as torch offers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

ENGINE = "graph"
"""torch keeps the graph itself."""


def leaf(data: Any) -> Any:
    """The value at the root of a new graph, or as a node of the graph it is in."""
    return data.view_as(data) if data.requires_grad else data.detach().requires_grad_()


def detach(data: Any) -> Any:
    """The value without its graph."""
    return data.detach()


def has_graph(data: Any) -> bool:
    """Whether a gradient can flow through the array."""
    return data.requires_grad


def gradient(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    cotangents: Sequence[Any],
    retain: bool = False,
    create: bool = False,
    batched: bool = False,
) -> Sequence[Any]:
    """The gradients of the inputs, None where there is no path."""
    return torch.autograd.grad(
        outputs,
        inputs,
        cotangents,
        retain_graph=retain or create,
        create_graph=create,
        allow_unused=True,
        is_grads_batched=batched,
    )


def vjp(function: Callable[..., Any], primals: Sequence[Any]) -> tuple[Any, Callable[..., Any]]:
    """The outputs, and the function from their cotangents to the gradients."""
    return torch.func.vjp(function, *primals)


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """The outputs and their change along the tangents."""
    return torch.func.jvp(function, tuple(primals), tuple(tangents))


def vmap(function: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
    """The function over a new axis of its arguments."""
    return torch.func.vmap(function, in_axes, out_axes, randomness="different")


def compile(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function compiled."""
    return torch.compile(function, **options)
