"""Collectives of each backend that has them, between real processes."""

from __future__ import annotations

import pytest

from ember_ml.backend import available
from ember_ml.distributed.world import World, capabilities

COMMUNICATING = [name for name in available() if capabilities(name)]


def collectives() -> dict:
    """Run each collective in this process, and return what it has computed."""
    from ember_ml import backend, ops
    from ember_ml.autodiff import GradientTape, value_and_grad
    from ember_ml.distributed import DistributedError
    from ember_ml.distributed.mesh import Mesh
    from ember_ml.nn import tensor

    world = World(Mesh(), backend.get_backend())
    group = world.group("data")
    rank = float(group.rank)
    x = tensor.array([rank, 10.0])

    def loss(x):
        return ops.sum(group.reduce(group.spread(x) * (rank + 1.0)) * tensor.array([1.0, 2.0]))

    def gathered(x):
        return ops.sum(group.gather(x, 0) * tensor.array([1.0, 2.0, 3.0, 4.0]))

    try:
        with GradientTape() as tape:
            tape.watch(x)
            group.spread(x)
        problem = ""
    except DistributedError as error:
        problem = str(error)
    total, slope = value_and_grad(loss)(x)
    joined, part = value_and_grad(gathered)(x)
    return {
        "sum": group.all_sum(x).tolist(),
        "parts": [part.tolist() for part in group.all_gather(x)],
        "first": group.broadcast(x).tolist(),
        "means": [g.tolist() for g in group.mean_gradients([x, x + 1.0])],
        "numbers": group.sums([rank, 1.0]),
        "data": group.exchange({"rank": rank, "text": "ü" * (1 + group.rank)}),
        "loss": [float(total), slope.tolist()],
        "gathered": [float(joined), part.tolist()],
        "problem": problem,
    }


@pytest.mark.parametrize("backend", COMMUNICATING)
def test_collectives(pools, backend: str) -> None:
    results = pools(2, backend).run("tests.distributed.test_world:collectives")
    for rank, result in enumerate(results):
        assert result["sum"] == [1.0, 20.0]
        assert "GradientTape does not record" in result["problem"]
        assert result["parts"] == [[0.0, 10.0], [1.0, 10.0]]
        assert result["first"] == [0.0, 10.0]
        assert result["means"] == [[0.5, 10.0], [1.5, 11.0]]
        assert result["numbers"] == [1.0, 2.0]
        assert result["data"] == [{"rank": 0.0, "text": "ü"}, {"rank": 1.0, "text": "üü"}]
        # the sum over ranks of x * (rank + 1): [2, 30]; gradients are summed over both ranks
        assert result["loss"] == [2.0 + 2.0 * 30.0, [3.0, 6.0]]
        assert result["gathered"] == [20.0 + 3.0 + 40.0, [[1.0, 2.0], [3.0, 4.0]][rank]]
