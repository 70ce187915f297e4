"""Gradient rules: what an op hands back to its operands, written in ops.

They serve the backends without gradients of their own, and fill gaps of the others. A rule is a
function of the result's gradient g, the result, and the op's own parameters, under the same names
and defaults. It gives the gradient of one operand; broadcasting is undone afterwards, so that the
rule may leave its result in the broadcast shape, and a complex gradient of a real operand loses its
imaginary part.

`by_operand` enters a function for each operand, `arithmetic` the same for the rules that Python's
operators are enough for, and `@rule` one function that gives the gradients of all operands.

The convention for complex numbers is TensorFlow's and PyTorch's: the gradient of z**2 is 2 conj(z),
the direction in which a real loss grows.
"""

from ember_ml.autodiff.rules._registry import Vjps as Vjps
from ember_ml.autodiff.rules._registry import arithmetic as arithmetic
from ember_ml.autodiff.rules._registry import by_operand as by_operand
from ember_ml.autodiff.rules._registry import load as load
from ember_ml.autodiff.rules._registry import rule as rule
