"""Frames and scripts as compact text that is safe inside a page."""

import base64
import gzip
import hashlib
import json
from typing import Any

import numpy as np
import pandas as pd

from layerboard.leaderboards.sections.similarity import BlockCka

DECIMALS = 4  # decimals of numbers, as in the leaderboard's CSV
CKA_SCALE = 10_000  # CKA is packed as whole multiples of this
CKA_NONE = -32768  # code of a missing number


def packed(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame by columns: numbers with `DECIMALS`, None if missing; texts as indices into distinct ones."""
    return {str(name): _column(frame[name]) for name in frame.columns}


def packed_matrix(matrix: BlockCka) -> dict[str, Any]:
    """A matrix with its numbers as little-endian 16-bit integers in base 64, row by row."""
    scaled = np.rint(matrix.values * CKA_SCALE)
    whole = np.where(np.isnan(scaled), CKA_NONE, scaled).astype("<i2")
    size = {"rows": whole.shape[0], "columns": whole.shape[1]}
    names = {"table": matrix.table, "first": matrix.first, "second": matrix.second}
    return {**names, **size, "data": base64.b64encode(whole.tobytes()).decode()}


def packed_file(text: str) -> str:
    """A text file as gzip in base 64, deterministic."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def json_script(value: object) -> str:
    """JSON that can neither end its script element nor open a comment there."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def script_digest(text: str) -> str:
    """The digest by which a policy allows a script to run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _column(values: "pd.Series[Any]") -> Any:  # noqa: ANN401 - JSON
    if values.dtype.kind in "fiu":
        return [None if pd.isna(value) else _short(float(value)) for value in values]
    codes, different = pd.factorize(np.array([str(value) for value in values], object))
    return {"texts": [*different], "at": codes.tolist()}


def _short(value: float) -> float | int:
    rounded = round(value, DECIMALS)
    return int(rounded) if rounded == int(rounded) else rounded
