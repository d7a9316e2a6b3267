"""Blocks of a page, between records and text, independent of any output format.

Data, such as names and reasons, are in blocks as they are; each writer escapes them once. A picture with a
``name`` (without an extension) may be written to a file of its own. One without a name is shown only if
pictures are on the page itself, next to tables with the same numbers.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

WIDTH = 105  # characters of a line of plain text
MAYBE = "≈"  # mark of a score that may be the best (`NOT_WORSE`)

Numbers2D = NDArray[np.floating[Any]]
Rgb = NDArray[np.uint8]
Span = tuple[float, float]
Mark = Literal["best", "maybe", "none"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table, which is the best of its row or column, may be the best, or is neither."""

    text: str
    mark: Mark = "none"
    note: str = ""  # less important words after it
    value: float = math.nan  # the number that it shows, by which a reader can sort; NaN for none

    @property
    def words(self) -> str:
        """The text with its note."""
        return f"{self.text} {self.note}" if self.note else self.text


@dataclass(frozen=True, slots=True)
class Marked:
    """Words of a paragraph with a meaning of their own, or a line break."""

    kind: str  # strong, code, link or break, which is a space in formats that wrap lines themselves
    text: str = ""
    target: str = ""  # of a link: a file next to the page, or an http address


Strong = partial(Marked, "strong")  # words that stand out
Code = partial(Marked, "code")  # text to be typed, or a literal quotation
Link = partial(Marked, "link")

Piece = str | Marked


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading below the page's title; levels start at 2."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; an empty one is not written."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences, which may contain links and emphasis."""

    items: tuple[str | Text, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text and `Cell`, with the column names as its header."""

    frame: pd.DataFrame
    left: int = 1  # number of left-aligned columns; the others are right-aligned
    caption: str = ""  # description for readers who cannot see the context of the table
    head: int = 0  # index of the column with the row names
    folded: bool = False  # whether the table is hidden until its caption is clicked


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """All numbers of a page as text, offered as the file ``name`` plus an extension."""

    frame: pd.DataFrame
    name: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot over one axis, in one panel or in small panels side by side with a shared legend and axis.

    The frame has the columns series (text), x and y (numbers; NaN leaves a gap), in drawing order, and, for
    several panels, panel (text); with low and high (numbers; NaN for none), each marker has an interval; by
    scale (text), the panels that are not ``shared`` are grouped.
    """

    frame: pd.DataFrame
    kind: Literal["lines", "points"]  # lines with markers, or markers alone
    title: str
    x: str
    y: str
    shared: bool = True  # whether all panels have one vertical scale, otherwise those of one ``scale``
    name: str = ""
    order: tuple[str, ...] = ()  # series in order of colour, also those without numbers; empty: frame order
    log: bool = False  # whether the horizontal axis is logarithmic


@dataclass(frozen=True, slots=True)
class Matrix:
    """A panel of a heat map: numbers [rows columns]; NaN is left blank.

    Rows and columns are numbered, or have ``names`` and axes with ``titles`` of their own.
    """

    title: str
    values: Numbers2D
    first: tuple[int, int] = (1, 1)  # numbers of the first row and of the first column
    names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    titles: tuple[str, str] = ("", "")
    line: tuple[float, ...] = ()  # for each row the column, from 0, through which a line runs; NaN for none
    upward: bool = False  # whether the first row is at the bottom, as blocks of networks are, or at the top


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Matrices with numbered axes and one colour bar."""

    panels: tuple[Matrix, ...]
    title: str
    x: str  # label of the columns
    y: str  # label of the rows
    unit: str  # label of the colour bar
    span: Span | None = None  # range of the colours, clipped beyond; None for minimum and maximum
    name: str = ""


@dataclass(frozen=True, slots=True)
class SmallMap:
    """A map in a row and a column of a group."""

    panel: str
    row: str
    column: str
    values: NDArray[Any]  # numbers [height width], NaN for blanks, or colours [height width 3], 0 to 255
    kind: str = ""  # of `Maps.kinds`, by whose colour it is framed; "" for no frame


@dataclass(frozen=True, slots=True)
class Maps:
    """Small maps in rows and columns, in groups side by side; each in the order of first appearance.

    If groups have images, their maps lie over these: bright where a map is high, and dark where it is low.
    """

    maps: tuple[SmallMap, ...]
    title: str
    unit: str  # what colours mean; over images what brightness says
    span: Span | None = None  # range of the colours; None for a range per map
    name: str = ""
    kinds: tuple[str, ...] = ()  # of its maps in the order of the legend; the last one is grey
    dense: bool = False  # whether maps are small, so that many fit into a line
    images: Mapping[str, Rgb] = field(default_factory=dict)  # [height width 3], of all groups or of none


Picture = Plot | HeatMap | Maps
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
        """The numbers that the page offers; None if it has none."""
        return next((block for block in self.blocks if isinstance(block, Numbers)), None)


def section(lead: Heading | Text, *blocks: Block) -> list[Block]:
    """Blocks below a heading or a paragraph, without empty tables; none if only words would be left."""
    filled = [block for block in blocks if not isinstance(block, Table) or len(block.frame)]
    return [lead, *filled] if any(not isinstance(block, Text) for block in filled) else []


def alternative(picture: Picture) -> str:
    """Alternative text of a picture."""
    if isinstance(picture, Plot):
        beside = f"; side by side: {_listed(picture.frame['panel'])}" if "panel" in picture.frame else ""
        return f"{picture.title}. {picture.y} over {picture.x}: {_listed(picture.frame['series'])}{beside}"
    if isinstance(picture, HeatMap):
        panels = _listed(part.title or " and ".join(part.titles) for part in picture.panels)
        axes = f"{picture.y} and {picture.x}" if picture.x else "layers"
        return f"{picture.title}. {picture.unit} by {axes}: {panels}"
    rows, columns = (_listed(getattr(part, side) for part in picture.maps) for side in ("row", "column"))
    return f"{picture.title}. Maps; rows: {rows}; columns: {columns}"


def _listed(names: Iterable[object]) -> str:
    """Distinct names in order, as text."""
    return ", ".join(dict.fromkeys(str(name) for name in names))


_MARKED = re.compile(
    r"\*\*(?P<strong>.+?)\*\*|`(?P<code>.+?)`|\[([^\]]+)\]\((?P<link>[^)]+)\)|\n(?P<break>)", re.DOTALL
)


def said(notation: str, **data: str) -> Text:
    """A paragraph from a sentence with ``**strong**``, `code`, ``[text](target)`` and ``{data}``.

    The sentence must come from the source code. Data are filled in afterwards and never parsed as notation;
    their white space becomes single spaces. A line break in the sentence ends a line of plain text.

    Raises:
        KeyError: Data for a placeholder are missing.
    """
    filled = {name: " ".join(value.split()) for name, value in data.items()}
    pieces: list[Piece] = []
    end = 0
    for match in _MARKED.finditer(notation):
        words = [text.format(**filled) for text in match.groups() if text]
        pieces += [notation[end : match.start()].format(**filled), Marked(str(match.lastgroup), *words)]
        end = match.end()
    pieces.append(notation[end:].format(**filled))
    return Text(tuple(piece for piece in pieces if piece != ""))


def wrapped(notation: str) -> Text:
    """A paragraph from notation without data, wrapped to lines of at most `WIDTH` characters."""
    return said(fill(notation, WIDTH, break_long_words=False, break_on_hyphens=False))


def slug(text: str) -> str:
    """Text as a file name and address; if characters must be replaced, a digest of the text is appended."""
    plain = re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII).strip(".-")
    if plain == text and len(plain) <= 100:
        return plain
    return f"{plain[:80]}-{blake2b(text.encode(), digest_size=4).hexdigest()}"
