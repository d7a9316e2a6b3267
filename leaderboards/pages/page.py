"""A suite's leaderboard: records to a page, the same blocks for the same records in any order."""

from collections.abc import Sequence

import pandas as pd

from leaderboards.choices.gaps import empty_cells
from leaderboards.choices.selection import columns_of, is_analysis, is_plain, newest, score_rows
from leaderboards.choices.ties import Compared, known_folder, known_ties
from leaderboards.display import inside_name, page_name
from leaderboards.literature import Published
from leaderboards.pages.allowed import allowed_blocks
from leaderboards.pages.best import best_blocks
from leaderboards.pages.layers import layer_blocks
from leaderboards.pages.notation import said
from leaderboards.pages.provenance import provenance_blocks
from leaderboards.pages.published import published_blocks
from leaderboards.pages.seen import seen_blocks
from leaderboards.pages.sets import set_blocks
from leaderboards.pages.similarity import similarity_blocks
from leaderboards.pages.sizes import size_blocks
from leaderboards.pages.tidy import tidy_frame
from leaderboards.pages.transforms import transform_blocks
from leaderboards.pages.twins import twin_blocks
from leaderboards.pages.wording import ELSEWHERE
from leaderboards.records.record import of_suite
from tasks.blocks import Block, Bullets, Heading, Numbers, Page


def leaderboard_page(
    records: pd.DataFrame, suite: str, compared: Compared = None, published: Sequence[Published] = ()
) -> Page:
    """The leaderboard of one suite.

    Args:
        records: Columns of `Record`; other suites and analyses are left out.
        suite: Name of the suite.
        compared: By what backbones are compared.
        published: Numbers of others that stand beside those measured here.
    """
    everything = newest(of_suite(records, suite))
    inside = is_analysis(everything)
    own = everything[~inside & is_plain(everything)]
    blocks: list[Block] = []
    columns = columns_of(own)
    if columns:
        scores = score_rows(own)
        ties = known_ties(scores, compared)
        blocks += [*best_blocks(scores, columns, ties), *seen_blocks(own)]
        blocks += [*allowed_blocks(scores, columns), *size_blocks(scores, known_folder(compared))]
        blocks += layer_blocks(scores, columns)
    blocks += set_blocks(everything[~inside], known_folder(compared))
    blocks += transform_blocks(everything[~inside], known_folder(compared))
    blocks += [*published_blocks(own, published), *similarity_blocks(own), *twin_blocks(own)]
    if inside.any():
        blocks.append(said(ELSEWHERE, name=inside_name(suite)))
    name = page_name(suite)
    blocks += provenance_blocks(own, Numbers(tidy_frame(records, suite), name))
    blocks += gap_blocks(empty_cells(own))
    return Page(name, f"Leaderboard: {suite}", tuple(blocks))


def gap_blocks(sentences: list[str]) -> list[Block]:
    """The section on empty cells, where there are any."""
    return [Heading(2, "Empty cells"), Bullets(tuple(sentences))] if sentences else []
