"""Comparison of the sizes of architectures."""

from __future__ import annotations

import pytest

from ember_ml.mad import SizesError, Sweep, check_sizes, sizes_of
from ember_ml.mad.sizes import Size, spread


def measured(*patterns: str, scale: str = "base", task: str = "in-context-recall") -> list[Size]:
    return sizes_of(Sweep(patterns, "unused", scale=scale, tasks=[task]).runs)


@pytest.mark.parametrize("mixer", ["mh-gla", "hyena", "hyena-experts"])
def test_layers_as_mad_has_them_keep_4096_numbers(mixer: str) -> None:
    """The published normalization, of two layers of width 128."""
    (size,) = measured(f"{mixer}+swiglu")
    assert (size.state, size.state_per_token) == (4096, 0)


def test_attention_keeps_keys_and_values_of_every_token() -> None:
    (size,) = measured("attention+swiglu")
    assert (size.state, size.state_per_token) == (0, 2 * 2 * 128)


def test_parameters_by_hand() -> None:
    """Embedding, two layers as MAD counts them, a norm before each layer and at the end, head."""
    (size,) = measured("attention+swiglu")
    layers = 2 * (66_048 + 135_168)
    assert size.parameters == 16 * 128 + layers + 5 * 128 + 128 * 16 + 16


def test_only_fixed_states_are_compared() -> None:
    found = measured("attention+swiglu", "mamba+swiglu", "mh-gla+swiglu")
    pair = spread(found, "state")
    assert (pair.smallest.architecture, pair.largest.architecture) == (
        "mamba+swiglu",
        "mh-gla+swiglu",
    )
    assert pair.ratio == pytest.approx(4096 / 3584)
    assert spread(found[:2], "state") is None


def test_sizes_that_differ_too_much_are_refused() -> None:
    found = measured("mamba[d_state=64]+swiglu", "mh-gla+swiglu")
    check_sizes(found, parameters=2.0, state=None)
    with pytest.raises(SizesError, match=r"state range from 4,096 \(mh-gla.*to 34,304 \(mamba"):
        check_sizes(found, state=2.0)
    with pytest.raises(ValueError, match=r"state must be 1 or more, not 0.5"):
        check_sizes(found, state=0.5)


def test_settings_are_compared_with_themselves_only() -> None:
    """Sizes are compared only at the same sequence length and vocabulary."""
    sweep = Sweep(["gru+swiglu"], "unused", scale="full", tasks=["memorization"])
    assert len({size.parameters for size in sizes_of(sweep.runs)}) == 6
    check_sizes(sizes_of(sweep.runs), parameters=1.0, state=1.0)


def test_a_sweep_refuses_them_before_it_begins(tmp_path) -> None:
    with pytest.raises(SizesError, match="a factor of"):
        Sweep(["gru+swiglu", "gru"], tmp_path / "s", scale="tiny", same_parameters=1.1)
    assert not (tmp_path / "s").exists()
