"""Random numbers: distributions, generators and the seed.

Without `seed` the backend's own generator draws: fast, traceable by its compiler, seeded by
`set_seed`, and different on each backend. With `seed`, an integer or a `Generator`, the host draws
and the numbers are bit-identical on every backend.
"""

from __future__ import annotations

from ember_ml._core import namespaces as _namespaces
from ember_ml.ops.random.continuous import beta as beta
from ember_ml.ops.random.continuous import cauchy as cauchy
from ember_ml.ops.random.continuous import exponential as exponential
from ember_ml.ops.random.continuous import gamma as gamma
from ember_ml.ops.random.continuous import gumbel as gumbel
from ember_ml.ops.random.continuous import laplace as laplace
from ember_ml.ops.random.continuous import normal as normal
from ember_ml.ops.random.continuous import orthogonal as orthogonal
from ember_ml.ops.random.continuous import rand as rand
from ember_ml.ops.random.continuous import randn as randn
from ember_ml.ops.random.continuous import random_normal as random_normal
from ember_ml.ops.random.continuous import random_uniform as random_uniform
from ember_ml.ops.random.continuous import truncated_normal as truncated_normal
from ember_ml.ops.random.continuous import uniform as uniform
from ember_ml.ops.random.discrete import bernoulli as bernoulli
from ember_ml.ops.random.discrete import categorical as categorical
from ember_ml.ops.random.discrete import choice as choice
from ember_ml.ops.random.discrete import permutation as permutation
from ember_ml.ops.random.discrete import poisson as poisson
from ember_ml.ops.random.discrete import randint as randint
from ember_ml.ops.random.discrete import shuffle as shuffle
from ember_ml.ops.random.generator import Generator as Generator
from ember_ml.ops.random.generator import default_generator as default_generator
from ember_ml.ops.random.generator import get_state as get_state
from ember_ml.ops.random.generator import set_seed as set_seed
from ember_ml.ops.random.generator import set_state as set_state

__dir__ = _namespaces.without_files(__name__)
