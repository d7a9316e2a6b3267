"""Which cells of the tables are empty, and why."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from leaderboards.choices.analyses import analyses_of
from leaderboards.choices.selection import (
    BoardBackbone,
    Column,
    backbones_of,
    columns_of,
    is_analysis,
    newest,
    primary_poolings,
)
from leaderboards.display import pooling_name, ranges_text, task_rank
from zoo.spec import SUBLAYER_TAPS

Key = tuple[str, str, str, str, str, str, str]
"""Backbone, task, dataset, protocol, pooling that needs naming, other backbone, reason."""

NOT_RUN = "not run"
NO_REASON = "no reason was recorded"


def empty_cells(records: pd.DataFrame) -> list[str]:
    """One sentence for each group of missing scores that share backbone, task and reason, in order.

    Analyses and transformed features have no cells on the leaderboard and are left out.
    """
    rows = newest(records[~is_analysis(records) & (records["transform"] == "")])
    backbones, scores = backbones_of(rows), rows[rows["other"] == ""]
    found: dict[Key, set[tuple[int, str]]] = defaultdict(set)
    columns = columns_of(scores)
    primary = {(column.task, column.dataset, column.protocol): column for column in columns}
    poolings: dict[tuple[str, str, str], dict[str, str]] = {key: {} for key in primary}
    for column in columns:
        poolings[column.task, column.dataset, column.protocol] |= primary_poolings(scores, column)
    fields = ["backbone", "task", "dataset", "protocol", "pooling", "other", "reason", "layer", "tap"]
    missing = rows.loc[rows["value"].isna(), fields]
    for backbone, task, dataset, protocol, pooling, other, reason, layer, tap in missing.itertuples(
        index=False
    ):
        usual = poolings.get((task, dataset, protocol), {}).get(backbone, pooling)
        named = "" if pooling == usual else pooling
        found[backbone, task, dataset, protocol, named, other, reason or NO_REASON].add((int(layer), tap))
    for column in columns:
        elsewhere = _in_other_columns(scores, column, columns)
        absent = [one for one in backbones if one.name not in elsewhere]
        for name, layers in _absent(column.rows(scores), column, absent):
            found[name, column.task, column.dataset, column.protocol, "", "", NOT_RUN] |= layers
    return _sentences(found, backbones)


def _in_other_columns(rows: pd.DataFrame, column: Column, columns: Sequence[Column]) -> set[str]:
    """Backbones whose scores are of other data than a column's and stand apart from it."""
    same = [one for one in columns if one.key[::2] == column.key[::2] and one.dataset == column.dataset]
    found = {name for one in same if one.data != column.data for name in one.rows(rows)["backbone"]}
    return found - set(column.rows(rows)["backbone"])


def empty_analyses(records: pd.DataFrame) -> list[str]:
    """The same of analyses; a backbone that an analysis says nothing about is named once, without layers.

    Args:
        records: Columns of `Record`, in any order; tasks that rank are left out.
    """
    rows = newest(records[is_analysis(records)])
    backbones = backbones_of(rows)
    found: dict[Key, set[tuple[int, str]]] = {}
    for one in analyses_of(rows):
        own = one.rows(rows)
        for backbone in backbones:
            of_backbone = own[own["backbone"] == backbone.name]
            several = len(set(of_backbone["pooling"])) > 1
            whole = not of_backbone["value"].notna().any()
            missing = of_backbone[of_backbone["value"].isna()]
            for pooling, reason, layer, tap in _missing(missing):
                named = pooling if several and not whole else ""
                key = (backbone.name, one.task, one.dataset, one.protocol, named, "", reason or NO_REASON)
                found.setdefault(key, set()).update(set() if whole else {(layer, tap)})
            compared = (own["other"] == backbone.name).any()
            if of_backbone.empty and not backbone.floor and not compared:
                found[backbone.name, one.task, one.dataset, one.protocol, "", "", NOT_RUN] = set()
    return _sentences(found, backbones)


def _missing(rows: pd.DataFrame) -> list[tuple[str, str, int, str]]:
    """Pooling, reason, layer and tap of some rows."""
    columns = [rows[column].tolist() for column in ("pooling", "reason", "layer", "tap")]
    return [(pooling, reason, int(layer), tap) for pooling, reason, layer, tap in zip(*columns, strict=True)]


def _sentences(found: Mapping[Key, set[tuple[int, str]]], backbones: Sequence[BoardBackbone]) -> list[str]:
    """Groups of missing numbers in words, in the order of the page."""
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones)}
    ordered = sorted(found, key=lambda key: (task_rank(key[1]), key[2:4], ranks[key[0]], key[4:]))
    labels = {backbone.name: backbone.label for backbone in backbones}
    return [_sentence(key, found[key], labels[key[0]]) for key in ordered]


def _absent(
    rows: pd.DataFrame, column: Column, backbones: Iterable[BoardBackbone]
) -> Iterable[tuple[str, set[tuple[int, str]]]]:
    """Backbones and their blocks that have no record of a column; no blocks where it has none at all."""
    for backbone in backbones:
        own = rows[rows["backbone"] == backbone.name]
        if backbone.floor or (own["metric"] == "").any():
            continue
        scored = own[(own["metric"] == column.metric) & (own["tap"] == "block")]
        there = {int(layer) for layer in scored["layer"]}
        lacking = {(layer, "block") for layer in range(1, backbone.depth + 1) if layer not in there}
        if lacking:
            yield backbone.name, lacking if there else set()


def _sentence(key: Key, layers: set[tuple[int, str]], label: str) -> str:
    """A group of missing scores in words."""
    _, task, dataset, protocol, pooling, other, reason = key
    blocks = [layer for layer, tap in layers if tap == "block" and layer >= 0]
    named = [ranges_text(blocks)] if blocks else []
    named += ["final"] if any(tap == "final" for _, tap in layers) else []
    inside = {one: [layer for layer, tap in layers if tap == one] for one in SUBLAYER_TAPS}
    named += [f"{tap} of {_blocks_text(found)}" for tap, found in inside.items() if found]
    where = f", {'layer' if len(layers) == 1 else 'layers'} {', '.join(named)}" if named else ""
    how = f", {pooling_name(pooling)}" if pooling else ""
    label += f" with {other}" if other else ""
    return f"{label}: {task} on {dataset} ({protocol}){how}{where}: {reason.rstrip('.')}."


def _blocks_text(layers: list[int]) -> str:
    """Numbers of blocks in words; scores of no single block have a number below 0."""
    return ranges_text(layers) if min(layers) >= 0 else "all blocks"
