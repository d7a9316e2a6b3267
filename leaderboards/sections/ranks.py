"""The sections on what the data allow: by how much layers may be below the best, ranks, which tasks agree."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Cell, Heading, Table, said, section, wrapped
from layerboard.leaderboards.blocks.display import fixed, loss_text, rank_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.differences import best_side, items_of
from layerboard.leaderboards.sections.tables import board_table, cell_table
from layerboard.tasks.framework.assess import true_correlation
from layerboard.tasks.framework.base import Items
from layerboard.tasks.statistics.rank_correlation import Correlation
from layerboard.zoo.spec import Variant

LOSSES = "At most so many points below the best"

LOSSES_NOTE = """\
How far the layer of each backbone that the leaderboard shows may be below the true best of its column, at
most. All numbers of a column hold together with 95 % confidence, for every layer in every pooling, so they
also hold for a layer that was picked because it scores highest. 0.0: shown to be the best. The CSV file has
the number of every layer."""

RANKS = "Ranks that the data allow"

RANKS_NOTE = """\
The ranks that each backbone may truly have, at its truly best layer: `1st to 3rd` of seven means that no
backbone is shown to be better, and four are shown to be worse. Exactly those that may be the best, bold or
with `≈` in the leaderboard, may be 1st. All ranks of a column hold together with 95 % confidence. A backbone
is shown to be better than another if one of its layers is better than every layer of the other; all pairs of
layers in all poolings are tested at once. An empty cell: per-item scores of the same images are missing."""

AGREEMENT = "Does one task tell another?"

AGREEMENT_NOTE = """\
Rank correlation of the true scores of the backbones in two tasks, each at its best layer, with its 95 %
interval: 1 if both tasks rank the backbones alike, 0 if one tells nothing of the other. The noise of both
scores is taken out. The backbones are the sample: few of them leave wide intervals. Each pair holds by
itself. Empty: fewer than six backbones have both scores, or noise is more than a tenth of their variance."""
SURE = 0.5  # least lower end of the interval of two tasks that rank alike
ALIKE = "{first} and {second} rank backbones much alike, {text}: one of them may be enough."


def loss_blocks(board: Board) -> list[Block]:
    """The maximum loss of each backbone in each column; empty if no backbones were compared."""

    def cells(column: Column) -> dict[str, Cell]:
        losses = board.bounds[column.key].losses_of(column.best)
        named = zip(column.best["backbone"].astype(str), losses, strict=True)
        return {name: Cell(loss_text(loss)) for name, loss in named}

    table = board_table(board, cells, floor=False) if board.compared else pd.DataFrame()
    return section(Heading(2, LOSSES), wrapped(LOSSES_NOTE), Table(table, left=2, caption=LOSSES, head=1))


def rank_blocks(board: Board) -> list[Block]:
    """The first and last rank of each backbone in each column; empty if none are known."""
    columns = [each for each in board.columns if each.key in board.standings]
    cells = {
        (name, column.heading): rank_text(*ranks)
        for column in columns
        for name, ranks in board.standings[column.key].ranks.items()
    }
    table = cell_table(board.labels, [column.heading for column in columns], cells)
    return section(Heading(2, RANKS), wrapped(RANKS_NOTE), Table(table, caption=RANKS))


@lru_cache(maxsize=1)
def task_correlations(board: Board) -> Mapping[tuple[Column, Column], Correlation]:
    """The correlation of every two columns over the trained backbones that have items in both.

    Each backbone has the score of its best layer. Variants and checkpoints of one network are no sample of
    networks: the last one in table order counts. Pairs of columns are left out that have too few backbones,
    or too much noise (`true_rank_correlation`). A page and its report ask repeatedly.
    """
    trained = [each.name for each in board.scored_backbones if each.trained]
    networks = {*{Variant.of(name).checkpoint[0].entry: name for name in trained}.values()}
    items: dict[Column, dict[str, Items]] = {}
    for column in board.columns:
        sides = [best_side(column.best, name) for name in column.best["backbone"] if name in networks]
        measured = items_of(column, sides, board.items)
        items[column] = {side.backbone: each for side, each in measured.items()}
    correlations = {}
    for columns in combinations(board.columns, 2):
        first, second = columns
        names = [name for name in items[first] if name in items[second]]
        tasks = [([items[column][name] for name in names], column.metric) for column in columns]
        if correlation := true_correlation(tasks, same_data=first.dataset == second.dataset):
            correlations[columns] = correlation
    return correlations


def agreement_blocks(board: Board) -> list[Block]:
    """The correlation of every two columns; empty if none is known."""
    if not (correlations := task_correlations(board)):
        return []
    texts = {
        pair: "{} ({} to {})".format(*(fixed(number, 2) for number in each))
        for pair, each in correlations.items()
    }
    cells = {(second.heading, first.heading): text for (first, second), text in texts.items()}
    labels = {column.heading: column.heading for column in board.columns}
    table = cell_table(labels, (first for _, first in cells), cells, head="task")
    alike = [
        said(ALIKE, first=first.heading, second=second.heading, text=texts[first, second])
        for (first, second), each in correlations.items()
        if each.low >= SURE
    ]
    return section(Heading(2, AGREEMENT), wrapped(AGREEMENT_NOTE), *alike, Table(table, caption=AGREEMENT))
