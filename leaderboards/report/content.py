"""What the report says of one suite, before it is written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from leaderboards.answers import Answer, answers_of
from leaderboards.board import Board
from leaderboards.display import cost_name, inside_name, page_name
from leaderboards.pages.inside.tables import inside_frame
from leaderboards.pages.tidy import tidy_frame
from leaderboards.report.cka import BlockCkas, cka_matrices
from leaderboards.report.cost import BackboneCosts, costs_of
from leaderboards.report.frames import Facts, ReportFrames, frames_of
from tasks.blocks import Numbers


@dataclass(frozen=True, slots=True)
class Content:
    """Everything that is said of one suite, before it is written.

    ``numbers`` are the tables of all numbers as the leaderboard's pages have them: of scores, of analyses, of
    costs.
    """

    board: Board
    frames: ReportFrames
    answers: tuple[Answer, ...]
    costs: BackboneCosts
    cka: BlockCkas
    numbers: tuple[Numbers, ...]

    @property
    def suite(self) -> str:
        """Name of the suite."""
        return self.board.suite

    @property
    def labels(self) -> list[str]:
        """Labels of all backbones, by whose order they have their colours."""
        return [backbone.label for backbone in self.board.backbones if not backbone.floor]


def content_of(board: Board, facts: Mapping[str, Facts]) -> Content:
    """What is said of a board.

    Args:
        board: What the records of a suite say; numbers of others are left out where none is of its backbones.
        facts: What is known of backbones, by name.
    """
    board = replace(board, published=()) if board.reproduced.empty else board
    frames, costs = frames_of(board, facts), costs_of(board, facts)
    return Content(board, frames, answers_of(board), costs, cka_matrices(board), _numbers(board))


def _numbers(board: Board) -> tuple[Numbers, ...]:
    """The tables of all numbers of a suite, of those kinds that it has."""
    analysed, costs = board.analysed, board.costs
    numbers = [Numbers(tidy_frame(board), page_name(board.suite))] if len(board.plain) else []
    numbers += [Numbers(inside_frame(analysed), inside_name(board.suite))] if len(analysed) else []
    return (*numbers, *([Numbers(inside_frame(costs), cost_name(board.suite))] if len(costs) else []))
