"""The charting library, which no other file knows, and a chart for Python; imported when one is drawn."""

import json
import re
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from layerboard.leaderboards.charts.style import Spec
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import printable, require_known

# exports that the page uses; other parts have no names in the bundle
SNIPPET = "window.vegaEmbed = vegaEmbed;"

ENDINGS = ("svg", "pdf", "png", "json")
MIME = "application/vnd.vegalite.v6+json"  # shown by notebooks that know the grammar, with tooltips
SCALE = 2  # pixels of a PNG for each pixel of the chart, for screens of high density


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


@dataclass(frozen=True, eq=False, repr=False)
class Chart:
    """A chart: its name, and its Vega-Lite specification with all rows.

    A notebook shows it as a picture, without network and before the notebook is trusted, and with tooltips
    where it knows Vega-Lite.
    """

    name: str
    spec: Spec

    def __repr__(self) -> str:
        return f"chart {self.name}: a notebook shows it; save('{self.name}.svg') writes it to a file"

    def save(self, path: Path | str) -> Path:
        """Write it to a file whose name ends in svg, pdf, png or json (the specification); returns the path.

        Raises InputError for another ending.
        """
        path = Path(path)
        ending = path.suffix.removeprefix(".").lower()
        require_known("format", [ending], ENDINGS)
        as_json = json.dumps(written(self.spec), indent=1, allow_nan=False)
        write_whole(path, as_json if ending == "json" else self._rendered(ending))
        return path

    def _rendered(self, ending: str) -> str | bytes:
        further = {"scale": SCALE} if ending == "png" else {}
        rendered: str | bytes = render_chart(self.spec, ending, **further)
        return rendered

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[dict[str, Any], Any]:
        picture = self._rendered("png")
        assert isinstance(picture, bytes)
        width, height = (side // SCALE for side in Image.open(BytesIO(picture), formats=["PNG"]).size)
        shown = {MIME: written(self.spec), "image/png": picture, "text/plain": repr(self)}
        return shown, {"image/png": {"width": width, "height": height}}
