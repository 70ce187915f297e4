"""Parts of complex numbers."""

from __future__ import annotations

from numpy import angle as angle
from numpy import conj as conj
from numpy import imag as imag
from numpy import real as real
