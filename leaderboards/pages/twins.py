"""Records to tables of several trainings of one network: what each changes, layer by layer."""

import pandas as pd

from leaderboards.choices.selection import newest
from leaderboards.choices.twins import RECIPES, LayerMatch, Recipe, matches, parting
from leaderboards.display import COMPARISON_TASK, pooling_name, similarity_text
from leaderboards.pages.notation import said
from leaderboards.pages.provenance import partial_line
from leaderboards.pages.similarity import CkaTable, cka_tables
from tasks.blocks import Block, Heading, Plot, Table, slug

PRIMARY = "patch"
"""Pooling that is drawn; of the others there are tables."""

NOTE = """\
CKA of each block of `{reference}` with the same block of another training of the same network: 1 where the
other training makes the same of the images. What another seed reaches is as alike as two trainings get; what
the untrained network reaches owes nothing to training."""

PARTED = """\
Without its skip connections a block may part a network in two. `within` is the mean CKA of two blocks on
one side of that block, `across` of two on different sides; their difference is 1 for two parts that share
nothing."""


def twin_blocks(records: pd.DataFrame, recipes: tuple[Recipe, ...] = RECIPES) -> list[Block]:
    """The sections on trainings of one network; nothing where no two of them were compared.

    Args:
        records: Columns of `Record`.
        recipes: Which backbones are trainings of one network.
    """
    rows = newest(records[records["task"] == COMPARISON_TASK])
    blocks: list[Block] = []
    for recipe in recipes:
        for one in sorted(cka_tables(rows), key=lambda table: table.pooling != PRIMARY):
            blocks += _recipe_blocks(one.rows(rows), recipe, one)
    return [Heading(2, "What another training changes"), *blocks] if blocks else []


def same_layers(rows: pd.DataFrame, recipe: Recipe) -> dict[str, tuple[LayerMatch, ...]]:
    """For each other training in words, how alike its blocks are to the reference's."""
    there = {*rows["backbone"].tolist(), *rows["other"].tolist()}
    if recipe.reference not in there:
        return {}
    found = {
        f"{name} ({change})": matches(rows, recipe.reference, name)
        for name, change in recipe.members
        if name in there
    }
    return {label: each for label, each in found.items() if each}


def _recipe_blocks(rows: pd.DataFrame, recipe: Recipe, one: CkaTable) -> list[Block]:
    found = same_layers(rows, recipe)
    if not found:
        return []
    title = f"Same blocks of {recipe.reference}: {pooling_name(one.pooling)}, {one.place} ({one.protocol})"
    blocks: list[Block] = [Heading(3, title), said(NOTE, reference=recipe.reference)]
    if one.pooling == PRIMARY:
        points = [(label, each.layer, each.same) for label, every in found.items() for each in every]
        frame = pd.DataFrame(points, columns=["series", "x", "y"])
        name = slug(f"{recipe.reference}.{one.place}.{one.protocol}.same-blocks")
        blocks.append(Plot(frame, "lines", title, "block", "CKA", name=name))
    blocks += [Table(_same_table(found), caption=title), partial_line(rows)]
    parted = parting(rows, recipe) if one.pooling == PRIMARY else []
    if parted:
        body = [
            {
                "backbone": variant.name,
                "block": str(variant.without_skip),
                "within": similarity_text(own.within),
                "across": similarity_text(own.across),
                "difference": similarity_text(own.score),
                f"that of {recipe.reference}": similarity_text(full.score),
                "more by": similarity_text(own.score - full.score),
            }
            for variant, own, full in parted
        ]
        blocks += [said(PARTED), Table(pd.DataFrame(body), caption=f"{title}: blocks without skips")]
    return blocks


def _same_table(found: dict[str, tuple[LayerMatch, ...]]) -> pd.DataFrame:
    """A row a training, a column a block, as text."""
    layers = sorted({each.layer for every in found.values() for each in every})
    body = []
    for label, every in found.items():
        cells = {each.layer: similarity_text(each.same, each.spread) for each in every}
        body.append({"training": label} | {str(layer): cells.get(layer, "") for layer in layers})
    return pd.DataFrame(body)
