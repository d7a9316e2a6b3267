"""The sections of a leaderboard, each a function of the board: pages and the report read this one list."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from leaderboards.board import Board
from leaderboards.sections.best import best_blocks
from leaderboards.sections.layers import layer_blocks
from leaderboards.sections.published import published_blocks
from leaderboards.sections.seen import seen_blocks
from leaderboards.sections.similarity import similarity_blocks
from leaderboards.sections.sizes import ceiling_blocks, size_blocks
from leaderboards.sections.transforms import set_blocks, transform_blocks
from leaderboards.sections.variants import variant_blocks
from tasks.blocks import Block

# where the report has a section: among what single layers at the usual size do not show, or the tables
Place = Literal["beyond", "tables"]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the leaderboard."""

    blocks: Callable[[Board], list[Block]]  # what stands in it; nothing where the board has nothing for it
    report: Place = "tables"  # where the report has it


# every section in the order of the page, before the one on where the numbers come from
SECTIONS: tuple[Section, ...] = (
    Section(best_blocks),
    Section(seen_blocks),
    Section(ceiling_blocks),
    Section(size_blocks, "beyond"),
    Section(layer_blocks),
    Section(set_blocks, "beyond"),
    Section(transform_blocks, "beyond"),
    Section(published_blocks),
    Section(similarity_blocks),
    Section(variant_blocks),
)


def section_blocks(board: Board, report: Place | None = None) -> list[Block]:
    """The blocks of the sections in their order: all of them, or those of one place of the report."""
    return [
        block for section in SECTIONS if report in (None, section.report) for block in section.blocks(board)
    ]
