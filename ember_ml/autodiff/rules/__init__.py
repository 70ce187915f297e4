"""VJP rules: the gradients of ops, written in ops.

The rules differentiate the backends without autodiff, and the ops that a framework's own autodiff
does not cover. The files mirror `ember_ml/ops`; small ones are merged.

A rule is a function of the result's gradient `g`, the result `out`, and the op's own parameters
with the same names and defaults. It returns the gradient of one operand, or of all of them:

- `vjps(op, x=..., y=...)` declares one function per operand.
- `arithmetic_vjps` does the same for rules that use Python's operators only.
- `@vjp_rule(op)` declares one function that returns the gradients of all operands.

The caller sums a gradient over broadcast axes and drops the imaginary part of a real operand's
gradient, so a rule may return a broadcast or complex result.

Complex gradients follow TensorFlow and PyTorch: the gradient of z**2 is 2 conj(z), the direction
of steepest ascent of a real loss.
"""

from ember_ml.autodiff.rules.registry import VJPRule as VJPRule
from ember_ml.autodiff.rules.registry import arithmetic_vjps as arithmetic_vjps
from ember_ml.autodiff.rules.registry import load as load
from ember_ml.autodiff.rules.registry import vjp_rule as vjp_rule
from ember_ml.autodiff.rules.registry import vjps as vjps
