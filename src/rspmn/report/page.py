"""One page that needs nothing else: the data and the built assets in a single HTML file."""

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from rspmn.files import write_atomically

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="rspmn">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="page"><noscript>This page needs JavaScript, which it contains itself.</noscript></div>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def report_page(data: Mapping[str, Any], *, live: bool = False) -> str:
    """Return a page as HTML: nothing in it is fetched from elsewhere.

    Parameters
    ----------
    data
        What `report_data` returns.
    live
        Whether the page may ask the server that it comes from.

    Examples
    --------
    >>> page = report_page({"title": "</script><script>alert(1)</script>"})
    >>> "alert(1)</script>" in page, page.count("default-src 'none'")
    (False, 1)
    """
    script, style = asset("page.js"), asset("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    policy = "; ".join(f"{name} {source}" for name, source in allowed.items())
    return TEMPLATE.format(
        policy=html.escape(policy, quote=True).replace("&#x27;", "'"),
        title=html.escape(str(data.get("title", ""))),
        style=style,
        data=script_json(data),
        script=script,
    )


def write_report(path: str | Path, data: Mapping[str, Any]) -> None:
    """Write the page of some data, whole or not at all."""
    write_atomically(path, report_page(data).encode(errors="replace"))  # names of files


def asset(name: str) -> str:
    """Return a file of the built page; `make web` builds them from the folder web."""
    return files("rspmn.report").joinpath("assets", name).read_text(encoding="utf-8")


def script_json(data: object) -> str:
    r"""Return JSON that cannot end the element of HTML that it stands in.

    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
