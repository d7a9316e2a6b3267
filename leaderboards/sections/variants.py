"""The section on trainings of one network: what each changes, layer by layer, as CKA says.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, figures
8 and 12 and appendix G.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

import numpy as np
import pandas as pd

from leaderboards.board import Board
from leaderboards.display import similarity_text
from leaderboards.scores.frames import half_widths
from leaderboards.sections.provenance import partial_line
from leaderboards.sections.similarity import CkaTable, cka_tables
from tasks.blocks import Block, Heading, Plot, Table, said, slug
from tasks.metrics.locality import Partition, partition

PRIMARY = "patch"  # pooling that is drawn; of the others there are tables

NOTE = """\
CKA of each block of `{reference}` with the same block of another training of the same network: 1 where the
other training makes the same of the images. What another seed reaches is as alike as two trainings get; what
the untrained network reaches owes nothing to training."""

PARTED = """\
Without its skip connections a block may part a network in two. `within` is the mean CKA of two blocks on
one side of that block, `across` of two on different sides; their difference is 1 for two parts that share
nothing."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A training that differs from its reference."""

    name: str  # the backbone
    change: str  # what is different, in a few words
    # block that it was trained without skip connections in, from 1; 0 where all have them
    without_skip: int = 0


@dataclass(frozen=True, slots=True)
class TrainingVariants:
    """Trainings of one network."""

    reference: str  # the backbone that the others are compared with
    seed: str  # the same training from another seed: as alike as two trainings get; "" where there is none
    untrained: str  # the network with random weights: as alike as no training makes; "" where there is none
    variants: tuple[Variant, ...]  # trainings that differ

    @property
    def members(self) -> tuple[tuple[str, str], ...]:
        """Backbones beside the reference, and what is different about each."""
        named = tuple((variant.name, variant.change) for variant in self.variants)
        seed = ((self.seed, "another seed"),) if self.seed else ()
        return (*seed, *named, (self.untrained, "untrained"))


VARIANTS: tuple[TrainingVariants, ...] = (
    TrainingVariants(
        reference="mini-fs64",
        seed="mini-fs64-seed1",
        untrained="mini-fs64-untrained",
        variants=(
            Variant("mini-fs64-10pct", "a tenth of the data"),
            Variant("mini-fs64-mean", "class read from the mean of the patches"),
            Variant("mini-fs64-noskip6", "block 6 without skips", without_skip=6),
        ),
    ),
)
"""What pages compare where a suite has records of it."""


Similarities = Mapping[int, tuple[float, float]]
"""By block, CKA with the same block of another backbone and half its 95 % interval; NaN if not known."""


def same_blocks(rows: pd.DataFrame, name: str, other: str) -> Similarities:
    """How alike the same blocks of two backbones are, in the order of the blocks.

    Args:
        rows: Records of CKA of one dataset, protocol, pooling and set of images.
        name: A backbone.
        other: Another, of the same number of blocks or not; or the same.
    """
    pairs = _pairs(rows, name, other)
    spreads = half_widths(pairs)
    fields = zip(pairs["layer"], pairs["other_layer"], pairs["value"], spreads, strict=True)
    same = {int(layer): (float(value), float(spread)) for layer, at, value, spread in fields if layer == at}
    return {int(layer): same.get(int(layer), (np.nan, np.nan)) for layer in sorted(set(pairs["layer"]))}


def partition_of(rows: pd.DataFrame, name: str, block: int) -> Partition:
    """How a block parts a backbone, by the CKA of its blocks with each other; NaN where that is not known.

    Args:
        rows: Records of CKA of one dataset, protocol, pooling and set of images.
        name: The backbone.
        block: From 1.
    """
    pairs = _pairs(rows, name, name, first=0)
    layers = np.array(sorted(set(pairs["layer"])), np.int64)
    positions = {int(layer): position for position, layer in enumerate(layers)}
    cka = np.full((len(layers), len(layers)), np.nan)
    for row, column, value in zip(pairs["layer"], pairs["other_layer"], pairs["value"], strict=True):
        cka[positions[int(row)], positions[int(column)]] = value
    return partition(cka, layers, block)


def parting(rows: pd.DataFrame, recipe: TrainingVariants) -> list[tuple[Variant, Partition, Partition]]:
    """Variants without the skips of a block, with how it parts them and how it parts the reference."""
    parted = [
        (
            variant,
            partition_of(rows, variant.name, variant.without_skip),
            partition_of(rows, recipe.reference, variant.without_skip),
        )
        for variant in recipe.variants
        if variant.without_skip
    ]
    return [each for each in parted if not (isnan(each[1].score) or isnan(each[2].score))]


def _pairs(rows: pd.DataFrame, name: str, other: str, first: int = 1) -> pd.DataFrame:
    """Comparisons of blocks of two backbones from a layer on, turned so that the first stands first."""
    blocks = rows[(rows["tap"] == "block") & (rows["other_tap"] == "block") & (rows["metric"] == "CKA")]
    straight = blocks[(blocks["backbone"] == name) & (blocks["other"] == other)]
    turned = blocks[(blocks["backbone"] == other) & (blocks["other"] == name)]
    names = {"layer": "other_layer", "other_layer": "layer"}
    columns = ["layer", "other_layer", "value", "ci_low", "ci_high"]
    both = pd.concat([straight[columns], turned[columns].rename(columns=names)])
    both = both.drop_duplicates(["layer", "other_layer"])
    return both[(both["layer"] >= first) & (both["other_layer"] >= first)]


def variant_blocks(board: Board, recipes: tuple[TrainingVariants, ...] = VARIANTS) -> list[Block]:
    """The sections on trainings of one network; nothing where no two of them were compared.

    Args:
        board: Its comparisons are looked through.
        recipes: Which backbones are trainings of one network.
    """
    blocks: list[Block] = []
    for recipe in recipes:
        for table in sorted(cka_tables(board.pairs), key=lambda table: table.pooling != PRIMARY):
            blocks += _recipe_blocks(table.rows(board.pairs), recipe, table)
    return [Heading(2, "What another training changes"), *blocks] if blocks else []


def _trainings(rows: pd.DataFrame, recipe: TrainingVariants) -> Mapping[str, Similarities]:
    """For each other training in words, how alike its blocks are to the reference's."""
    there = {*rows["backbone"], *rows["other"]}
    if recipe.reference not in there:
        return {}
    trainings = {
        f"{name} ({change})": same_blocks(rows, recipe.reference, name)
        for name, change in recipe.members
        if name in there
    }
    return {label: blocks for label, blocks in trainings.items() if blocks}


def _recipe_blocks(rows: pd.DataFrame, recipe: TrainingVariants, table: CkaTable) -> list[Block]:
    trainings = _trainings(rows, recipe)
    if not trainings:
        return []
    title = f"Same blocks of {recipe.reference}: {table.title}"
    blocks: list[Block] = [Heading(3, title), said(NOTE, reference=recipe.reference)]
    primary = table.pooling == PRIMARY
    if primary:
        points = [
            (label, block, cka) for label, same in trainings.items() for block, (cka, _) in same.items()
        ]
        frame = pd.DataFrame(points, columns=["series", "x", "y"])
        name = slug(f"{recipe.reference}.{table.dataset_name}.{table.protocol}.same-blocks")
        blocks.append(Plot(frame, "lines", title, "block", "CKA", name=name))
    blocks += [Table(_same_table(trainings), caption=title), partial_line(rows)]
    parted = parting(rows, recipe) if primary else []
    if parted:
        body = [
            {
                "backbone": variant.name,
                "block": str(variant.without_skip),
                "within": similarity_text(parts.within),
                "across": similarity_text(parts.across),
                "difference": similarity_text(parts.score),
                f"that of {recipe.reference}": similarity_text(whole.score),
                "more by": similarity_text(parts.score - whole.score),
            }
            for variant, parts, whole in parted
        ]
        blocks += [said(PARTED), Table(pd.DataFrame(body), caption=f"{title}: blocks without skips")]
    return blocks


def _same_table(trainings: Mapping[str, Similarities]) -> pd.DataFrame:
    """A row a training, a column a block, as text."""
    blocks = sorted({block for same in trainings.values() for block in same})
    return pd.DataFrame(
        [
            {"training": label}
            | {str(block): similarity_text(*same[block]) if block in same else "" for block in blocks}
            for label, same in trainings.items()
        ]
    )
