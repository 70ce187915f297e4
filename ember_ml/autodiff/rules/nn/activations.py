"""VJP rules of activations, gates, softmax and cross-entropy, each a call of an adjoint op."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import unbroadcast
from ember_ml.ops import nn
from ember_ml.ops.nn import adjoints
from ember_ml.ops.nn.classification import class_cross_entropy

vjps(nn.relu, x=lambda g, out, x: g * ops.sign(out))
vjps(nn.silu, x=lambda g, out, x: adjoints.silu_adjoint(g, x))
vjps(
    nn.gelu,
    x=lambda g, out, x, approximate=False: adjoints.gelu_adjoint(g, x, approximate),
)
vjps(nn.glu, x=lambda g, out, x, axis=-1: adjoints.glu_adjoint(g, x, axis))
vjps(nn.swiglu, x=lambda g, out, x, axis=-1: adjoints.swiglu_adjoint(g, x, axis))


@vjp_rule(nn.silu_gate)
def _(g: Tensor, out: Tensor, x: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
    shapes = x.shape, gate.shape
    if shapes[0] != shapes[1]:
        x, gate = ops.broadcast_arrays(x, gate)
    of_x, of_gate = adjoints.silu_gate_adjoint(g, x, gate)
    return unbroadcast(of_x, shapes[0]), unbroadcast(of_gate, shapes[1])


vjps(nn.softmax, x=lambda g, out, x, axis=-1: adjoints.softmax_adjoint(g, out, axis))
vjps(nn.log_softmax, x=lambda g, out, x, axis=-1: adjoints.log_softmax_adjoint(g, out, axis))


@vjp_rule(class_cross_entropy)
def _(
    g: Tensor,
    out: Tensor,
    logits: Tensor,
    targets: Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> tuple[Tensor, None]:
    options = (ignore_index, label_smoothing, axis)
    return adjoints.class_cross_entropy_adjoint(g, logits, targets, *options), None
