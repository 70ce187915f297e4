"""VJP rules of activations and softmax, where a formula is faster than the composite."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.autodiff.rules import vjps
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
vjps(nn.softmax, x=lambda g, out, x, axis=-1: adjoints.softmax_adjoint(g, out, axis))
vjps(nn.log_softmax, x=lambda g, out, x, axis=-1: adjoints.log_softmax_adjoint(g, out, axis))
vjps(
    class_cross_entropy,
    logits=lambda g, out, logits, targets, *options, **named: adjoints.class_cross_entropy_adjoint(
        g, logits, targets, *options, **named
    ),
)
