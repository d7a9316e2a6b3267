"""The section on claims of papers: what the records of a suite say about each."""

from collections.abc import Sequence

from layerboard.leaderboards.blocks.blocks import (
    Block,
    Bullets,
    Heading,
    Link,
    Table,
    Text,
    heading_anchor,
    said,
)
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.claims.readings import Readings
from layerboard.leaderboards.claims.verdicts import Judgement, claim_table, counts_text, judgements_of
from layerboard.leaderboards.records.key import COMPARISON_TASK
from layerboard.leaderboards.sections.similarity import SIMILARITY_TITLE

CLAIMS_TITLE = "What papers claim, and what these records say"

NOTE = """\
Each claim is a number that is above 0 if it holds. It **holds** if the 95 % interval is above 0, **fails** if
the interval is below, and is **undecided** if it includes 0. A claim on all networks is as sure as its least
sure network, which is named, with its number. Where the unit is a layer or a head, the interval compares a
difference with the scatter of layers or heads: other trainings may differ by more. Each claim holds by
itself: of forty claims without anything in them, about one would hold."""


def claim_blocks(board: Board) -> list[Block]:
    """The section on claims; empty if none was measured."""
    judgements = judgements_of(board)
    measured = [judgement for judgement in judgements if judgement.effect is not None]
    if not measured:
        return []
    table = Table(claim_table(measured).drop(columns="unit"), left=6, caption=CLAIMS_TITLE, head=5)
    rests = Bullets(tuple(_rests(board, measured)))
    others = [each for each in judgements if each.effect is None]
    lacking = tuple(f"{each.claim.number}. {each.claim.words} {_sentence(each.reason)}" for each in others)
    blocks: list[Block] = [Heading(2, CLAIMS_TITLE), said(NOTE), said(counts_text(judgements)), table]
    blocks += [Heading(3, "Where the numbers of these claims are"), rests]
    return [*blocks, Heading(3, "Not measured here"), Bullets(lacking)] if lacking else blocks


def _sentence(reason: str) -> str:
    return f"{reason[0].upper()}{reason[1:]}.".replace("`", "")


def _rests(board: Board, judgements: Sequence[Judgement]) -> list[Text]:
    """The sections that have the numbers and figures of each task, and the claims that rest on it."""
    numbers: dict[str, list[int]] = {}
    for judgement in judgements:
        for task in judgement.claim.tasks:
            numbers.setdefault(task, []).append(judgement.claim.number)
    readings = Readings(board)
    return [
        Text((Link(*_place(readings, task)), f": {', '.join(map(str, claims))}"))
        for task, claims in sorted(numbers.items())
    ]


def _place(readings: Readings, task: str) -> tuple[str, str]:
    """Title and address of the section of a task."""
    if task == COMPARISON_TASK:
        return SIMILARITY_TITLE, heading_anchor(SIMILARITY_TITLE)
    if task in readings.evidence:
        title = readings.evidence[task].title
        return title, f"{readings.board.analyses.page}.md{heading_anchor(title)}"
    column = readings.columns[task]
    return column.heading, heading_anchor(column.title)
