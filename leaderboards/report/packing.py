"""Frames, scripts and pictures as compact text that is safe inside a page."""

import base64
import gzip
import hashlib
import json
from io import BytesIO
from typing import Any

import pandas as pd
from PIL import Image

DECIMALS = 4  # decimals of numbers, as in the leaderboard's CSV


def packed(text: str) -> str:
    """A text as gzip in base 64, deterministic."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def packed_json(value: object) -> str:
    """JSON, `packed`, with numbers of at most `DECIMALS` and frames by columns; None for missing numbers."""
    return packed(json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, separators=(",", ":")))


def json_script(value: object) -> str:
    """JSON that can neither end its script element nor open a comment there."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def script_digest(text: str) -> str:
    """The digest by which a policy allows a script to run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def image_data(image: Image.Image, side: int) -> dict[str, Any]:
    """A small version of an image, of that longer side at most: its width, height, and WebP as an address."""
    small = image.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    sink = BytesIO()
    small.save(sink, "WEBP", quality=80)
    source = f"data:image/webp;base64,{base64.b64encode(sink.getvalue()).decode()}"
    return {"width": small.width, "height": small.height, "source": source}


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON of any depth
    if isinstance(value, pd.DataFrame):
        return _plain(value.to_dict("list"))
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if not isinstance(value, float):
        return value
    short = round(value, DECIMALS)
    return None if short != short else int(short) if short == int(short) else short
