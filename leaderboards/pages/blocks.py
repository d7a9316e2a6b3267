"""What a page is made of, between records and text: no block holds the marks of any format.

Data, such as names and reasons, stand in blocks as they are; each writer escapes them once.
"""

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from leaderboards.pages.pictures import Picture

TIED = "≈"
"""Mark of a score that the data cannot tell from the best one."""

Mark = Literal["best", "tied", "none"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table that may be marked; cells that never are may be plain text.

    Attributes:
        text: What it says.
        mark: Whether it is the best of its row or column, or cannot be told from that.
    """

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
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        frame: Cells that are text or `Cell`; the columns' names are its head.
        left: How many of the first columns are aligned left; the others are aligned right.
        caption: What it shows, for those who cannot see where it stands.
        head: Which column names its rows, from 0.
    """

    frame: pd.DataFrame
    left: int = 1
    caption: str = ""
    head: int = 0


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers that a page offers for download.

    Attributes:
        frame: All numbers as text, as the file has them.
        name: Name of the file, without an ending.
    """

    frame: pd.DataFrame
    name: str


Block = Heading | Text | Bullets | Table | Picture | Numbers


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        name: Name of its files, without an ending.
        title: Its heading.
        blocks: What stands on it, from top to bottom.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]

    @property
    def numbers(self) -> Numbers | None:
        """The numbers that it offers; None where it has none."""
        return next((block for block in self.blocks if isinstance(block, Numbers)), None)
