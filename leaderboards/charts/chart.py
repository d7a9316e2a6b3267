"""A chart for Python: it shows itself in a notebook, and writes itself to a file."""

import json
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.style import Spec
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import require_known

ENDINGS = ("svg", "pdf", "png", "json")
MIME = "application/vnd.vegalite.v6+json"  # shown by notebooks that know the grammar, with tooltips
SCALE = 2  # pixels of a PNG for each pixel of the chart, for screens of high density


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
        written = json.dumps(engine.written(self.spec), indent=1, allow_nan=False)
        write_whole(path, written if ending == "json" else self._rendered(ending))
        return path

    def _rendered(self, ending: str) -> str | bytes:
        further = {"scale": SCALE} if ending == "png" else {}
        rendered: str | bytes = engine.render_chart(self.spec, ending, **further)
        return rendered

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[dict[str, Any], Any]:
        picture = self._rendered("png")
        assert isinstance(picture, bytes)
        width, height = (side // SCALE for side in Image.open(BytesIO(picture), formats=["PNG"]).size)
        shown = {MIME: engine.written(self.spec), "image/png": picture, "text/plain": repr(self)}
        return shown, {"image/png": {"width": width, "height": height}}
