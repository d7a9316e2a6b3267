"""Records to tables of CKA: how alike two layers are, within and across backbones."""

from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.selection import UNKNOWN_DATA, BoardBackbone, backbones_of, half_widths, pair_rows
from leaderboards.display import COMPARISON_TASK, pooling_name, pooling_rank, similarity_text
from leaderboards.pages.notation import said
from leaderboards.pages.provenance import partial_line, units_text
from leaderboards.pages.wording import CKA_NOTE
from tasks.blocks import Block, Heading, Table


@dataclass(frozen=True, slots=True)
class CkaTable:
    """What one table of CKA is about."""

    dataset: str
    protocol: str
    pooling: str
    data: str = ""
    apart: bool = False
    """Whether there are tables of the same dataset and protocol with other images."""

    @property
    def place(self) -> str:
        """The dataset, and its data where that tells tables apart."""
        return f"{self.dataset} [{self.data or UNKNOWN_DATA}]" if self.apart else self.dataset

    def rows(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Its rows of the records that compare layers."""
        same = (pairs["dataset"] == self.dataset) & (pairs["protocol"] == self.protocol)
        return pairs[same & (pairs["pooling"] == self.pooling) & (pairs["data"] == self.data)]


def cka_tables(records: pd.DataFrame) -> tuple[CkaTable, ...]:
    """One comparison for each dataset, protocol, pooling and set of images, in order."""
    pairs = records[records["other"] != ""]
    columns = ["dataset", "protocol", "pooling", "data"]
    keys = [*pairs[columns].drop_duplicates().itertuples(index=False, name=None)]
    ordered = sorted(
        keys, key=lambda key: (key[0], key[1] != "standard", key[1], pooling_rank(key[2]), key[3])
    )
    several = {key[:2] for key in keys if len({other[3] for other in keys if other[:2] == key[:2]}) > 1}
    return tuple(
        CkaTable(dataset, protocol, pooling, data, (dataset, protocol) in several)
        for dataset, protocol, pooling, data in ordered
    )


def similarity_blocks(records: pd.DataFrame) -> list[Block]:
    """The section on CKA; nothing where no layers were compared."""
    tables = cka_tables(records)
    if not tables:
        return []
    blocks: list[Block] = [Heading(2, "How similar the backbones are (CKA)"), said(CKA_NOTE)]
    for one in tables:
        rows = one.rows(records[records["task"] == COMPARISON_TASK])
        mark = " †" if rows["partial"].any() else ""
        title = f"CKA: {pooling_name(one.pooling)}, {one.place} ({one.protocol}){mark}"
        blocks += [Heading(3, title), *_table_blocks(records, one, rows, title)]
    return blocks


def _table_blocks(records: pd.DataFrame, one: CkaTable, rows: pd.DataFrame, title: str) -> list[Block]:
    """The table of last blocks and the list of most similar blocks in one pooling."""
    similar, lasts = most_similar(records, one), cka_table(records, one)
    if lasts.empty:
        return [
            said("The last blocks were not compared, only other layers, whose numbers are in the records.")
        ]
    units = units_text(rows)
    blocks: list[Block] = [
        said(
            "The last block of each backbone against each other's{units}:",
            units=f", {units}" if units else "",
        ),
        Table(lasts, caption=f"{title}: last blocks"),
        partial_line(rows),
    ]
    if len(similar):
        blocks += [
            said("The most similar blocks of each two backbones:"),
            Table(similar, caption=f"{title}: most similar blocks"),
        ]
    return blocks


def last_blocks(records: pd.DataFrame) -> pd.DataFrame:
    """The comparisons of two backbones' last blocks, with the columns of `Record`."""
    backbones = backbones_of(records)
    depths = {backbone.name: backbone.depth for backbone in backbones}
    pairs = records[
        (records["other"] != "") & (records["tap"] == "block") & (records["other_tap"] == "block")
    ]
    pairs = pairs[pairs["layer"] == pairs["backbone"].map(depths)]
    return pair_rows(pairs[pairs["other_layer"] == pairs["other"].map(depths)], backbones)


def cka_table(records: pd.DataFrame, comparison: CkaTable) -> pd.DataFrame:
    """CKA of each backbone's last block with each other's, symmetric, as text; ± is half an interval."""
    rows = comparison.rows(last_blocks(records))
    names = {*rows["backbone"], *rows["other"]}
    backbones = [backbone for backbone in backbones_of(records) if backbone.name in names]
    cells: dict[tuple[str, str], str] = {}
    fields = rows[["backbone", "other", "value"]].assign(spread=half_widths(rows))
    for first, second, value, spread in fields.itertuples(index=False, name=None):
        text = similarity_text(value) if first == second else similarity_text(value, spread)
        cells[first, second] = cells[second, first] = text
    table = pd.DataFrame({"": [backbone.label for backbone in backbones]})
    for backbone in backbones:
        table[backbone.label] = [cells.get((row.name, backbone.name), "") for row in backbones]
    return table


def most_similar(records: pd.DataFrame, comparison: CkaTable) -> pd.DataFrame:
    """For each two different backbones their most similar blocks, the most similar two first.

    Blocks count from 1; ties go to the lower layers; the random floor takes no part.

    Returns:
        Columns backbone, block, other backbone, its block, CKA; as text, blocks as ``layer/depth``.
    """
    backbones = backbones_of(records)
    known = {backbone.name: backbone for backbone in backbones}
    floors = {backbone.name for backbone in backbones if backbone.floor}
    rows = pair_rows(comparison.rows(records[records["other"] != ""]), backbones)
    rows = rows[(rows["tap"] == "block") & (rows["other_tap"] == "block")]
    rows = rows[(rows["layer"] >= 1) & (rows["other_layer"] >= 1) & rows["value"].notna()]
    rows = rows[(rows["backbone"] != rows["other"]) & ~rows["backbone"].isin(floors)]
    rows = rows[~rows["other"].isin(floors)]
    rows = rows.sort_values(["value", "layer", "other_layer"], ascending=[False, True, True], kind="stable")
    rows = rows.drop_duplicates(["backbone", "other"])
    return pd.DataFrame(
        {
            "backbone": [known[name].label for name in rows["backbone"]],
            "block": _blocks(known, rows["backbone"], rows["layer"]),
            "other backbone": [known[name].label for name in rows["other"]],
            "its block": _blocks(known, rows["other"], rows["other_layer"]),
            "CKA": [
                similarity_text(value, spread)
                for value, spread in zip(rows["value"], half_widths(rows), strict=True)
            ],
        }
    )


def _blocks(known: dict[str, BoardBackbone], names: "pd.Series[str]", layers: "pd.Series[int]") -> list[str]:
    """Blocks as ``layer/depth``."""
    return [f"{layer}/{known[name].depth}" for name, layer in zip(names, layers, strict=True)]
