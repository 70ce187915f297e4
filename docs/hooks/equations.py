"""MkDocs hook: equations of docstrings and pages, rendered as MathML when the site is built.

Docstrings write equations as reStructuredText does: ``.. math::`` with the equation after it or
indented below, where blank lines separate equations, and ``:math:`...``` within a sentence.
Browsers display MathML without scripts, fonts or requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor
from mkdocs.exceptions import PluginError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

DIRECTIVE = re.compile(r"(?P<indent>\s*)\.\. math::\s*(?P<equation>.*)")
INLINE = r":math:`([^`]+)`"
CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
UNRENDERED = {
    "an equation": re.compile(r"\.\. math::|:math:"),
    "a definition list": re.compile(r"(?:<p>|\n): {1,3}\S"),
}
"""Markup that a page must not contain outside of code."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the extension to all pages, and to the docstrings that they contain."""
    config.markdown_extensions.append(Equations())  # type: ignore[arg-type]
    return config


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Return the page unchanged; raise an error if it contains markup that was not rendered."""
    text = CODE.sub("code", output)
    for what, pattern in UNRENDERED.items():
        match = pattern.search(text)
        if match is not None:
            context = text[max(0, match.start() - 60) : match.end() + 60]
            raise PluginError(f"{page.file.src_uri}: {what} is not rendered: {context!r}")
    return output


class Equations(Extension):
    """Markdown extension for reStructuredText's directive and role of equations."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Register the processors: blocks before other text, roles before code spans."""
        md.preprocessors.register(_Blocks(md), "equations", 26)
        md.inlinePatterns.register(_Role(INLINE, md), "equation_role", 195)


class _Blocks(Preprocessor):
    """Replaces each ``.. math::`` directive by MathML."""

    def run(self, lines: list[str]) -> list[str]:
        """Return the lines with equations replaced."""
        return list(self._replaced(lines))

    def _replaced(self, lines: list[str]) -> Iterator[str]:
        at = 0
        while at < len(lines):
            match = DIRECTIVE.fullmatch(lines[at])
            at += 1
            if match is None:
                yield lines[at - 1]
                continue
            indent = len(match["indent"])
            body = [match["equation"]]
            while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > indent):
                body.append(lines[at].strip())
                at += 1
            equations = [part for part in "\n".join(body).split("\n\n") if part.strip()]
            html = "".join(mathml(part, "block") for part in equations)
            yield from ("", match["indent"] + self.md.htmlStash.store(html), "")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class _Role(InlineProcessor):
    """Replaces :math:`...` by MathML."""

    def handleMatch(  # type: ignore[override]  # noqa: N802
        self, m: re.Match[str], data: str
    ) -> tuple[Element | str, int, int]:
        """Return the placeholder of the MathML, and the part of the text that it replaces."""
        return self.md.htmlStash.store(mathml(m[1], "inline")), m.start(0), m.end(0)


def mathml(equation: str, display: str) -> str:
    """Return the MathML of an equation.

    Args:
        equation: The equation in LaTeX.
        display: "block" or "inline".
    """
    return convert(" ".join(equation.split()), display=display)
