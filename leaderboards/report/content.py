"""What the report says of one suite, before it is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from leaderboards.answers import Answer, answers_of
from leaderboards.board import Board
from leaderboards.display import cost_name, inside_name, page_name
from leaderboards.literature import Published
from leaderboards.pages.inside.tables import inside_frame
from leaderboards.pages.tidy import tidy_frame
from leaderboards.report.alike import Likeness, likeness
from leaderboards.report.board import ReportFrames, frames_of
from leaderboards.report.cost import Costs, costs_of
from leaderboards.report.facts import Facts
from leaderboards.report.section import Section
from tasks.blocks import Numbers


@dataclass(frozen=True, slots=True)
class Sources:
    """What a report is made of beside records; all of it may be missing.

    Attributes:
        items: Folder of the per-item measurements, by which backbones are compared.
        arrays: Folder of what analyses kept, of which pictures are drawn.
        facts: What is known of backbones, by name.
        published: Numbers of others.
        sections: Sections that others wrote, such as failures and successes.
    """

    items: Path | None = None
    arrays: Path | None = None
    facts: Mapping[str, Facts] = field(default_factory=dict)
    published: Sequence[Published] = ()
    sections: Sequence[Section] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """Everything that is said of one suite, before it is written.

    Attributes:
        board: What its records say.
        frames: Its scores as frames.
        answers: The best of each column.
        costs: What each depth costs.
        likeness: CKA.
        numbers: The tables of all numbers, as the leaderboard's pages have them: of scores, of analyses,
            of costs.
    """

    board: Board
    frames: ReportFrames
    answers: tuple[Answer, ...]
    costs: Costs
    likeness: Likeness
    numbers: tuple[Numbers, ...]

    @property
    def suite(self) -> str:
        """Its name."""
        return self.board.suite


def content_of(records: pd.DataFrame, suite: str, sources: Sources) -> Content:
    """What the records say of one suite.

    Args:
        records: Columns of `Record`; other suites are left out.
        suite: Name of the suite.
        sources: What else there is.
    """
    board = Board.of(records, suite, items=sources.items, arrays=sources.arrays, published=sources.published)
    if board.reproduced.empty:  # the report says nothing of numbers that are of other backbones
        board = replace(board, published=())
    costs = costs_of(board, sources.facts)
    return Content(
        board,
        frames_of(board, sources.facts),
        answers_of(board),
        costs,
        likeness(board),
        _numbers(board),
    )


def _numbers(board: Board) -> tuple[Numbers, ...]:
    """The tables of all numbers of a suite, of those kinds that it has."""
    analysed, costs = board.analysed, board.costs
    numbers = [Numbers(tidy_frame(board), page_name(board.suite))] if len(board.plain) else []
    numbers += [Numbers(inside_frame(analysed), inside_name(board.suite))] if len(analysed) else []
    return (*numbers, *([Numbers(inside_frame(costs), cost_name(board.suite))] if len(costs) else []))
