"""Writing the numbers of a page as CSV, and reading such a CSV."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.blocks import Numbers, Page
from layerboard.zoo.errors import InputError, first_line, inert, printable, restored
from layerboard.zoo.reading import read_regular

LARGEST = 2**28  # bytes of a table that is read

SUMS = "SHA256SUMS"  # file of digests beside exported files, for `sha256sum --check`


def csv_page(page: Page) -> str:
    """The CSV of the numbers of a page; "" if it has none."""
    return numbers_text(page.numbers) if page.numbers else ""


@lru_cache(maxsize=4)  # a page names the digest of the file that is written after it
def numbers_text(numbers: Numbers) -> str:
    """The CSV of the numbers of a page."""
    return csv_text(numbers.frame)


def csv_text(frame: pd.DataFrame) -> str:
    """A frame as the text of a CSV file, with an apostrophe before formulas; `read_csv_table` removes it."""
    cells = frame.astype(object).rename(columns=inert)  # object keeps whole numbers beside missing ones
    for name, column in cells.items():  # most texts are there many times, and few are formulas
        texts = {cell for cell in column if isinstance(cell, str)}
        if formulas := {cell: inert(cell) for cell in texts if inert(cell) != cell}:
            cells[name] = column.replace(formulas)
    return printable(cells.to_csv(index=False, lineterminator="\n"))


def text_digest(text: str) -> str:
    """First digits of the SHA-256 of a CSV, by which a page identifies its numbers."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def sums_text(texts: Mapping[str, str]) -> str:
    """Digests of some files by name, one per line."""
    return "".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in texts.items())


def read_numbers(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Those columns of a CSV that was written from numbers, as text; raises InputError for any other file."""
    try:
        frame = read_csv_table(path)
        if np.isinf(pd.to_numeric(frame["value"])).any():
            raise ValueError("a value is infinite")
    except (OSError, ValueError, KeyError) as error:
        problem = f"expected a leaderboard table in {path} but cannot read it: {first_line(error)}"
        raise InputError(f"{problem}; write it again") from error
    if not {*columns} <= {*frame.columns}:
        raise InputError(f"expected the columns {', '.join(columns)} in {path}; write it again")
    return frame[[*columns]]


def read_csv_table(path: Path) -> pd.DataFrame:
    """Text of a CSV that `csv_text` wrote; raises OSError or ValueError for any other file."""
    text = read_regular(path, LARGEST).decode()
    frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    return frame.map(restored).rename(columns=restored)
