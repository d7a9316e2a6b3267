"""The charting library: the one file that knows it. It is imported when something is written."""

import json
import re
from functools import cache
from typing import Any

from leaderboards.charts.style import Spec

# what of the library the page uses; the other parts come out of the bundler without names
SNIPPET = "window.vegaEmbed = vegaEmbed;"

# characters that no XML may hold, and what stands for them
_FORBIDDEN = (*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
_UNWRITTEN = dict.fromkeys(_FORBIDDEN, "\ufffd")


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
    """Text, or JSON of any depth, without characters that no XML may hold."""
    if isinstance(part, dict):
        return {key: written(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [written(value) for value in part]
    return part.translate(_UNWRITTEN) if isinstance(part, str) else part
