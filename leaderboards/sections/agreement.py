"""The section on which tasks rank the backbones alike: correlations of true scores in every two columns."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said, section, wrapped
from layerboard.leaderboards.blocks.display import fixed
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.board.differences import SIDE, items_of
from layerboard.leaderboards.sections.tables import cell_table
from layerboard.tasks.framework.assess import true_correlation
from layerboard.tasks.framework.base import Items
from layerboard.tasks.statistics.rank_correlation import Correlation
from layerboard.zoo.spec import Variant

TITLE = "Does one task tell another?"

NOTE = """\
Rank correlation of the true scores of the backbones in two tasks, each at its best layer, with its 95 %
interval: 1 if both tasks rank the backbones alike, 0 if one tells nothing of the other. The noise of both
scores is taken out. The backbones are the sample: few of them leave wide intervals. Each pair holds by
itself. Empty: fewer than six backbones have both scores, or noise is more than half of their differences."""
LEAST = "If only two tasks are run, {first} and {second} tell most: they agree least, {text}."


@lru_cache(maxsize=1)
def task_correlations(board: Board) -> Mapping[tuple[Column, Column], Correlation]:
    """The correlation of every two columns over the trained backbones that have items in both.

    Each backbone has the score of its best layer. Variants and checkpoints of one network are no sample of
    networks: the last one in table order counts. Pairs of columns are left out that have too few backbones,
    or too much noise (`true_rank_correlation`). A page and its report ask repeatedly.
    """
    trained = [each.name for each in board.scored_backbones if each.trained]
    networks = {Variant.of(name).checkpoint[0].entry: name for name in trained}
    items = {column: _best_items(board, column, {*networks.values()}) for column in board.columns}
    correlations = {}
    for columns in combinations(board.columns, 2):
        first, second = columns
        names = [name for name in items[first] if name in items[second]]
        tasks = [([items[column][name] for name in names], column.metric) for column in columns]
        if correlation := true_correlation(tasks, same_data=first.dataset == second.dataset):
            correlations[columns] = correlation
    return correlations


def _best_items(board: Board, column: Column, names: set[str]) -> dict[str, Items]:
    """Items of the best layer of each of some backbones, by name."""
    rows = column.best.loc[column.best["backbone"].isin(names), SIDE]
    sides = [Side(*fields) for fields in rows.itertuples(index=False, name=None)]
    return {side.backbone: each for side, each in items_of(column, sides, board.items).items()}


def agreement_blocks(board: Board) -> list[Block]:
    """The correlation of every two columns; empty if none is known."""
    if not (correlations := task_correlations(board)):
        return []
    cells = {(second.heading, first.heading): _text(each) for (first, second), each in correlations.items()}
    labels = {column.heading: column.heading for column in board.columns}
    table = cell_table(labels, (first for _, first in cells), cells, head="task")
    (first, second), least = min(correlations.items(), key=lambda pair: pair[1].high)
    advice = said(LEAST, first=first.heading, second=second.heading, text=_text(least))
    return section(Heading(2, TITLE), wrapped(NOTE), advice, Table(table, caption=TITLE))


def _text(correlation: Correlation) -> str:
    value, low, high = (fixed(number, 2) for number in correlation)
    return f"{value} ({low} to {high})"
