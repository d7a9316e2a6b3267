"""Blocks of pages as collapsible parts of the report, without links out of the file."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from markupsafe import Markup

from layerboard.leaderboards.blocks.blocks import Block, Heading, Numbers, Picture, Table, Text
from layerboard.leaderboards.charts.svg import svg_element
from layerboard.leaderboards.report.templates.environment import filled

ROOM = 1_500_000  # maximum characters of all pictures of a page together

Collapsible = tuple[str, list[Block]]  # a title and the blocks below it


def collapsibles(blocks: Iterable[Block], first: str, level: int = 2) -> list[Collapsible]:
    """Blocks grouped by headings down to a level; those before any heading are under the first title."""
    parts: list[Collapsible] = [(first, [])]
    for block in blocks:
        if isinstance(block, Heading) and block.level <= level:
            parts.append((block.text, []))
        elif not isinstance(block, Numbers) and not (isinstance(block, Text) and not any(block.pieces)):
            parts[-1][1].append(block)
    return [(title, inner) for title, inner in parts if inner]


class CollapsibleWriter:
    """Writes collapsible parts as HTML; pictures beyond the limit of characters are named, not drawn."""

    def __init__(self, backbones: Sequence[str], room: int = ROOM) -> None:
        self._backbones, self._room = backbones, room
        self._numbers: Iterator[int] = count()

    def html(self, parts: Sequence[Collapsible], *, pictures: bool = True) -> Markup:
        """Parts with their pictures or without; the first that has a table or a picture to show is open."""
        kinds = (Table, Picture) if pictures else (Table,)
        shows = (
            at for at, (_, blocks) in enumerate(parts) if any(isinstance(each, kinds) for each in blocks)
        )
        opened, drawn = next(shows, None), self._drawn if pictures else None
        return filled("collapsibles", parts=parts, opened=opened, drawn=drawn)

    def _drawn(self, picture: Picture) -> Markup | None:
        """A picture as SVG; None if the page has no room for it."""
        text = svg_element(picture, self._backbones, f"p{next(self._numbers)}-")
        if len(text) > self._room:
            return None
        self._room -= len(text)
        return Markup(text)  # noqa: S704 - escaped where it is written
