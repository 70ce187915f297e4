"""Ops of the framework without a derivative: an error names the op and the nesting."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ember_ml import ops, use_backend
from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff import grad, hessian, jvp
from ember_ml.nn import tensor

LENGTHS = torch.tensor([6]), torch.tensor([2])


def loss(x: EmberTensor) -> EmberTensor:
    """Return torch's CTC loss, whose gradient torch cannot differentiate."""
    targets = torch.tensor([[1, 2]])
    out = torch.nn.functional.ctc_loss(x.native.log_softmax(-1), targets, *LENGTHS)
    return tensor.convert_to_tensor(out)


def slope(x: EmberTensor) -> EmberTensor:
    return jvp(loss, (x,), (ops.ones_like(x),))[1]


NESTINGS = {
    "grad": grad(lambda x: ops.sum(grad(loss)(x) ** 2)),
    "hessian": hessian(loss),
    "jvp": slope,
    "grad: jvp": grad(slope),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", NESTINGS)
def test_the_error_names_the_op_and_the_nesting(name: str) -> None:
    with use_backend("torch"):
        x = tensor.array(np.random.default_rng(0).standard_normal((6, 1, 4)))
        assert np.all(np.isfinite(grad(loss)(x).numpy()))
        with pytest.raises(UnsupportedOpError, match=r".*_ctc_loss_backward") as caught:
            NESTINGS[name](x)
    transforms = str(caught.value).split(": aten")[0]
    assert name.split(": ")[0] in transforms or "jacobian" in transforms
