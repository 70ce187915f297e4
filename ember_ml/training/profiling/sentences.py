"""Main numbers and notes of a profile, as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from ember_ml.training.profiling.result import Profile
from ember_ml.training.profiling.units import (
    show_bytes,
    show_flops,
    show_seconds,
    show_share,
)


def summary(profile: Profile) -> list[tuple[str, str]]:
    """Return the main numbers of a profile, with their names.

    Args:
        profile: The profile.
    """
    return list(_summary(profile))


def _summary(profile: Profile) -> Iterator[tuple[str, str]]:
    what = "step" if profile.plain is not None else "time"
    how = ""
    if profile.plain is not None:
        kind = "not compiled yet" if profile.compiles_later else "not compiled"
        kind = "compiled" if profile.compiled else kind
        how = f" ({kind}, not profiled, the shortest)"
    yield what, f"{show_seconds(profile.step_seconds)}{how}"
    if profile.plain is not None:
        extra = f", and {show_seconds(profile.overhead)} of measurement"
        yield "profiled step", f"{show_seconds(profile.seconds)}{extra}"
    if profile.parts:
        yield (
            "parts",
            ", ".join(f"{name} {show_seconds(value)}" for name, value in profile.parts.items()),
        )
    if profile.between is not None:
        text = "for data, callbacks and logs"
        yield "between steps", f"{show_seconds(profile.between)} {text}"
    outside, share = profile.outside
    whole = "forward pass" if profile.replayed else "profiled time"
    yield "native calls", f"{show_seconds(profile.native)} in {calls_of(profile):,.0f} calls"
    yield "outside native calls", f"{show_seconds(outside)}, {show_share(share)} of the {whole}"
    dispatch = show_share(profile.dispatch_share)
    yield "Ember's dispatch", f"about {show_seconds(profile.dispatch)}, {dispatch}"
    yield "operations", f"{show_flops(profile.flops)}, {show_flops(profile.rate, 'FLOP/s')}"
    if profile.peak is not None:
        peak = profile.peak
        rate = show_flops(peak.flops, "FLOP/s")
        size = f"{peak.size} x {peak.size}"
        yield "peak", f"{rate}, the fastest matrix product: {size}, {peak.dtype}"
        yield "share of peak", show_share(profile.share_of_peak)
    if profile.memory:
        names = ((name.replace("_", " "), size) for name, size in profile.memory.items())
        yield "memory", ", ".join(f"{name} {show_bytes(size)}" for name, size in names)


def warning(profile: Profile) -> str:
    """Return a sentence about a profile without calls; an empty string for others.

    Args:
        profile: The profile.
    """
    if profile.ops:
        return ""
    return (
        f"No op was measured. A profile measures ops of {profile.backend} in its own thread that "
        "are not compiled."
    )


def calls_of(profile: Profile) -> float:
    """Return the number of native calls in the forward pass of a step."""
    return sum(row.calls for row in profile.ops)


def notes(profile: Profile) -> list[str]:
    """Return the sentences that say how the numbers were measured.

    Args:
        profile: The profile.
    """
    texts = [
        profile.method,
        "Operations are counted from shapes, a multiply-add as two; the backward pass of a call "
        "counts twice as many as the call. Times of modules include the modules inside.",
        "The time of the dispatch is an estimate: the number of calls times the cost of a call on "
        "an array of one element.",
    ]
    if profile.compiled:
        texts.append(
            "Training runs compiled steps. The profiled steps are not compiled: a compiled step is "
            "one program, in which ops are fused and have no times of their own. It computes the "
            "outputs of all positions, also of those whose target the loss ignores."
        )
    if profile.compiles_later:
        texts.append(
            "The trainer compiles its steps later, after enough batches of the same shapes. To "
            "measure compiled steps, compile them from the first batch on: compile=True."
        )
    if profile.dropped:
        texts.append(
            f"The timeline is too long: {profile.dropped:,} calls are missing in the trace, but "
            "not in the tables."
        )
    return texts
