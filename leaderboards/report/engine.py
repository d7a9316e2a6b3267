"""The charting library: the one file that knows it. It is imported when something is written."""

import json
import re
from functools import cache
from typing import Any

SNIPPET = "window.vegaEmbed = vegaEmbed;"
"""What of the library the page uses; the other parts come out of the bundler without names."""


@cache
def library() -> str:
    """Vega and Vega-Lite as one script that needs no network, about 0.9 MB."""
    import vl_convert

    text = str(vl_convert.javascript_bundle(SNIPPET))
    return re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE).replace("<!--", r"<\!--")


def svg(spec: dict[str, Any]) -> str:
    """A chart as SVG text."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(_text(spec)))


def pdf(spec: dict[str, Any]) -> bytes:
    """A chart as PDF."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_pdf(_text(spec)))


def png(spec: dict[str, Any], scale: float = 1.0) -> bytes:
    """A chart as PNG."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(_text(spec), scale=scale))


def _text(spec: dict[str, Any]) -> str:
    """A chart as JSON, which has no word for what is no number."""
    return json.dumps(spec, allow_nan=False)
