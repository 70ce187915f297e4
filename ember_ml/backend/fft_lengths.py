"""Lengths of fast FFTs."""

from __future__ import annotations


def fast_fft_length(length: int) -> int:
    """Return the smallest even number from `length` up without a prime factor above 5.

    The FFT of such a length is fast.

    Args:
        length: Minimum length.
    """
    best = 1 << max(length - 1, 1).bit_length()
    five = 1
    while five < best:
        odd = five
        while odd < best:
            rest = -(-length // odd)
            best = min(best, odd << max((rest - 1).bit_length(), 1))
            odd *= 3
        five *= 5
    return best
