"""The generators: distributions, seeds, states, threads, bad arguments."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from scipy import stats

from ember_ml import ops, use_backend
from ember_ml._core import runtime
from ember_ml._core.random_stream import below
from ember_ml.backend import BACKENDS, available
from ember_ml.ops import random

COUNT = 20_000
UNLIKELY = 1e-6
HALVES = ("float16", "bfloat16")

CONTINUOUS = [
    ("normal", (0.5, 2.0), stats.norm(0.5, 2.0)),
    ("uniform", (-1.0, 3.0), stats.uniform(-1.0, 4.0)),
    ("truncated_normal", (1.0, 2.0), stats.truncnorm(-2, 2, 1.0, 2.0)),
    ("truncated_normal", (0.0, 1.0, -0.25, 3.0), stats.truncnorm(-0.25, 3.0)),
    ("truncated_normal", (0.0, 1.0, 4.0, 6.0), stats.truncnorm(4.0, 6.0)),
    ("truncated_normal", (0.0, 1.0, -float("inf"), -3.0), stats.truncnorm(-np.inf, -3.0)),
    ("exponential", (2.0,), stats.expon(0, 0.5)),
    ("laplace", (1.0, 2.0), stats.laplace(1.0, 2.0)),
    ("gumbel", (1.0, 2.0), stats.gumbel_r(1.0, 2.0)),
    ("cauchy", (1.0, 2.0), stats.cauchy(1.0, 2.0)),
    ("gamma", (0.5, 2.0), stats.gamma(0.5, 0, 0.5)),
    ("gamma", (3.0,), stats.gamma(3.0)),
    ("beta", (0.5, 2.0), stats.beta(0.5, 2.0)),
]
DRAWS = {
    "normal": lambda **o: random.normal((3, 4), 1.0, 2.0, **o),
    "uniform": lambda **o: random.uniform((3, 4), -2.0, 5.0, **o),
    "truncated_normal": lambda **o: random.truncated_normal((3, 4), 1.0, 0.3, **o),
    "exponential": lambda **o: random.exponential((3, 4), 3.0, **o),
    "laplace": lambda **o: random.laplace((3, 4), 1.0, 0.3, **o),
    "gumbel": lambda **o: random.gumbel((3, 4), **o),
    "cauchy": lambda **o: random.cauchy((3, 4), **o),
    "gamma": lambda **o: random.gamma((3, 4), 2.0, 3.0, **o),
    "beta": lambda **o: random.beta((3, 4), 2.0, 3.0, **o),
    "orthogonal": lambda **o: random.orthogonal((3, 4), **o),
    "randint": lambda **o: random.randint(-50, 50, (3, 4), **o),
    "bernoulli": lambda **o: random.bernoulli(0.3, (30,), **o),
    "bernoulli of a tensor": lambda **o: random.bernoulli(ops.array([0.1, 0.5, 0.9]), (9, 3), **o),
    "categorical": lambda **o: random.categorical(ops.array([[0.0, 1.0, 2.0]]), 20, **o),
    "poisson": lambda **o: random.poisson(4.0, (20,), **o),
    "poisson of a tensor": lambda **o: random.poisson(ops.array([1.0, 50.0]), (9, 2), **o),
    "permutation": lambda **o: random.permutation(20, **o),
    "shuffle": lambda **o: random.shuffle(ops.arange(20), **o),
    "choice": lambda **o: random.choice(50, (9,), **o),
    "choice by weight": lambda **o: random.choice(4, (20,), p=[0.1, 0.2, 0.3, 0.4], **o),
    "choice without replacement": lambda **o: random.choice(50, (9,), replace=False, **o),
    "dropout": lambda **o: ops.dropout(ops.ones((30,)), 0.5, **o),
}


@pytest.fixture(autouse=True)
def seeded():
    random.set_seed(20240607)


@pytest.fixture(params=[None, 11], ids=["native", "host"])
def seed(request):
    return request.param


def values(tensor):
    return runtime.LOADED[tensor.backend].to_portable(tensor.native)


@pytest.mark.parametrize(("name", "parameters", "distribution"), CONTINUOUS)
def test_continuous_distribution(backend, seed, name, parameters, distribution):
    drawn = values(getattr(random, name)((COUNT // 4, 4), *parameters, seed=seed))
    assert drawn.dtype == np.float32
    assert stats.kstest(drawn.ravel().astype(np.float64), distribution.cdf).pvalue > UNLIKELY
    columns = np.corrcoef(stats.rankdata(drawn, axis=0).T)
    assert np.abs(columns - np.eye(4)).max() < 0.08


def test_moments_of_normal(backend, seed):
    drawn = values(random.normal((COUNT,), -3.0, 0.5, seed=seed)).astype(np.float64)
    assert abs(drawn.mean() + 3) < 5 * 0.5 / COUNT**0.5
    assert abs(drawn.std() - 0.5) < 0.02
    assert abs(stats.skew(drawn)) < 0.1
    assert abs(stats.kurtosis(drawn)) < 0.2


def frequencies(drawn, count):
    return np.bincount(np.asarray(drawn).ravel(), minlength=count)


def test_discrete_distributions(backend, seed):
    dice = values(random.randint(1, 7, (6000,), seed=seed)) - 1
    assert stats.chisquare(frequencies(dice, 6)).pvalue > UNLIKELY
    heads = values(random.bernoulli(0.3, (6000,), seed=seed))
    assert heads.dtype == np.bool_
    assert stats.binomtest(int(heads.sum()), 6000, 0.3).pvalue > UNLIKELY
    logits = ops.array([np.log([0.1, 0.2, 0.7]).tolist(), [*np.log([0.6, 0.4]).tolist(), -np.inf]])
    classes = values(random.categorical(logits, 3000, seed=seed))
    assert classes.shape == (2, 3000)
    assert stats.chisquare(frequencies(classes[0], 3), [300, 600, 2100]).pvalue > UNLIKELY
    assert stats.chisquare(frequencies(classes[1], 3)[:2], [1800, 1200]).pvalue > UNLIKELY
    assert (classes[1] < 2).all()
    counts = values(random.poisson(3.0, (6000,), seed=seed))
    expected = 6000 * stats.poisson(3.0).pmf(np.arange(7))
    seen = frequencies(np.minimum(counts, 7), 8)
    assert stats.chisquare(seen, [*expected, 6000 - expected.sum()]).pvalue > UNLIKELY
    chosen = values(random.choice(4, (6000,), p=[1, 2, 0, 1], seed=seed))
    assert stats.chisquare(frequencies(chosen, 4)[[0, 1, 3]], [1500, 3000, 1500]).pvalue > UNLIKELY


def test_integers_beyond_the_floats(backend, seed):
    wide = values(random.randint(0, 2**62, (2000,), seed=seed))
    assert stats.kstest(wide / 2**62, "uniform").pvalue > UNLIKELY
    assert 800 < (wide % 2).sum() < 1200
    assert np.unique(wide).size == 2000
    whole = values(random.randint(-(2**63), 2**63 - 1, (2000,), seed=seed))
    assert 800 < (whole < 0).sum() < 1200
    small = random.randint(-128, 128, (4000,), dtype="int8", seed=seed)
    assert small.dtype == "int8"
    assert np.unique(values(small)).size == 256


def test_categorical_axes(backend, seed):
    logits = ops.zeros((2, 3, 4))
    assert random.categorical(logits, seed=seed).shape == (2, 3)
    assert random.categorical(logits, axis=0, seed=seed).shape == (3, 4)
    assert random.categorical(logits, 5, axis=1, seed=seed).shape == (2, 4, 5)
    assert random.categorical(logits, seed=seed).dtype == "int64"
    assert random.categorical(ops.zeros((0, 3)), seed=seed).shape == (0,)


@pytest.mark.parametrize("name", ["normal", "uniform", "truncated_normal", "gumbel", "exponential"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), 5, (2, 3), (2, 0, 3)])
def test_shapes_and_dtypes(backend, seed, name, dtype, shape):
    if dtype not in runtime.load(backend).DTYPES:
        with pytest.raises(TypeError, match=f"the {backend} backend has no {dtype}"):
            getattr(random, name)(shape, dtype=dtype, seed=seed)
        return
    drawn = getattr(random, name)(shape, dtype=dtype, seed=seed)
    assert drawn.shape == ((shape,) if shape == 5 else shape)
    assert drawn.dtype == dtype
    assert drawn.backend == backend


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-3.0, -2.0), (1.0, 1.25), (-0.5, 0.0)])
def test_uniform_stays_below_high(backend, seed, bounds):
    for dtype in ("float32", *HALVES):
        if dtype in runtime.load(backend).DTYPES:
            drawn = values(random.uniform((COUNT,), *bounds, dtype=dtype, seed=seed))
            assert bounds[0] <= drawn.min()
            assert drawn.max() < bounds[1]


@pytest.mark.parametrize("high", [1.0, -1.0, 0.1, 3.7, -3.7, 0.25, -4.0, 1e-3, 65504.0])
def test_below(high):
    for dtype in ("float16", "float32", "float64"):
        kind = np.dtype(dtype).type
        assert below(high, dtype) < high
        assert float(np.nextafter(kind(below(high, dtype)), kind(np.inf))) >= high
    half = np.float32(below(high, "bfloat16"))
    assert half < high
    assert half.view(np.uint32) & 0xFFFF == 0
    after = torch.nextafter(torch.tensor(half).bfloat16(), torch.tensor(np.inf).bfloat16())
    assert float(after) >= high
    assert -1e-4 < below(0.0, "float16") < 0


def test_truncated_normal_stays_inside(backend, seed):
    for lower, upper in ((-2.0, 2.0), (-0.1, 0.1), (7.0, 8.0)):
        drawn = values(random.truncated_normal((5000,), 1.0, 2.0, lower, upper, seed=seed))
        assert drawn.min() >= np.float32(1 + 2 * lower)
        assert drawn.max() <= np.float32(1 + 2 * upper)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (4, 2, 3), (1, 1), (0, 3)])
def test_orthogonal(backend, seed, shape):
    drawn = values(random.orthogonal(shape, 1.5, seed=seed))
    assert drawn.shape == shape
    flat = drawn.reshape(shape[0], int(np.prod(shape[1:])))
    short = flat if flat.shape[0] <= flat.shape[1] else flat.T
    np.testing.assert_allclose(short @ short.T, 2.25 * np.eye(len(short)), atol=1e-5)


def test_permutations(backend, seed):
    table = ops.reshape(ops.arange(60), (20, 3))
    mixed = values(random.shuffle(table, seed=seed))
    assert not np.array_equal(mixed, values(table))
    np.testing.assert_array_equal(mixed[np.argsort(mixed[:, 0])], values(table))
    columns = values(random.permutation(table, axis=-1, seed=seed))
    np.testing.assert_array_equal(np.sort(columns, axis=1), values(table))
    assert random.permutation(0, seed=seed).shape == (0,)


def test_choice(backend, seed):
    table = ops.reshape(ops.arange(20), (4, 5))
    assert random.choice(table, (2, 3), axis=1, seed=seed).shape == (4, 2, 3)
    assert random.choice(table, seed=seed).shape == (5,)
    once = values(random.choice(9, (3, 3), replace=False, seed=seed))
    np.testing.assert_array_equal(np.sort(once.ravel()), np.arange(9))
    likely = values(random.choice(5, 2, replace=False, p=[0, 1, 0, 0, 1], seed=seed))
    assert set(likely.tolist()) == {1, 4}
    assert random.choice(3, 0, seed=seed).shape == (0,)


@pytest.mark.parametrize("name", DRAWS)
def test_set_seed_repeats_and_draws_differ(backend, name):
    draw = DRAWS[name]
    random.set_seed(5)
    first, second = values(draw()), values(draw())
    random.set_seed(5)
    again = values(draw())
    random.set_seed(6)
    other = values(draw())
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_bits_on_every_backend(name):
    def drawn(make_seed):
        results = []
        for backend in available():
            with use_backend(backend):
                stream = make_seed()
                results.append([values(DRAWS[name](seed=stream)) for _ in range(2)])
        return results

    for first, second in drawn(lambda: 7):
        np.testing.assert_array_equal(first, second)
    reference, *others = drawn(lambda: random.Generator(7))
    assert not np.array_equal(*reference)
    for other in others:
        for ours, theirs in zip(reference, other, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("dtype", [*HALVES, "float64"])
def test_bits_agree_in_other_dtypes(dtype):
    results = []
    for backend in available():
        if dtype in runtime.load(backend).DTYPES:
            with use_backend(backend):
                results.append(values(random.normal((99,), seed=3, dtype=dtype)).tobytes())
    assert len(set(results)) == 1


def test_generator_methods_are_the_functions(backend):
    generator, twin = random.Generator(3), random.Generator(3)
    calls = {
        "normal": ((2, 3),),
        "uniform": ((2, 3), -1.0, 1.0),
        "truncated_normal": (5,),
        "exponential": (5, 2.0),
        "laplace": (5,),
        "gumbel": (5,),
        "cauchy": (5,),
        "gamma": (5, 2.0),
        "beta": (5, 2.0, 2.0),
        "orthogonal": ((3, 3),),
        "randint": (0, 99, (5,)),
        "bernoulli": (0.5, (9,)),
        "categorical": (ops.zeros((3, 4)),),
        "poisson": (3.0, (5,)),
        "permutation": (9,),
        "shuffle": (ops.arange(9),),
        "choice": (9, (3,)),
    }
    methods = {name for name in vars(random.Generator) if not name.startswith("_")} - {
        "spawn",
        "state",
        "stream",
    }
    assert methods == set(calls)
    for name, args in calls.items():
        ours, theirs = getattr(generator, name)(*args), getattr(random, name)(*args, seed=twin)
        np.testing.assert_array_equal(values(ours), values(theirs))


def test_generator_state_and_spawn():
    generator = random.Generator(3)
    state = json.loads(json.dumps(generator.state))
    first = [values(child.normal((4,))) for child in generator.spawn(3)]
    after = values(generator.normal((4,)))
    generator.state = state
    again = [values(child.normal((4,))) for child in generator.spawn(3)]
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(after, values(generator.normal((4,))))
    assert np.unique(np.array([*first, after])).size == 16
    with pytest.raises(ValueError, match="state"):
        generator.state = {"bit_generator": "MT19937"}


def test_state_of_everything_survives_json(backend):
    for draw in DRAWS.values():
        draw()
    state = json.loads(json.dumps(random.get_state()))
    first = [values(DRAWS[name]()) for name in DRAWS]
    initial = values(random.default_generator().normal((4,)))
    random.set_seed(1)
    random.set_state(state)
    for before, name in zip(first, DRAWS, strict=True):
        np.testing.assert_array_equal(before, values(DRAWS[name]()))
    np.testing.assert_array_equal(initial, values(random.default_generator().normal((4,))))


SCRIPT = """
import importlib, json, os, sys
from ember_ml import use_backend
from ember_ml.ops import random
importlib.import_module(sys.argv[1])  # the framework, for both processes; not the backend
for state in json.loads(sys.argv[2]):
    if os.fork():
        os.wait()
        continue
    random.set_seed(9) if state is None else random.set_state(state)
    with use_backend(sys.argv[1]):
        print(json.dumps(random.normal((3,)).tolist()), flush=True)
    os._exit(0)
"""


def test_a_backend_loaded_later_is_seeded_too(backend):
    random.set_seed(9)
    first = values(random.normal((3,))).tolist()
    state = random.get_state()
    second = values(random.normal((3,))).tolist()
    program = [sys.executable, "-c", SCRIPT, backend, json.dumps([None, state])]
    out = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    assert [json.loads(line) for line in out.splitlines()] == [first, second]


def test_set_seed_seeds_the_default_generator():
    random.set_seed(4)
    first = values(random.default_generator().normal((4,)))
    np.testing.assert_array_equal(first, values(random.normal((4,), seed=4)))


def test_threads_with_their_own_generators(backend):
    def work(seed, results):
        with use_backend(backend):
            generator = random.Generator(seed)
            results[seed] = [values(generator.normal((50,))) for _ in range(20)]

    serial, parallel = {}, {}
    for seed in range(3):
        work(seed, serial)
    threads = [threading.Thread(target=work, args=(seed, parallel)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(3):
        np.testing.assert_array_equal(serial[seed], parallel[seed])


def test_draws_for_a_tensor_are_made_where_it_is():
    homes = available()
    for home in homes:
        with use_backend(home):
            p = ops.array([0.2, 0.8])
        for active in homes:
            with use_backend(active):
                assert random.bernoulli(p).backend == home
                assert random.categorical(p).backend == home
                assert random.poisson(p).backend == home
                assert random.shuffle(p).backend == home
                assert random.choice(p, 2).backend == home
                assert ops.dropout(p).backend == home
                assert ops.gumbel_softmax(p, seed=1).backend == home


BAD = [
    lambda: random.normal((2,), std=-1.0),
    lambda: random.normal((2,), std=float("nan")),
    lambda: random.normal((-1,)),
    lambda: random.uniform((2,), 1.0, 1.0),
    lambda: random.uniform((2,), 2.0, 1.0),
    lambda: random.truncated_normal((2,), lower=1.0, upper=-1.0),
    lambda: random.exponential((2,), 0.0),
    lambda: random.gamma((2,), -1.0),
    lambda: random.beta((2,), 1.0, 0.0),
    lambda: random.bernoulli(1.5),
    lambda: random.bernoulli(-0.1),
    lambda: random.poisson(-1.0),
    lambda: random.randint(3, 3),
    lambda: random.randint(0, 300, dtype="int8"),
    lambda: random.randint(-1, 3, dtype="uint8"),
    lambda: random.choice(3, 4, replace=False),
    lambda: random.choice(0, 1),
    lambda: random.choice(3, 2, p=[0.5, 0.5]),
    lambda: random.choice(2, 2, p=[-1.0, 2.0]),
    lambda: random.choice(3, 2, replace=False, p=[1.0, 0.0, 0.0]),
    lambda: random.categorical(ops.zeros((2, 0))),
    lambda: random.categorical(ops.zeros((2,)), axis=1),
    lambda: random.permutation(ops.array(3.0)),
    lambda: random.orthogonal((3,)),
    lambda: random.set_seed(-1),
    lambda: random.set_seed(2**64),
    lambda: random.normal((2,), seed=-1),
    lambda: ops.dropout(ops.ones(3), 1.5),
    lambda: ops.gumbel_softmax(ops.ones(3), 0.0),
]


@pytest.mark.parametrize("call", BAD)
def test_bad_values(backend, call):
    with pytest.raises(ValueError, match=r"."):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: random.normal("2"),
        lambda: random.normal(2.5),
        lambda: random.normal((2,), dtype="int32"),
        lambda: random.randint(0, 3, dtype="float32"),
        lambda: random.normal((2,), seed="x"),
        lambda: random.set_seed(1.5),
    ],
)
def test_bad_types(backend, call):
    with pytest.raises(TypeError):
        call()


def test_aliases():
    assert random.random_normal is random.normal
    assert random.random_uniform is random.uniform
    assert random.randn(2, 3).shape == random.randn((2, 3)).shape == (2, 3)
    assert random.rand(4).shape == (4,)
    assert set(available()) <= set(BACKENDS)
