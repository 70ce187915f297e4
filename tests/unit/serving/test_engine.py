"""Continuous batching: every sequence has the tokens of `generate` for its prompt alone."""

from __future__ import annotations

import asyncio
import random

import pytest

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml.nn.models.decoding.call import NonFiniteLogitsError
from ember_ml.serving import (
    DeadlineExceeded,
    Engine,
    EngineError,
    Limits,
    Overloaded,
    PipelineClosed,
)
from tests.unit.serving.models import PATTERNS, outcome, sequence, tiny, tokens_of

OPTIONS = (
    {},
    {"temperature": 1.0},
    {"temperature": 0.7, "top_k": 5},
    {"temperature": 1.3, "top_p": 0.8},
    {"temperature": 1.0, "min_p": 0.1},
    {"temperature": 1.0, "presence_penalty": 0.6, "frequency_penalty": 0.4},
    {"repetition_penalty": 1.3},
    {"temperature": 1.0, "logit_bias": {3: 4.0, 4: -8.0}},
    {"temperature": 1.0, "eos": 7},
    {"eos": [3, 9], "min_new_tokens": 3},
)


def requests(count: int, longest: int = 9, seed: int = 0) -> list[tuple[list[int], int, dict]]:
    """Return prompts, numbers of tokens and options of all kinds."""
    rng = random.Random(seed)
    return [
        (
            [rng.randrange(32) for _ in range(rng.randint(1, longest))],
            rng.randint(3, 9),
            OPTIONS[at % len(OPTIONS)],
        )
        for at in range(count)
    ]


def alone(model, prompt, count, options, seed):
    return model.complete([prompt], count, seed=seed, **options).tokens[0]


def run_all(model, limits, given, gap=0.0):
    """Return the tokens of all requests, submitted in threes, one group after the other."""

    async def one(engine, at, prompt, count, options):
        await asyncio.sleep(gap * (at // 3))
        return await tokens_of(engine, sequence(model, prompt, count, seed=at, **options))

    async def work():
        async with Engine(model, limits) as engine:
            parts = [one(engine, at, *request) for at, request in enumerate(given)]
            results = await asyncio.gather(*parts)
            assert engine.in_flight == 0
            return results, engine.counts

    return asyncio.run(work())


@pytest.mark.parametrize("pattern", list(PATTERNS))
def test_every_sequence_equals_generate_alone(pattern: str, backend: str) -> None:
    model = tiny(pattern)
    given = requests(6 if backend == "mlx" else 10)
    results, counts = run_all(model, Limits(max_batch=4, prefill_chunk=4), given, gap=0.002)
    for at, (prompt, count, options) in enumerate(given):
        assert results[at] == alone(model, prompt, count, options, seed=at), at
    assert counts.completed == len(given)
    assert counts.new_tokens == sum(map(len, results))
    assert counts.rows > counts.steps  # sequences shared steps


def test_long_prompts_in_chunks_with_learned_positions(backend: str) -> None:
    model = tiny("attention", max_length=64, positions="learned")
    given = [([at % 32 for at in range(50)], 8, {}), ([1, 2], 8, {}), ([5] * 30, 8, {})]
    results, _ = run_all(model, Limits(max_batch=3, prefill_chunk=7), given)
    assert results == [alone(model, *request, seed=0) for request in given]


def test_a_long_prompt_does_not_stop_the_others() -> None:
    model = tiny()

    async def work():
        async with Engine(model, Limits(max_batch=4, prefill_chunk=8)) as engine:
            running, long = sequence(model, [1], 300), sequence(model, [2] * 320, 2)
            engine.submit([running])
            while not engine.counts.running:
                await asyncio.sleep(0)
            engine.submit([long])
            while not engine.counts.prefilling:
                await asyncio.sleep(0)
            before = len(running.generated)
            short = await tokens_of(engine, sequence(model, [3], 2))  # it does not wait either
            assert not long.generated
            result = await outcome(long)
            assert len(running.generated) - before >= 30  # 40 chunks, and a step after each
            engine.cancel([running])
            return short, [token.token for token in result]

    short, tokens = asyncio.run(work())
    assert short == alone(model, [3], 2, {}, seed=0)
    assert tokens == alone(model, [2] * 320, 2, {}, seed=0)


def test_cached_tokens_are_limited() -> None:
    model = tiny()
    seen = []

    async def work():
        async with Engine(model, Limits(max_batch=8, max_cached_tokens=40)) as engine:
            parts = [sequence(model, [1] * 8, 12, seed=at) for at in range(5)]
            running = asyncio.gather(*(tokens_of(engine, each) for each in parts))
            while not running.done():
                seen.append(engine.counts.running + engine.counts.prefilling)
                await asyncio.sleep(0)
            return await running

    assert len(asyncio.run(work())) == 5
    assert 1 <= max(seen) <= 2  # two sequences of at most 20 tokens each


def test_memory_of_long_sequences_is_released() -> None:
    model = tiny()

    async def work():
        async with Engine(model, Limits(max_batch=2)) as engine:
            slots = []
            for _ in range(6):  # overlapping sequences, so that the batch is never empty
                long, short = sequence(model, [1] * 20, 4), sequence(model, [2], 12)
                engine.submit([long, short])
                await outcome(long)
                slots.append(max(x.shape[2] for x in caches(engine)))
            await outcome(short)
            return slots

    def caches(engine):
        from ember_ml.nn.layers.sequence_mixing.attention.cache import KVCache

        found, pending = [], [engine._worker._running.state]
        while pending:
            part = pending.pop()
            if isinstance(part, KVCache):
                found.append(part.keys)
            elif isinstance(part, (list, tuple)):
                pending.extend(part)
        return found or [ops.ones((1, 1, 0, 1))]

    assert max(asyncio.run(work())) < 40


def test_log_probs(backend: str) -> None:
    model = tiny()

    async def work():
        async with Engine(model) as engine:
            each = sequence(model, [1, 2], 5, log_probs=3)
            engine.submit([each])
            return await outcome(each)

    made = asyncio.run(work())
    expected = model.complete([[1, 2]], 5, log_probs=True)
    assert [token.token for token in made] == expected.tokens[0]
    assert [token.log_prob for token in made] == pytest.approx(expected.log_probs[0], abs=1e-4)
    for token in made:
        assert token.top[0] == pytest.approx((token.token, token.log_prob))
        assert len(token.top) == 3
        assert token.top[0][1] >= token.top[1][1] >= token.top[2][1]


def test_cancelled_sequences_leave_within_two_steps() -> None:
    model = tiny()

    async def work():
        async with Engine(model, Limits(max_batch=2)) as engine:
            stays, leaves = sequence(model, [1], 400), sequence(model, [2], 400)
            engine.submit([stays, leaves])
            while engine.counts.running < 2:
                await asyncio.sleep(0)
            engine.cancel([leaves])
            at = len(leaves.generated)
            assert isinstance(await outcome(leaves), PipelineClosed)
            assert len(leaves.generated) <= at + 2
            assert engine.counts.cancelled == 1
            next_one = await tokens_of(engine, sequence(model, [2], 3))
            engine.cancel([stays])
            return next_one

    assert asyncio.run(work()) == alone(model, [2], 3, {}, seed=0)


def test_a_full_queue_is_refused_and_nothing_is_lost() -> None:
    model = tiny("gru")

    async def work():
        async with Engine(model, Limits(max_batch=2, queue=3)) as engine:
            accepted = [sequence(model, [at], 30, seed=at) for at in range(5)]
            engine.submit(accepted)
            with pytest.raises(Overloaded, match="2 sequences run and 3 wait"):
                engine.submit([sequence(model, [1])])
            results = await asyncio.gather(*(outcome(each) for each in accepted))
            assert engine.counts.rejected == 1
            assert await tokens_of(engine, sequence(model, [1], 2))
            return results

    assert all(len(result) == 30 for result in asyncio.run(work()))


def test_deadlines() -> None:
    model = tiny("gru")

    async def work():
        async with Engine(model, Limits(max_batch=1, queue=4)) as engine:
            runs = sequence(model, [1], 10**6, timeout=0.3)
            waits = sequence(model, [1], 10**6, timeout=0.1)
            engine.submit([runs, waits])
            errors = await asyncio.gather(outcome(runs), outcome(waits))
            assert engine.counts.expired == 2
            return errors

    running, waiting = asyncio.run(work())
    assert isinstance(running, DeadlineExceeded)
    assert "during generation" in str(running)
    assert isinstance(waiting, DeadlineExceeded)
    assert "while the request waited" in str(waiting)


def test_nan_logits_fail_their_sequence_only(backend: str) -> None:
    model = tiny()
    weight = model.embedding.weight
    nan = ops.where(ops.arange(32)[:, None] == 5, float("nan"), weight)
    weight.assign(nan)

    async def work():
        async with Engine(model, Limits(max_batch=4)) as engine:
            good, bad = sequence(model, [1], 6), sequence(model, [5], 6)
            engine.submit([good, bad])
            return await asyncio.gather(outcome(good), outcome(bad))

    good, bad = asyncio.run(work())
    assert [token.token for token in good] == alone(model, [1], 6, {}, seed=0)
    assert isinstance(bad, NonFiniteLogitsError)
    assert "position 1 (new token 0)" in str(bad)


@pytest.mark.parametrize("method", ["initial_state", "prefill", "step"])
def test_errors_of_the_model_fail_their_sequences_and_the_engine_goes_on(method: str) -> None:
    model = tiny()
    original = getattr(model, method)

    def fails(*_: object) -> None:
        raise RuntimeError("out of memory")

    async def work():
        async with Engine(model, Limits(max_batch=4)) as engine:
            object.__setattr__(model, method, fails)
            parts = [sequence(model, [at], 6) for at in range(3)]
            engine.submit(parts)
            errors = await asyncio.gather(*(outcome(each) for each in parts))
            object.__setattr__(model, method, original)
            assert engine.is_healthy
            return errors, await tokens_of(engine, sequence(model, [1], 6))

    errors, after = asyncio.run(work())
    assert [type(error) for error in errors] == [EngineError] * 3
    assert "RuntimeError: out of memory" in str(errors[0])
    assert after == alone(model, [1], 6, {}, seed=0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dying_thread_fails_everything() -> None:
    model = tiny()

    def exits(*_: object) -> None:
        raise SystemExit

    async def work():
        async with Engine(model, Limits(max_batch=1)) as engine:
            object.__setattr__(model, "step", exits)
            parts = [sequence(model, [at], 6) for at in range(3)]
            engine.submit(parts)
            errors = await asyncio.gather(*(outcome(each) for each in parts))
            while engine.is_healthy:
                await asyncio.sleep(0.01)
            with pytest.raises(EngineError, match="has stopped"):
                engine.submit([sequence(model, [1])])
            return errors

    assert all(isinstance(error, Exception) for error in asyncio.run(work()))


def test_drain_finishes_what_runs_and_refuses_the_rest() -> None:
    model = tiny("gru")

    async def work():
        async with Engine(model, Limits(max_batch=1, queue=4)) as engine:
            runs, waits = sequence(model, [1], 50), sequence(model, [2], 50)
            engine.submit([runs, waits])
            while not engine.counts.running:
                await asyncio.sleep(0)
            engine.drain()
            with pytest.raises(PipelineClosed):
                engine.submit([sequence(model, [3])])
            assert await engine.wait_idle(30)
            return await outcome(runs), await outcome(waits)

    finished, refused = asyncio.run(work())
    assert len(finished) == 50
    assert isinstance(refused, PipelineClosed)


@pytest.mark.parametrize("seed", range(3))
def test_every_accepted_sequence_has_one_outcome(seed: int) -> None:
    """Random arrivals, cancellations, deadlines, NaN logits and errors of the model."""
    rng = random.Random(seed)
    model = tiny("attention gru")
    weight = model.embedding.weight
    weight.assign(ops.where(ops.arange(32)[:, None] == 5, float("nan"), weight))
    step = model.step

    def sometimes(tokens, state):
        if rng.random() < 0.02:
            raise RuntimeError("planned")
        return step(tokens, state)

    object.__setattr__(model, "step", sometimes)

    async def client(engine):
        await asyncio.sleep(rng.random() * 0.3)
        prompt = [rng.randrange(32) for _ in range(rng.randint(1, 40))]
        each = sequence(model, prompt, rng.randint(1, 30), timeout=rng.choice([0.05, 0.2, 60.0]))
        try:
            engine.submit([each])
        except Overloaded:
            return None
        if rng.random() < 0.3:
            asyncio.get_running_loop().call_later(rng.random() * 0.1, engine.cancel, [each])
        return await asyncio.wait_for(outcome(each), 30)

    async def work():
        async with Engine(model, Limits(max_batch=4, queue=8, prefill_chunk=8)) as engine:
            results = await asyncio.gather(*(client(engine) for _ in range(60)))
            assert await engine.wait_idle(30)
            assert engine._admission.free == 12
            return results, engine.counts

    results, counts = asyncio.run(work())
    outcomes = [each for each in results if each is not None]
    assert counts.accepted == len(outcomes) == 60 - counts.rejected
    assert counts.completed == sum(isinstance(each, list) for each in outcomes)
    ended = counts.completed + counts.failed + counts.cancelled + counts.expired + counts.refused
    assert ended == counts.accepted
    assert counts.completed
    assert counts.failed


def test_streams_of_tokens(backend: str) -> None:
    model = tiny()

    async def work():
        async with Engine(model, Limits(max_batch=2, max_length=2000)) as engine:
            async for _ in engine.stream([1], 1900):
                break  # which drops the sequence
            assert await engine.wait_idle(30)
            assert engine.counts.cancelled == 1
            with pytest.raises(ArgumentError, match="num_beams is not supported"):
                await engine.complete([1], 4, num_beams=2)
            with pytest.raises(ArgumentError, match="exceed max_length=2000 of the engine"):
                await engine.complete([1] * 1996, 5)
            parts = [engine.complete([at], 6, temperature=1.0, seed=at) for at in range(3)]
            return await asyncio.gather(*parts)

    results = asyncio.run(work())
    for at, tokens in enumerate(results):
        assert tokens == alone(model, [at], 6, {"temperature": 1.0}, seed=at)


def test_limits() -> None:
    with pytest.raises(ArgumentError, match="max_batch=0 must be at least 1"):
        Limits(max_batch=0)
    with pytest.raises(ArgumentError, match="exceeds max_length=16 of the model"):
        Engine(tiny(max_length=16, positions="learned"), Limits(max_length=17))
    assert Engine(tiny(max_length=16, positions="learned")).max_length == 16
