"""Control of gradient flow."""

import numpy as np


def alias(x):
    return np.asarray(x).view()


stop_gradient = alias
