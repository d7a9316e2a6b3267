"""The charting library; no other file knows it. It is imported when something is drawn."""

import json
import re
from functools import cache
from typing import Any

from layerboard.leaderboards.charts.style import Spec
from layerboard.zoo.errors import printable

# exports that the page uses; other parts have no names in the bundle
SNIPPET = "window.vegaEmbed = vegaEmbed;"


@cache
def vega_script() -> str:
    """Vega and Vega-Lite as one script that needs no network, about 0.9 MB."""
    import vl_convert

    text = str(vl_convert.javascript_bundle(SNIPPET))
    return re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE).replace("<!--", r"<\!--")


def render_chart(spec: Spec, ending: str = "svg", **options: object) -> Any:  # noqa: ANN401 - text or bytes
    """A chart as the text of an SVG file or the bytes of a PDF or PNG.

    NaN, which JSON lacks, must be None.
    """
    import vl_convert

    return getattr(vl_convert, f"vegalite_to_{ending}")(json.dumps(written(spec), allow_nan=False), **options)


def written(part: Any) -> Any:  # noqa: ANN401
    """Text, or JSON of any depth, made `printable`."""
    if isinstance(part, dict):
        return {written(key): written(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [written(value) for value in part]
    return printable(part) if isinstance(part, str) else part
