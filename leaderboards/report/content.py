"""What the report says of one suite, before it is written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from leaderboards.answers import Answer, answers_of
from leaderboards.board import Board
from leaderboards.pages.tidy import inside_frame, tidy_frame
from leaderboards.report.cka import BlockCka, cka_matrices
from leaderboards.report.cost import BackboneCosts, costs_of
from leaderboards.report.frames import Facts, ReportFrames, frames_of
from tasks.blocks import Numbers


@dataclass(frozen=True, slots=True)
class Content:
    """Everything that is said of one suite, before it is written."""

    board: Board
    frames: ReportFrames
    answers: tuple[Answer, ...]
    costs: BackboneCosts
    cka: tuple[BlockCka, ...]
    cka_left_out: int  # matrices for which there is no room
    numbers: tuple[Numbers, ...]  # tables of all scores, analyses and costs, as on the leaderboard's pages

    @property
    def suite(self) -> str:
        return self.board.suite

    @property
    def labels(self) -> list[str]:
        """Labels of all backbones, by whose order they have their colours."""
        return [backbone.label for backbone in self.board.backbones if not backbone.floor]


def content_of(board: Board, facts: Mapping[str, Facts]) -> Content:
    """What is said of a board, given facts by backbone; published numbers only of these."""
    board = replace(board, published=()) if board.reproduced.empty else board
    numbers = [Numbers(tidy_frame(board), board.page)] if len(board.plain) else []
    numbers += [Numbers(inside_frame(board.analyses), f"{board.page}.inside")] if board.analyses else []
    numbers += [Numbers(inside_frame(board.costs), f"{board.page}.cost")] if board.costs else []
    said = frames_of(board, facts), answers_of(board), costs_of(board, facts), *cka_matrices(board)
    return Content(board, *said, tuple(numbers))
