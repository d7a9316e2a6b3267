"""What an analysis leaves to draw: its numbers, its arrays and the backbones that they are of."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leaderboards.choices.analyses import Analysis
from leaderboards.choices.selection import BoardBackbone, backbones_of
from leaderboards.pages.notation import said
from leaderboards.records.files import scored_path, task_key
from tasks.blocks import Text

Array = NDArray[np.generic]
Floats = NDArray[np.float64]

SHARES = {"first": 0.0, "1/4": 0.25, "1/2": 0.5, "3/4": 0.75, "last": 1.0}
"""How deep the blocks lie that stand for a network of any depth: the number of blocks less one is 1."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One analysis of one suite.

    Attributes:
        one: Which.
        rows: Its records of one backbone each that have a number, of all metrics, layers, taps, poolings and
            heads.
        pairs: Those that compare two backbones, each as a whole.
        folder: Folder of arrays of the records' run; None where it is not known.
    """

    one: Analysis
    rows: pd.DataFrame
    pairs: pd.DataFrame
    folder: Path | None

    @property
    def backbones(self) -> tuple[BoardBackbone, ...]:
        """The backbones that some number is of, in the order of the tables."""
        return shown(self.rows if len(self.rows) else self.pairs)

    @property
    def place(self) -> str:
        """The analysis in words, as titles of figures end."""
        return f"{self.one.task} on {self.one.place} ({self.one.protocol})"

    def title(self, what: str) -> str:
        """Title of a figure."""
        return f"{what}: {self.place}"

    def name(self, what: str) -> str:
        """Name of a figure's file, which no other figure of the page has."""
        parts = [
            self.one.task,
            self.one.dataset,
            self.one.protocol,
            *([self.one.data] if self.one.apart else []),
        ]
        return slug(".".join([*parts, what]))

    def select(self, metric: str, **where: str | int) -> pd.DataFrame:
        """Rows of one metric and of single blocks; of all heads together unless ``head`` says else."""
        return choose(self.rows, metric, **where)

    def of_heads(self, metric: str, **where: str | int) -> pd.DataFrame:
        """Rows of one metric and of single heads."""
        rows = self.rows[(self.rows["metric"] == metric) & (self.rows["head"] >= 0)]
        return _where(rows, where)

    def array(self, backbone: BoardBackbone, name: str, axes: int) -> Array | None:
        """An array of a backbone with so many axes; None where there is none, or none that can be read."""
        return self.array_of((backbone.name,), name, axes)

    def array_of(self, backbones: tuple[str, ...], name: str, axes: int) -> Array | None:
        """The same of a comparison of two backbones, by their names in order."""
        if self.folder is None:
            return None
        key = task_key(self.one.task, self.one.dataset, self.one.protocol)
        try:
            with np.load(self.folder / scored_path(key, *backbones, ending="npz")) as archive:
                found: Array = archive[name]
        except (OSError, ValueError, KeyError, BadZipFile):
            return None
        return found if found.ndim == axes and found.size else None

    def numbers(self, name: str, axes: int) -> dict[BoardBackbone, Floats]:
        """An array of each backbone that has it, as float64."""
        found = {one: self.array(one, name, axes) for one in self.backbones}
        return {one: np.asarray(values, np.float64) for one, values in found.items() if values is not None}

    def blocks(self, backbone: BoardBackbone, count: int) -> list[int]:
        """Which blocks the first axis of a backbone's arrays is of: array ``block``, else counted from 1."""
        found = self.array(backbone, "block", 1)
        if found is None or len(found) != count:
            return list(range(1, count + 1))
        return [int(block) for block in found]

    def grid(self, backbone: BoardBackbone, patches: int) -> tuple[int, int]:
        """Rows and columns of a backbone's patches: array ``cells``, else a square, else one row."""
        cells = self.array(backbone, "cells", 1)
        if cells is not None and len(cells) == 2:
            rows, columns = (int(side) for side in cells)
            if rows * columns == patches:
                return rows, columns
        side = round(patches**0.5)
        return (side, side) if side * side == patches else (1, patches)

    def lacking(self, what: str, found: Mapping[BoardBackbone, object] | Sequence[BoardBackbone]) -> Text:
        """The sentence on backbones that a figure leaves out for want of arrays; no words where none is."""
        names = [one.label for one in self.backbones if one not in found]
        if not names:
            return Text(())
        return said(
            "{what} of {names} cannot be drawn: their arrays are not beside the records.",
            what=what,
            names=", ".join(names),
        )


def choose(rows: pd.DataFrame, metric: str, **where: str | int) -> pd.DataFrame:
    """Rows of one metric and of single blocks; of all heads together unless ``head`` says else."""
    rows = rows[(rows["metric"] == metric) & (rows["layer"] >= 0)]
    return _where(rows, {"head": -1} | where)


def shown(rows: pd.DataFrame) -> tuple[BoardBackbone, ...]:
    """The backbones that some rows are of, in the order of the tables."""
    names = set(rows["backbone"])
    return tuple(one for one in backbones_of(rows) if one.name in names)


def by_layer(rows: pd.DataFrame) -> list[tuple[int, float]]:
    """Layers and numbers in order."""
    return sorted(
        (int(layer), float(value)) for layer, value in zip(rows["layer"], rows["value"], strict=True)
    )


def deep(count: int) -> dict[str, int]:
    """Places among so many blocks that stand for all of them, evenly, by how deep they are; none twice.

    Where two shares fall on one block, the name of an end or of the middle stays.
    """
    places: dict[int, str] = {}
    for name in ("first", "last", "1/2", "1/4", "3/4"):
        places.setdefault(round(SHARES[name] * (count - 1)), name)
    return {name: place for place, name in sorted(places.items())}


def evenly(count: int, most: int) -> list[int]:
    """At most so many of so many places, evenly, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})


def slug(text: str) -> str:
    """Text as the name of a file and of an address; what has to change brings a digest of the whole."""
    plain = re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII).strip(".-")
    if plain == text and len(plain) <= 100:
        return plain
    return f"{plain[:80]}-{blake2b(text.encode(), digest_size=4).hexdigest()}"


def _where(rows: pd.DataFrame, where: Mapping[str, str | int]) -> pd.DataFrame:
    """Rows with those values in some columns."""
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows
