"""The charting library: the one file that knows it. It is imported when something is written."""

import json
import re
from functools import cache
from typing import Any

from leaderboards.charts.style import Spec
from zoo.errors import printable

# what of the library the page uses; the other parts come out of the bundler without names
SNIPPET = "window.vegaEmbed = vegaEmbed;"


@cache
def library() -> str:
    """Vega and Vega-Lite as one script that needs no network, about 0.9 MB."""
    import vl_convert

    text = str(vl_convert.javascript_bundle(SNIPPET))
    return re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE).replace("<!--", r"<\!--")


def svg(spec: Spec) -> str:
    """A chart as SVG text."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(_text(spec)))


def pdf(spec: Spec) -> bytes:
    """A chart as PDF."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_pdf(_text(spec)))


def _text(spec: Spec) -> str:
    """A chart as JSON, which has no word for what is no number."""
    return json.dumps(written(spec), allow_nan=False)


def written(part: Any) -> Any:  # noqa: ANN401
    """Text, or JSON of any depth, as `printable` makes it."""
    if isinstance(part, dict):
        return {written(key): written(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [written(value) for value in part]
    return printable(part) if isinstance(part, str) else part
