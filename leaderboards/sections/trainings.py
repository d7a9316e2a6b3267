"""The part on trainings of one network in the section on variants: what each changes, measured by CKA.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, figures 8
and 12 and appendix G.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, HeatMap, Matrix, Plot, Table, said, slug
from layerboard.leaderboards.blocks.display import number_text, score_text, signed_text, task_display
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import INTERVAL, between
from layerboard.leaderboards.sections.provenance import partial_line
from layerboard.leaderboards.sections.similarity import CkaTable, cka_tables
from layerboard.tasks.metrics.arrays import Floats, Integers, mean_of_any
from layerboard.zoo.spec import UNTRAINED, Retraining, Variant

PRIMARY = "patch"  # pooling that is drawn; others have tables
ALL = (0.0, 1.0)  # range of the colours of maps

NOTE = """\
CKA of each block of `{reference}` with the same block of other trainings of this network, or of networks
that were trained on from it. Another seed shows how similar two trainings can be; the untrained network shows
how much similarity needs no training."""

MAPS = """\
CKA of all blocks of each of these networks with each other, from 0 to 1, block 1 at the bottom; its highest
score of {task}, in brackets the difference from that of `{reference}` (after Raghu et al., figure 8)."""

PARTED = """\
A block without skip connections may split a network into two parts. `within` is the mean CKA of two
blocks on the same side of that block, `across` of two on different sides."""


def trainings_of(board: Board) -> dict[str, dict[str, Retraining]]:
    """For each backbone of a board with other trainings, these by name.

    A variant of a backbone, such as another input size, is compared with the same variant of its reference.
    """
    trainings: dict[str, dict[str, Retraining]] = {}
    for entry, training in board.trainings.items():
        for name in board.labels:
            variant = Variant.of(name)
            reference = str(replace(variant, entry=training.reference))
            if variant.entry == entry and reference in board.labels:
                trainings.setdefault(reference, {})[name] = training
    # an untrained network alone is no comparison
    every = trainings.items()
    return {name: others for name, others in every if {each.change for each in others.values()} - {UNTRAINED}}


def same_blocks(rows: pd.DataFrame, name: str, other: str) -> dict[int, list[float]]:
    """CKA of the same blocks of two backbones, in order, with its 95 % interval; NaN if not known."""
    pairs = _pairs(rows, name, other)
    same = pairs.loc[pairs["layer"] == pairs["other_layer"], ["layer", *INTERVAL]]
    same = same.set_index("layer").reindex(sorted(set(pairs["layer"])))
    return {int(layer): numbers for layer, *numbers in same.itertuples(name=None)}


def partition_of(rows: pd.DataFrame, name: str, block: int) -> tuple[float, float]:
    """How a block, from 1, splits a backbone (`partition`), by the CKA of its blocks; NaN if unknown."""
    return partition(*_own_cka(rows, name), block)


def _own_cka(rows: pd.DataFrame, name: str) -> tuple[Floats, Integers]:
    """CKA of all blocks of a backbone, [layers layers], NaN if unknown, and the numbers of the layers."""
    pairs = _pairs(rows, name, name, first=0)
    cka = pairs.pivot_table("value", "layer", "other_layer", aggfunc="first", dropna=False)
    layers = cka.index.to_numpy(np.int64)
    return cka.reindex(columns=layers).to_numpy(float), layers


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
    for reference, others in trainings_of(board).items():
        for table in sorted(cka_tables(board), key=lambda table: table.pooling != PRIMARY):
            blocks += _table_blocks(board, table, reference, others)
    return blocks


def _table_blocks(
    board: Board, table: CkaTable, reference: str, others: Mapping[str, Retraining]
) -> list[Block]:
    rows, task = table.rows, accuracies(board, [reference, *others])
    trainings = {name: same for name in others if (same := same_blocks(rows, reference, name))}
    if not trainings:
        return []
    title = f"Same blocks of {reference}: {table.title}"
    labels = {name: f"{board.labels[name]} ({others[name].change})" for name in trainings}
    blocks: list[Block] = [Heading(3, title), said(NOTE, reference=reference)]
    name = f"{reference}.{table.dataset_name}.{table.protocol}"
    if table.pooling == PRIMARY:
        every = trainings.items()
        points = [(labels[other], block, cka) for other, same in every for block, (cka, *_) in same.items()]
        frame = pd.DataFrame(points, columns=["series", "x", "y"])
        blocks.append(Plot(frame, "lines", title, "block", "CKA", name=slug(f"{name}.same-blocks")))
    body = [
        {"training": labels[other]}
        | {heading: texts.get(other, "") for heading, texts in task.items()}
        | {str(block): number_text(*cka) for block, cka in same.items()}
        for other, same in trainings.items()
    ]
    columns = ["training", *task, *map(str, sorted(set().union(*trainings.values())))]
    blocks += [Table(pd.DataFrame(body, columns=columns).fillna(""), caption=title), partial_line(rows)]
    if table.pooling != PRIMARY:
        return blocks
    panels = _maps(rows, {reference: reference} | {other: board.labels[other] for other in others}, task)
    if len(panels) > 1:
        maps, file = f"Blocks of {reference} and its other trainings", slug(f"{name}.trainings")
        words = said(MAPS, task=next(iter(task), "the first task"), reference=reference)
        blocks += [words, HeatMap(panels, maps, "block", "block", "CKA", ALL, file)]
    if len(parted := parting_table(rows, reference, others)):
        blocks += [said(PARTED), Table(parted, caption=f"{title}: blocks without skips")]
    return blocks


def accuracies(board: Board, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The highest scores of some backbones in the first column on classes, by heading and name, as text.

    Of all but the first backbone, also the difference from its score. Empty without such scores.
    """
    for column in board.columns:
        values = dict(zip(column.best["backbone"], column.best["value"].astype(float), strict=True))
        if task_display(column.task).role == "classification" and (first := values.get(names[0])) is not None:
            scored = {name: values[name] for name in names if name in values}
            texts = {
                name: f"{score_text(each)} ({signed_text(each - first)})" for name, each in scored.items()
            }
            return {column.heading: texts | {names[0]: score_text(first)}}
    return {}


def _maps(
    rows: pd.DataFrame, labels: Mapping[str, str], task: Mapping[str, Mapping[str, str]]
) -> tuple[Matrix, ...]:
    """CKA of all blocks of each of some backbones, titled by its name and score."""
    scores, panels = next(iter(task.values()), {}), []
    for name, label in labels.items():
        cka, layers = _own_cka(rows, name)
        if len(layers):
            title = "\n".join(filter(None, (label, scores.get(name))))
            panels.append(Matrix(title, cka.round(6), (int(layers[0]), int(layers[0])), upward=True))
    return tuple(panels)


def parting_table(rows: pd.DataFrame, reference: str, others: Mapping[str, Retraining]) -> pd.DataFrame:
    """Variants without the skips of one block: how it splits them, and how it splits the reference."""
    body = []
    for name, training in others.items():
        if block := training.without_skips:
            within, across = partition_of(rows, name, block)
            parted, whole = within - across, float(np.subtract(*partition_of(rows, reference, block)))
            numbers = {"within": within, "across": across, "difference": parted}
            numbers |= {f"that of {reference}": whole, "more by": parted - whole}
            if not isnan(parted - whole):
                texts = {column: number_text(number) for column, number in numbers.items()}
                body.append({"backbone": name, "block": str(block)} | texts)
    return pd.DataFrame(body)
