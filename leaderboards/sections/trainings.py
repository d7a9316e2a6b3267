"""The part on trainings of one network in the section on variants: what each changes, measured by CKA.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, figures 8
and 12 and appendix G.
"""

import re
from collections.abc import Collection, Mapping
from math import isnan

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, Table, said, slug
from layerboard.leaderboards.blocks.display import number_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import INTERVAL, between
from layerboard.leaderboards.sections.provenance import partial_line
from layerboard.leaderboards.sections.similarity import CkaTable, cka_tables
from layerboard.tasks.metrics.arrays import Floats, Integers, mean_of_any

PRIMARY = "patch"  # pooling that is drawn; others have tables

CHANGES = {
    r"seed\d+": "another seed",
    r"10pct": "a tenth of the data",
    r"mean": "class read from the mean of the patches",
    r"noskip(\d+)": "block {0} without skips",
    r"untrained": "untrained",
}
"""How a backbone's name goes on behind that of its reference, in the order of tables, and what it means."""

NOTE = """\
CKA of each block of `{reference}` with the same block of another training of the same network. Another seed
shows how similar two trainings can be; the untrained network shows how much similarity needs no training."""

PARTED = """\
A block without skip connections may split a network into two parts. `within` is the mean CKA of two
blocks on the same side of that block, `across` of two on different sides."""

Similarities = Mapping[int, tuple[float, float, float]]
"""By block, CKA with the same block of another backbone and its 95 % interval; NaN if not known."""


def trainings_of(names: Collection[str]) -> dict[str, dict[str, str]]:
    """For each backbone with retrained variants, these and what differs about each."""
    trainings = {
        name: {
            other: change.format(*match.groups())
            for pattern, change in CHANGES.items()
            for other in sorted(names)
            if other.startswith(f"{name}-") and (match := re.fullmatch(pattern, other[len(name) + 1 :]))
        }
        for name in sorted(names)
    }
    # an untrained network alone is no comparison
    return {name: others for name, others in trainings.items() if {*others.values()} - {"untrained"}}


def same_blocks(rows: pd.DataFrame, name: str, other: str) -> Similarities:
    """Similarity of the same blocks of two backbones, in order, by the CKA of one `CkaTable`."""
    pairs = _pairs(rows, name, other)
    fields = pairs[["layer", "other_layer", *INTERVAL]].itertuples(index=False, name=None)
    same = {int(layer): (value, low, high) for layer, at, value, low, high in fields if layer == at}
    unknown = np.nan, np.nan, np.nan
    return {int(layer): same.get(int(layer), unknown) for layer in sorted(set(pairs["layer"]))}


def partition_of(rows: pd.DataFrame, name: str, block: int) -> tuple[float, float]:
    """How a block, from 1, splits a backbone (`partition`), by the CKA of its blocks; NaN if unknown."""
    pairs = _pairs(rows, name, name, first=0)
    cka = pairs.pivot_table("value", "layer", "other_layer", aggfunc="first", dropna=False)
    layers = cka.index.to_numpy(np.int64)
    return partition(cka.reindex(columns=layers).to_numpy(float), layers, block)


def partition(cka: Floats, layers: Integers, block: int) -> tuple[float, float]:
    """Mean CKA of two layers on the same side of a block (numbered from 1), and on different sides.

    One side is the layers before the output of the block, the other side the rest. The difference of the two
    means is 1 for parts that share nothing, and 0 if the block separates nothing. A mean without pairs is
    NaN. ``cka`` [layers layers] is the CKA of the block outputs, NaN if undefined. ``layers`` are their
    distinct indices, where 0 is the input of block 1.
    """
    before, _ = np.meshgrid(layers < block, layers, indexing="ij")
    after = before.T
    upper = (layers[:, None] < layers[None, :]) & np.isfinite(cka)
    return mean_of_any(cka[upper & (before == after)]), mean_of_any(cka[upper & before & ~after])


def _pairs(rows: pd.DataFrame, name: str, other: str, first: int = 1) -> pd.DataFrame:
    """Comparisons of blocks of two backbones from a layer on, turned so that ``name`` comes first."""
    blocks = rows[(rows["tap"] == "block") & (rows["other_tap"] == "block") & (rows["metric"] == "CKA")]
    layers = ["layer", "other_layer"]
    pairs = between(blocks, name, other).drop_duplicates(layers)
    return pairs[(pairs[layers] >= first).all(axis=1)]


def training_blocks(board: Board) -> list[Block]:
    """What other trainings change, layer by layer; empty if no two of them were compared."""
    blocks: list[Block] = []
    for reference, others in trainings_of({*board.pairs["backbone"], *board.pairs["other"]}).items():
        for table in sorted(cka_tables(board), key=lambda table: table.pooling != PRIMARY):
            blocks += _table_blocks(table, reference, others)
    return blocks


def _table_blocks(table: CkaTable, reference: str, others: Mapping[str, str]) -> list[Block]:
    rows = table.rows
    trainings = {
        f"{name} ({change})": same
        for name, change in others.items()
        if (same := same_blocks(rows, reference, name))
    }
    if not trainings:
        return []
    title = f"Same blocks of {reference}: {table.title}"
    blocks: list[Block] = [Heading(3, title), said(NOTE, reference=reference)]
    if table.pooling == PRIMARY:
        every = trainings.items()
        points = [(label, block, cka) for label, same in every for block, (cka, *_) in same.items()]
        frame = pd.DataFrame(points, columns=["series", "x", "y"])
        name = slug(f"{reference}.{table.dataset_name}.{table.protocol}.same-blocks")
        blocks.append(Plot(frame, "lines", title, "block", "CKA", name=name))
    body = [
        {"training": label} | {str(block): number_text(*cka) for block, cka in same.items()}
        for label, same in trainings.items()
    ]
    columns = ["training", *map(str, sorted(set().union(*trainings.values())))]
    blocks += [Table(pd.DataFrame(body, columns=columns).fillna(""), caption=title), partial_line(rows)]
    if table.pooling == PRIMARY and len(parted := parting_table(rows, reference, others)):
        blocks += [said(PARTED), Table(parted, caption=f"{title}: blocks without skips")]
    return blocks


def parting_table(rows: pd.DataFrame, reference: str, others: Collection[str]) -> pd.DataFrame:
    """Variants without the skips of one block: how it splits them, and how it splits the reference."""
    body = []
    for name in others:
        if block := re.search(r"-noskip(\d+)$", name):
            within, across = partition_of(rows, name, int(block[1]))
            parted, whole = within - across, float(np.subtract(*partition_of(rows, reference, int(block[1]))))
            numbers = {"within": within, "across": across, "difference": parted}
            numbers |= {f"that of {reference}": whole, "more by": parted - whole}
            if not isnan(parted - whole):
                texts = {column: number_text(number) for column, number in numbers.items()}
                body.append({"backbone": name, "block": block[1]} | texts)
    return pd.DataFrame(body)
