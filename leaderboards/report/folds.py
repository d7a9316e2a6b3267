"""Blocks of pages as parts of the report that open and close, with nothing that leads out of the file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import count

from leaderboards.pages.html import block_html
from tasks.blocks import Block, Heading, Link, Numbers, Picture, Text

PICTURES = 1_500_000
"""Characters that all pictures of a page have together at most."""

TOO_LARGE = (
    "<p>A picture stands here on the page of <code>leaderboard --format html</code>; "
    "this report had no room for it.</p>"
)


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks under one heading.

    Attributes:
        title: The heading.
        blocks: What stands below it.
    """

    title: str
    blocks: tuple[Block, ...]


def folds(blocks: Iterable[Block], first: str, level: int = 2) -> list[Fold]:
    """Blocks by their headings down to a level; what stands before any is under the first title."""
    found: list[tuple[str, list[Block]]] = [(first, [])]
    for block in blocks:
        if isinstance(block, Heading) and block.level <= level:
            found.append((block.text, []))
        elif not isinstance(block, Numbers):
            found[-1][1].append(block)
    return [Fold(title, tuple(inner)) for title, inner in found if any(map(_speaks, inner))]


class Folder:
    """Writes folds as HTML and keeps count of what their pictures take.

    Args:
        room: Characters for pictures; those for which there is none are named, not drawn.
    """

    def __init__(self, room: int = PICTURES) -> None:
        self._room = room
        self._places: Iterator[int] = count()

    def html(self, parts: Sequence[Fold], *, pictures: bool = True) -> str:
        """Folds, all closed.

        Args:
            parts: The folds.
            pictures: Whether theirs are drawn.
        """
        return "".join(
            f"<details><summary>{escape(part.title)}</summary>\n{self._inner(part, pictures)}</details>\n"
            for part in parts
        )

    def _inner(self, part: Fold, pictures: bool) -> str:
        texts = (self._block(block, pictures) for block in part.blocks)
        return "".join(f"{text}\n" for text in texts if text)

    def _block(self, block: Block, pictures: bool) -> str:
        place = next(self._places)
        if isinstance(block, Picture):
            if not pictures:
                return ""
            text = block_html(block, None, place)
            if len(text) > self._room:
                return TOO_LARGE
            self._room -= len(text)
            return text
        return block_html(_inward(block), None, place)


def _inward(block: Block) -> Block:
    """A block whose links are mere text."""
    if not isinstance(block, Text):
        return block
    pieces = tuple(piece.text if isinstance(piece, Link) else piece for piece in block.pieces)
    return replace(block, pieces=pieces)


def _speaks(block: Block) -> bool:
    """Whether a block shows anything."""
    return not isinstance(block, Text) or bool(block.pieces)
