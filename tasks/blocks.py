"""What a page is made of, between records and text: no block and no picture holds the marks of any format.

Data, such as names and reasons, stand in blocks as they are; each writer escapes them once. A picture with a
``name`` may be written into a file of its own, ``name`` without an ending; one without it is shown only where
pictures stand on the page itself, and the tables beside it say the same.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

WIDTH = 105  # characters of a line of plain text
TIED = "≈"  # mark of a score that the data cannot tell from the best one

Numbers2D = NDArray[np.floating[Any]]
Rgb = NDArray[np.uint8]
Span = tuple[float, float]
Mark = Literal["best", "tied", "none"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table that may be the best of its row or column, or tied with that."""

    text: str
    mark: Mark = "none"


@dataclass(frozen=True, slots=True)
class Strong:
    """Words that stand out."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Something to be typed, or quoted as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a file beside the page, or to an http address."""

    text: str
    target: str


@dataclass(frozen=True, slots=True)
class Break:
    """A place where a line of plain text ends; where lines are filled by themselves, a space."""


Piece = str | Strong | Code | Link | Break


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading below the page's title; levels count from 2."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; one without any words is not written."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences: plain ones, or with links and words that stand out."""

    items: tuple[str | Text, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text and `Cell`, whose columns' names are its head."""

    frame: pd.DataFrame
    left: int = 1  # so many columns are aligned left, those after them right
    caption: str = ""  # says what is shown to those who cannot see where it stands
    head: int = 0  # the column that names the rows
    folded: bool = False  # whether it is hidden until its caption is clicked


@dataclass(frozen=True, slots=True)
class Numbers:
    """All numbers of a page as text, which it offers as the file ``name`` with an ending."""

    frame: pd.DataFrame
    name: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Numbers over one axis, in one panel or in small ones side by side that share a legend and the axis.

    The frame has the columns series (text), x and y (numbers; NaN leaves a gap), in the order of drawing, and
    where there are several panels, panel (text).
    """

    frame: pd.DataFrame
    kind: Literal["lines", "points"]  # lines with markers, or markers alone
    title: str
    x: str
    y: str
    shared: bool = True  # whether all panels have one vertical scale
    name: str = ""
    order: tuple[str, ...] = ()  # series by colour, also some without numbers; empty for the frame's order
    log: bool = False  # whether the horizontal axis is logarithmic


@dataclass(frozen=True, slots=True)
class Matrix:
    """A panel of a heat map: numbers [rows columns], the first row at the top; NaN leaves a hole."""

    title: str
    values: Numbers2D
    first: tuple[int, int] = (1, 1)  # numbers of the first row and of the first column


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Matrices with numbered axes and one bar of colours."""

    panels: tuple[Matrix, ...]
    title: str
    x: str  # below the columns
    y: str  # beside the rows
    unit: str  # what the bar says
    span: Span | None = None  # numbers at its ends, beyond which all look alike; None for lowest and highest
    name: str = ""


@dataclass(frozen=True, slots=True)
class SmallMap:
    """A map in a row and a column of a group."""

    panel: str
    row: str
    column: str
    values: NDArray[Any]  # numbers [height width], holes NaN, or colours [height width 3] to 255


@dataclass(frozen=True, slots=True)
class Maps:
    """Small maps in rows and columns, in groups side by side; all in the order of their first map."""

    maps: tuple[SmallMap, ...]
    title: str
    unit: str  # what colours say
    span: Span | None = None  # numbers at the ends of the colours; None where each map has its own
    name: str = ""


@dataclass(frozen=True, slots=True)
class Gallery:
    """Images, and what is looked at in each: bright where its map is high, dark where it is low."""

    images: Mapping[str, Rgb]  # [height width 3] for each group of maps, which lie over it
    maps: tuple[SmallMap, ...]
    title: str
    unit: str  # what brightness says
    name: str = ""


Picture = Plot | HeatMap | Maps | Gallery
Block = Heading | Text | Bullets | Table | Picture | Numbers


@dataclass(frozen=True, slots=True)
class Page:
    """Blocks from top to bottom below a title."""

    name: str  # of its files, without an ending
    title: str
    blocks: tuple[Block, ...]
    backbones: tuple[str, ...] = ()  # labels of its suite's, whose order gives each one colour everywhere

    @property
    def numbers(self) -> Numbers | None:
        """The numbers that it offers; None where it has none."""
        return next((block for block in self.blocks if isinstance(block, Numbers)), None)


def own_span(maps: Iterable[Numbers2D]) -> Span | None:
    """The lowest and the highest number of some maps; None where they have none."""
    finite = [values[np.isfinite(values)] for values in maps]
    ends = [(float(values.min()), float(values.max())) for values in finite if values.size]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def alternative(picture: Picture) -> str:
    """A picture in words, for those who cannot see it."""
    if isinstance(picture, Plot):
        beside = f"; side by side: {_listed(picture.frame['panel'])}" if "panel" in picture.frame else ""
        return f"{picture.title}. {picture.y} over {picture.x}: {_listed(picture.frame['series'])}{beside}"
    if isinstance(picture, HeatMap):
        panels = _listed(part.title for part in picture.panels)
        return f"{picture.title}. {picture.unit} by {picture.y} and {picture.x}: {panels}"
    rows, columns = (_listed(getattr(part, side) for part in picture.maps) for side in ("row", "column"))
    return f"{picture.title}. Maps; rows: {rows}; columns: {columns}"


def _listed(names: Iterable[object]) -> str:
    """Different names in their order."""
    return ", ".join(dict.fromkeys(str(name) for name in names))


_MARKED = re.compile(
    r"\*\*(?P<strong>.+?)\*\*|`(?P<code>.+?)`|\[(?P<text>[^\]]+)\]\((?P<target>[^)]+)\)|(?P<line>\n)",
    re.DOTALL,
)


def said(notation: str, **data: str) -> Text:
    """A paragraph of one of our own sentences: ``**strong**``, `code`, ``[text](target)`` and ``{data}``.

    Only sentences that stand in the source code are read so: data are filled in afterwards and never read as
    notation, whatever they contain; white space in them becomes single spaces. A line break ends a line of
    plain text.

    Raises:
        KeyError: A placeholder has no data.
    """
    filled = {name: " ".join(value.split()) for name, value in data.items()}
    pieces: list[Piece] = []
    end = 0
    for match in _MARKED.finditer(notation):
        pieces += [notation[end : match.start()].format(**filled), _marked(match, filled)]
        end = match.end()
    pieces.append(notation[end:].format(**filled))
    return Text(tuple(piece for piece in pieces if piece != ""))


def _marked(match: re.Match[str], data: dict[str, str]) -> Piece:
    if match["line"]:
        return Break()
    if match["strong"]:
        return Strong(match["strong"].format(**data))
    if match["code"]:
        return Code(match["code"].format(**data))
    return Link(match["text"].format(**data), match["target"].format(**data))


def wrapped(notation: str) -> Text:
    """A paragraph of our own sentences, without data, in lines of at most `WIDTH` characters."""
    return said(fill(notation, WIDTH, break_long_words=False, break_on_hyphens=False))


def slug(text: str) -> str:
    """Text as the name of a file and of an address; what has to change brings a digest of the whole."""
    plain = re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII).strip(".-")
    if plain == text and len(plain) <= 100:
        return plain
    return f"{plain[:80]}-{blake2b(text.encode(), digest_size=4).hexdigest()}"
