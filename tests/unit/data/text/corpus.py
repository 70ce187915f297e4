"""Real text that is always there: the help pages of Python."""

from __future__ import annotations

import functools
from pydoc_data.topics import topics


@functools.cache
def documents() -> tuple[str, ...]:
    """Return about 100,000 characters in documents of different lengths."""
    pages = [topics[name] for name in sorted(topics)][:24]
    return (*pages, "naïve café; 你好 🙂\n", "   \n\n\t  x", "")
