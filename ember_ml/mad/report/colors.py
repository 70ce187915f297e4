"""Colours of architectures and accuracies, on light and on dark ground."""

from __future__ import annotations

LINES = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3b3f46"),
    "dark": ("#3f9fdb", "#f0803c", "#1dbd8f", "#dd94bb", "#f0b429", "#8fd0f7", "#d5d8de"),
}
"""The palette of Okabe and Ito without its yellow, which is lost on white; lighter on dark."""
DASHES = ("", "7 3", "2 3", "9 3 2 3")
"""For the architectures beyond the last colour."""
RAMPS = {
    "light": ("#f4f6f0", "#b9dfd0", "#5db0bf", "#2a72a4", "#17376e"),
    "dark": ("#1d242e", "#1f4d6b", "#2a8392", "#6fc2a4", "#eef3c4"),
}
"""From 0 to 100 %: away from the ground in lightness, so that the order shows without hue."""
STEPS = 20
"""Of how many percent a colour stands for: 100 / STEPS."""

Triple = tuple[float, float, float]


def ramp(scheme: str) -> list[tuple[str, str]]:
    """Ground and text of each accuracy, in steps."""
    stops = [_rgb(color) for color in RAMPS[scheme]]
    found = []
    for step in range(STEPS + 1):
        place = step / STEPS * (len(stops) - 1)
        low = min(int(place), len(stops) - 2)
        color = _hex(_between(stops[low], stops[low + 1], place - low))
        found.append((color, readable(color)))
    return found


def readable(ground: str) -> str:
    """Black or white, whichever stands out more.

    Example:
        >>> readable("#ffffff"), readable("#17376e")
        ('#000000', '#ffffff')
    """
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, ground))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG measures it, from 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    """How light a colour is, from 0 to 1."""
    red, green, blue = _rgb(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _rgb(color: str) -> Triple:
    """Linear light."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return red, green, blue


def _hex(color: Triple) -> str:
    parts = [min(1.0, max(0.0, part)) for part in color]
    coded = [p * 12.92 if p <= 0.0031308 else 1.055 * p ** (1 / 2.4) - 0.055 for p in parts]
    return "#" + "".join(f"{round(255 * part):02x}" for part in coded)


def _between(one: Triple, other: Triple, share: float) -> Triple:
    """A mixture that looks even: cube roots are close to how eyes see lightness."""
    red, green, blue = (
        (a ** (1 / 3) * (1 - share) + b ** (1 / 3) * share) ** 3
        for a, b in zip(one, other, strict=True)
    )
    return red, green, blue


def stylesheet() -> str:
    """The rules for the colours of lines and of accuracies."""
    rules = [
        ":root{" + _variables("light") + "}",
        "@media (prefers-color-scheme:dark){:root{" + _variables("dark") + "}}",
    ]
    rules += [f".q{at}{{background:var(--q{at});color:var(--t{at})}}" for at in range(STEPS + 1)]
    rules += [f".c{at}{{--c:var(--c{at})}}" for at in range(len(LINES["light"]))]
    rules += [f".d{at}{{stroke-dasharray:{dash}}}" for at, dash in enumerate(DASHES) if dash]
    return "\n".join(rules)


def _variables(scheme: str) -> str:
    names = [f"--c{at}:{color};" for at, color in enumerate(LINES[scheme])]
    names += [f"--q{at}:{ground};--t{at}:{ink};" for at, (ground, ink) in enumerate(ramp(scheme))]
    return "".join(names)


def line_classes(place: int) -> str:
    """The classes that give the architecture of a place its colour and its dashes."""
    count = len(LINES["light"])
    return f"c{place % count} d{place // count % len(DASHES)}"


def heat_class(accuracy: float) -> str:
    """The class that gives an accuracy its colour; none if it is not a number."""
    if accuracy != accuracy:
        return ""
    return f"q{round(STEPS * min(1.0, max(0.0, accuracy)))}"
