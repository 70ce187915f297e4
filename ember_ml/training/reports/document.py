"""HTML document of a report, in one file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from importlib.resources import files

from ember_ml.training.reports.colors import stylesheet
from ember_ml.training.reports.markup import text


def document(
    title: str,
    header: str,
    sections: Iterable[str],
    data: object,
    *,
    style: str = "",
    script: str = "",
) -> str:
    """Return a self-contained page: it loads no other files.

    Args:
        title: Title of the page, as text.
        header: HTML below the title.
        sections: HTML of the sections; empty ones are omitted.
        data: Results as plain data, which a button saves as JSON.
        style: CSS of this kind of report, after the shared rules.
        script: JavaScript of this kind of report, after the shared script.
    """
    scripts = [_resource("page.js"), *filter(None, [script])]
    main = "\n".join(filter(None, sections))
    return f"""<!doctype html>
<html lang="en" data-average="micro">
{_head(title, style, scripts)}
<body>
<header><h1>{text(title)}</h1>
{header}{_contents(main)}</header>
<main>
{main}
</main>
<footer><button type="button" id="save">Save the results as JSON</button></footer>
{_data(data)}
{"".join(f"<script>{each}</script>" for each in scripts)}
</body>
</html>
"""


def _resource(name: str) -> str:
    return files("ember_ml.training.reports").joinpath(name).read_text(encoding="utf-8")


def _head(title: str, style: str, scripts: Iterable[str]) -> str:
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()) for each in scripts]
    allowed = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"
    return f"""<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{text(title)}</title>
<style>
{stylesheet()}
{_resource("page.css")}{style}</style>
</head>"""


def _contents(main: str) -> str:
    sections = re.findall(r'<section id="(\w+)"><h2>([^<]+)</h2>', main)
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title in sections)
    return f'<nav aria-label="Contents">{links}</nav>'


def _data(data: object) -> str:
    """Return the results for the save button, escaped so that no text can end the element."""
    plain = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="results">{plain}</script>'
