"""What the report says of one suite, before it is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from leaderboards.choices.answers import Answer, answers
from leaderboards.choices.selection import is_analysis, is_plain, newest, score_rows
from leaderboards.choices.ties import ColumnTies, known_ties
from leaderboards.display import cost_name, inside_name, page_name
from leaderboards.literature import Published
from leaderboards.pages.inside.tables import inside_frame
from leaderboards.pages.tidy import tidy_frame
from leaderboards.records.record import of_suite
from leaderboards.report.alike import Likeness, likeness
from leaderboards.report.board import Board, board_of
from leaderboards.report.cost import Costs, costs_of
from leaderboards.report.facts import Facts
from leaderboards.report.section import Section
from leaderboards.scores.frames import is_cost
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
        suite: Its name.
        scores: Its newest records that rank, or compare layers.
        measured: Its newest scores, those of sets of layers and of transformed features among them.
        inside: Its newest records of analyses, but for those of costs.
        spent: Its newest records of costs.
        ties: For the `Column.key` of each column, what is tied with its best.
        answers: The best of each column.
        board: The scores as frames.
        costs: What each depth costs.
        likeness: CKA.
        numbers: The tables of all numbers, as the leaderboard's pages have them: of scores, of analyses,
            of costs.
    """

    suite: str
    scores: pd.DataFrame
    measured: pd.DataFrame
    inside: pd.DataFrame
    spent: pd.DataFrame
    ties: ColumnTies
    answers: tuple[Answer, ...]
    board: Board
    costs: Costs
    likeness: Likeness
    numbers: tuple[Numbers, ...]


def content_of(records: pd.DataFrame, suite: str, sources: Sources) -> Content:
    """What the records say of one suite.

    Args:
        records: Columns of `Record`; other suites are left out.
        suite: Name of the suite.
        sources: What else there is.
    """
    everything = newest(of_suite(records, suite))
    described = is_analysis(everything)
    measured = everything[~described]
    own = measured[is_plain(measured)]
    ties = known_ties(score_rows(own), sources.items)
    board = board_of(own, ties, sources.facts, sources.published)
    costs = costs_of(everything, sources.facts)
    spent = everything[is_cost(everything)]
    inner = everything[described & ~is_cost(everything)]
    numbers = _numbers(own, inner, spent, suite)
    found = tuple(answers(everything, ties))
    return Content(suite, own, measured, inner, spent, ties, found, board, costs, likeness(own), numbers)


def _numbers(own: pd.DataFrame, inside: pd.DataFrame, spent: pd.DataFrame, suite: str) -> tuple[Numbers, ...]:
    """The tables of all numbers of a suite, of those kinds that it has."""
    found = [Numbers(tidy_frame(own, suite), page_name(suite))] if len(own) else []
    found += [Numbers(inside_frame(inside, suite), inside_name(suite))] if len(inside) else []
    return (*found, *([Numbers(inside_frame(spent, suite), cost_name(suite))] if len(spent) else []))
