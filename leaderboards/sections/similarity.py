"""The section on CKA: how alike two layers are, within and across backbones."""

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import pooling_name, pooling_rank, similarity_text
from leaderboards.scores.frames import half_widths, pair_rows
from leaderboards.sections.provenance import partial_line, units_text
from tasks.blocks import Block, Heading, Table, said

NOTE = """\
CKA compares two layers, of one backbone or of two, by asking whether they find the same images alike: 1 is
the same up to rotation and scale, 0 is unrelated. It says how similar features are, not how good."""

NO_LAST_BLOCKS = "The last blocks were not compared, only other layers, whose numbers are in the records."


@dataclass(frozen=True, slots=True)
class CkaTable:
    """What one table of CKA is about."""

    dataset: str
    protocol: str
    pooling: str  # the tokens that were compared
    data: str = ""  # digest of the images
    apart: bool = False  # whether there are tables of the same dataset and protocol with other images

    @property
    def dataset_name(self) -> str:
        """The dataset, and its data where that tells tables apart."""
        return f"{self.dataset} [{self.data}]" if self.apart else self.dataset

    @property
    def title(self) -> str:
        return f"{pooling_name(self.pooling)}, {self.dataset_name} ({self.protocol})"

    def rows(self, pairs: pd.DataFrame) -> pd.DataFrame:
        same = (pairs["dataset"] == self.dataset) & (pairs["protocol"] == self.protocol)
        return pairs[same & (pairs["pooling"] == self.pooling) & (pairs["data"] == self.data)]


def cka_tables(pairs: pd.DataFrame) -> tuple[CkaTable, ...]:
    """One comparison for each dataset, protocol, pooling and set of images of records, in order."""
    columns = ["dataset", "protocol", "pooling", "data"]
    keys = [*pairs.loc[pairs["other"] != "", columns].drop_duplicates().itertuples(index=False, name=None)]
    several = Counter(key[:2] for key in {(key[0], key[1], key[3]) for key in keys})
    keys.sort(key=lambda key: (key[0], key[1] != "standard", key[1], pooling_rank(key[2]), key[3]))
    return tuple(
        CkaTable(dataset, protocol, pooling, digest, several[dataset, protocol] > 1)
        for dataset, protocol, pooling, digest in keys
    )


def similarity_blocks(board: Board) -> list[Block]:
    """The section on CKA; nothing where no layers were compared."""
    blocks: list[Block] = []
    for table in cka_tables(board.pairs):
        mark = " †" if table.rows(board.pairs)["partial"].any() else ""
        title = f"CKA: {table.title}{mark}"
        blocks += [Heading(3, title), *_table_blocks(board, table, title)]
    return [Heading(2, "How similar the backbones are (CKA)"), said(NOTE), *blocks] if blocks else []


def _table_blocks(board: Board, table: CkaTable, title: str) -> list[Block]:
    """The table of last blocks and the list of most similar blocks in one pooling."""
    rows, similar, lasts = table.rows(board.pairs), most_similar(board, table), last_table(board, table)
    if lasts.empty:
        return [said(NO_LAST_BLOCKS)]
    words = said("The last block of each backbone against each other's{units}:", units=units_text(rows))
    blocks: list[Block] = [words, Table(lasts, caption=f"{title}: last blocks"), partial_line(rows)]
    if len(similar):
        note = said("The most similar blocks of each two backbones:")
        blocks += [note, Table(similar, caption=f"{title}: most similar blocks")]
    return blocks


def last_table(board: Board, table: CkaTable) -> pd.DataFrame:
    """CKA of each backbone's last block with each other's, symmetric, as text; ± is half an interval."""
    rows = table.rows(board.last_blocks)
    backbones = board.backbones_in(rows)
    cells: dict[tuple[str, str], str] = {}
    fields = rows[["backbone", "other", "value"]].assign(spread=half_widths(rows))
    for first, second, value, spread in fields.itertuples(index=False, name=None):
        text = similarity_text(value) if first == second else similarity_text(value, spread)
        cells[first, second] = cells[second, first] = text
    frame = pd.DataFrame({"": [backbone.label for backbone in backbones]})
    for backbone in backbones:
        frame[backbone.label] = [cells.get((row.name, backbone.name), "") for row in backbones]
    return frame


def most_similar(board: Board, table: CkaTable) -> pd.DataFrame:
    """For each two different backbones their most similar blocks, the most similar two first, as text.

    Blocks count from 1; ties go to the lower layers; the random floor takes no part.
    """
    depths = {backbone.name: backbone.depth for backbone in board.backbones}
    floors = {backbone.name for backbone in board.backbones if backbone.floor}
    rows = pair_rows(table.rows(board.pairs), board.backbones)
    rows = rows[(rows["tap"] == "block") & (rows["other_tap"] == "block")]
    rows = rows[(rows["layer"] >= 1) & (rows["other_layer"] >= 1) & rows["value"].notna()]
    rows = rows[(rows["backbone"] != rows["other"]) & ~rows[["backbone", "other"]].isin(floors).any(axis=1)]
    rows = rows.sort_values(["value", "layer", "other_layer"], ascending=[False, True, True], kind="stable")
    rows = rows.drop_duplicates(["backbone", "other"])

    fields = rows[["backbone", "layer", "other", "other_layer", "value"]].assign(spread=half_widths(rows))
    body = [
        (
            *(board.labels[name], f"{layer}/{depths[name]}", board.labels[other], f"{at}/{depths[other]}"),
            similarity_text(value, spread),
        )
        for name, layer, other, at, value, spread in fields.itertuples(index=False, name=None)
    ]
    return pd.DataFrame(body, columns=["backbone", "block", "other backbone", "its block", "CKA"])
