"""The sections of a leaderboard, each a function of the board: pages and the report read this list."""

from collections.abc import Callable

from layerboard.leaderboards.blocks.blocks import Block
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.best import best_blocks
from layerboard.leaderboards.sections.ceilings import ceiling_blocks
from layerboard.leaderboards.sections.features import feature_blocks, vector_blocks
from layerboard.leaderboards.sections.layers import layer_blocks
from layerboard.leaderboards.sections.published import published_blocks
from layerboard.leaderboards.sections.ranks import agreement_blocks, loss_blocks, rank_blocks
from layerboard.leaderboards.sections.seen import seen_blocks
from layerboard.leaderboards.sections.series import series_blocks
from layerboard.leaderboards.sections.sets import set_blocks
from layerboard.leaderboards.sections.similarity import same_depth_blocks, similarity_blocks
from layerboard.leaderboards.sections.variants import variant_blocks

# what the report's charts of single layers of plain backbones do not show
BEYOND = (vector_blocks, series_blocks, set_blocks, feature_blocks, variant_blocks)
# every section in the order of the page, before the one on provenance: a function to its blocks, which are
# empty if the board has nothing for it
SECTIONS: tuple[Callable[[Board], list[Block]], ...] = (
    best_blocks,
    loss_blocks,
    rank_blocks,
    agreement_blocks,
    seen_blocks,
    ceiling_blocks,
    layer_blocks,
    *BEYOND,
    published_blocks,
    similarity_blocks,
    same_depth_blocks,
)
# sections without a table: the report has the matrices of every two backbones instead
PICTURED = (same_depth_blocks,)


def section_blocks(board: Board, *, beyond: bool | None = None) -> list[Block]:
    """The blocks of the sections in order: of all, or of those that are `BEYOND`, or of the other tables."""
    tables = [section for section in SECTIONS if section not in PICTURED]
    sections = SECTIONS if beyond is None else [each for each in tables if (each in BEYOND) == beyond]
    return [block for section in sections for block in section(board)]
