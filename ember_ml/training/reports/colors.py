"""Colors of lines and accuracies, for light and dark mode."""

from __future__ import annotations

LINES = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3b3f46"),
    "dark": ("#3f9fdb", "#f0803c", "#1dbd8f", "#dd94bb", "#f0b429", "#8fd0f7", "#d5d8de"),
}
"""Palette of Okabe and Ito without yellow, which is hard to see on white; lighter in dark mode."""
DASHES = ("", "7 3", "2 3", "9 3 2 3")
"""Dash patterns, for more lines than colors."""
RAMPS = {
    "light": ("#f4f6f0", "#b9dfd0", "#5db0bf", "#2a72a4", "#17376e"),
    "dark": ("#1d242e", "#1f4d6b", "#2a8392", "#6fc2a4", "#eef3c4"),
}
"""From 0 to 100 %: lightness changes monotonically, so the order is visible without hue."""
STEPS = 20
"""Number of color steps from 0 to 100 %."""

Triple = tuple[float, float, float]


def ramp(scheme: str) -> list[tuple[str, str]]:
    """Return the background and text color of each accuracy step."""
    stops = [_rgb(color) for color in RAMPS[scheme]]
    colors = []
    for step in range(STEPS + 1):
        place = step / STEPS * (len(stops) - 1)
        low = min(int(place), len(stops) - 2)
        color = _hex(_between(stops[low], stops[low + 1], place - low))
        colors.append((color, readable(color)))
    return colors


def readable(background: str) -> str:
    """Return black or white, whichever has more contrast.

    Example:
        >>> readable("#ffffff"), readable("#17376e")
        ('#000000', '#ffffff')
    """
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, background))


def contrast(one: str, other: str) -> float:
    """Return the WCAG contrast ratio of two colors, from 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    """Return the relative luminance of a color, from 0 to 1."""
    red, green, blue = _rgb(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _rgb(color: str) -> Triple:
    """Return the linear RGB components of a color."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return red, green, blue


def _hex(color: Triple) -> str:
    parts = [min(1.0, max(0.0, part)) for part in color]
    coded = [p * 12.92 if p <= 0.0031308 else 1.055 * p ** (1 / 2.4) - 0.055 for p in parts]
    return "#" + "".join(f"{round(255 * part):02x}" for part in coded)


def _between(one: Triple, other: Triple, share: float) -> Triple:
    """Interpolate two colors; cube roots approximate perceived lightness."""
    red, green, blue = (
        (a ** (1 / 3) * (1 - share) + b ** (1 / 3) * share) ** 3
        for a, b in zip(one, other, strict=True)
    )
    return red, green, blue


def stylesheet() -> str:
    """Return the CSS rules for the colors of lines and accuracies."""
    rules = [
        ":root{" + _variables("light") + "}",
        "@media screen and (prefers-color-scheme:dark){:root{" + _variables("dark") + "}}",
    ]
    rules += [f".q{at}{{background:var(--q{at});color:var(--t{at})}}" for at in range(STEPS + 1)]
    rules += [f".c{at}{{--c:var(--c{at})}}" for at in range(len(LINES["light"]))]
    rules += [f".d{at}{{stroke-dasharray:{dash}}}" for at, dash in enumerate(DASHES) if dash]
    return "\n".join(rules)


def _variables(scheme: str) -> str:
    names = [f"--c{at}:{color};" for at, color in enumerate(LINES[scheme])]
    names += [f"--q{at}:{color};--t{at}:{ink};" for at, (color, ink) in enumerate(ramp(scheme))]
    return "".join(names)


def line_classes(place: int) -> str:
    """Return the CSS classes for the color and dashes of the line at a position."""
    count = len(LINES["light"])
    return f"c{place % count} d{place // count % len(DASHES)}"


def heat_class(accuracy: float) -> str:
    """Return the CSS class for the color of an accuracy; empty for NaN."""
    if accuracy != accuracy:
        return ""
    return f"q{round(STEPS * min(1.0, max(0.0, accuracy)))}"
