"""The last sections of a page: the provenance of its numbers, and its empty cells with their reasons."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Bullets, Heading, Table, Text, said
from layerboard.leaderboards.blocks.csv import numbers_text, text_digest
from layerboard.leaderboards.blocks.display import pooling_name, ranges_text, task_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.frames import SIDES
from layerboard.leaderboards.board.tidy import numbers_of
from layerboard.leaderboards.records.files import RESULTS_VERSION
from layerboard.leaderboards.records.key import COMPARISON_TASK
from layerboard.leaderboards.records.record import UNLIKE
from layerboard.tasks.framework.protocols import PROTOCOLS
from layerboard.zoo.errors import counted
from layerboard.zoo.spec import READ_TAPS

NOT_RUN = "not run"
NO_REASON = "no reason was recorded"


def provenance_blocks(board: Board) -> list[Block]:
    """The last sections of the page of a board, or of a part of it: its provenance, and what is missing."""
    records, numbers = board.records if board.part else board.plain, numbers_of(board)
    words = "{run} The numbers as a table: [{file}]({file}), SHA-256 {digest}."
    file, digest, run = f"{numbers.name}.csv", text_digest(numbers_text(numbers)), run_sentence(records)
    blocks = [
        Heading(2, "Where the numbers come from"),
        said(words, run=run, file=file, digest=digest),
        numbers,
        Table(_datasets_table(records), left=6, caption="What was read of each dataset"),
        *unlike_blocks(records),
        Table(_backbones_table(board, records), left=6, caption="Which weights were run"),
    ]
    gaps = empty_cells(board)
    return blocks + ([Heading(2, "Empty cells"), Bullets(tuple(gaps))] if gaps else [])


def unlike_blocks(records: pd.DataFrame) -> list[Block]:
    """Differences of the protocols of some records from their sources; empty if there are none."""
    present = set(records["protocol"].astype(str))
    protocols = [protocol for protocol in PROTOCOLS if protocol.name in present]
    notes = [f"{protocol.name}: {note}" for protocol in protocols for note in protocol.unlike]
    return list_blocks("Where a protocol differs from its source:", notes)


def _datasets_table(records: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "dataset": f"{dataset} †" if rows["partial"].any() else dataset,
            "split": split,
            "protocol": protocol,
            "used by": ", ".join(sorted({str(task) for task in rows["task"]}, key=task_rank)),
            "complete": "PARTIAL" if rows["partial"].any() else "yes",
            "what was there": join(rows["coverage"]),
        }
        for (dataset, split, protocol), rows in records.groupby(["dataset", "split", "protocol"], sort=True)
    )


def _backbones_table(board: Board, records: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "backbone": backbone.label,
            "revision": join(str(revision)[:12] for revision in rows["revision"]),
            "blocks": "" if backbone.floor else str(backbone.depth),
            "input": join(f"{size} px" for size in rows["input_size"]),
            "dtype": join(rows["dtype"]),
            "device": join(rows["device"]),
        }
        for backbone in board.backbones
        if len(rows := records[records["backbone"] == backbone.name])
    )


def run_sentence(records: pd.DataFrame) -> str:
    """Versions of this package and days of the scoring; "" without records."""
    if records.empty:
        return ""
    days = sorted({str(date)[:10] for date in records["date"]})
    period = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"
    version = f"{join(records['version'])}, results version {RESULTS_VERSION},"
    return f"Scored with layerboard {version} {period} (UTC)."


def units_text(rows: pd.DataFrame) -> str:
    """The number of units behind some scores: ``, n = 400 images``; "" if unknown."""
    rows = rows[rows["value"].notna()]
    texts = []
    for unit, counts in rows.groupby("unit", sort=True)["n"]:
        low, high = int(counts.min()), int(counts.max())
        texts.append(counted(low, str(unit)) if low == high else f"{low:,} to {high:,} {unit}")
    return f", n = {' or '.join(texts)}" if texts else ""


def partial_line(rows: pd.DataFrame) -> Text:
    """The meaning of the mark beside one table; empty if its data are complete."""
    partial = rows[rows["partial"].astype(bool)]
    return said("† PARTIAL data: {what}", what=join(partial["coverage"])) if len(partial) else Text(())


def join(values: Iterable[object]) -> str:
    """Distinct values in order, separated by commas."""
    return ", ".join(sorted({str(value) for value in values} - {""}))


def list_blocks(words: str, lines: Iterable[str]) -> list[Block]:
    """A sentence and the lines that it introduces; empty without lines."""
    items = tuple(lines)
    return [said(words), Bullets(items)] if items else []


class Gap(NamedTuple):
    """What missing numbers have in common; a pooling only if it needs naming."""

    backbone: str
    task: str
    dataset: str
    protocol: str
    pooling: str
    other: str
    reason: str


Layers = set[tuple[int, str]]  # numbers and taps; none where all of a backbone is missing
Gaps = Iterator[tuple[Gap, Layers]]


def empty_cells(board: Board) -> list[str]:
    """One sentence for each group of missing numbers that share backbone, task and reason, in order."""
    gaps: dict[Gap, Layers] = {}
    for gap, layers in chain(_of_analyses(board) if board.part else _of_scores(board), _unlike(board)):
        gaps.setdefault(gap, set()).update(layers)

    def place(gap: Gap) -> tuple[object, ...]:
        return task_rank(gap.task), gap[2:4], board.ranks[gap.backbone], gap[4:]

    return [_sentence(gap, gaps[gap], board.labels[gap.backbone]) for gap in sorted(gaps, key=place)]


def _of_scores(board: Board) -> Gaps:
    """Gaps of a leaderboard: analyses, transformed features and layer sets have no cells there."""
    poolings: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for column in board.columns:
        poolings[column.source[:3]] |= column.poolings
    compared = board.plain["task"] == COMPARISON_TASK
    rows = board.plain[board.plain["value"].isna() & ~compared]
    fields = ["backbone", "task", "dataset", "protocol", "pooling", "other", "reason", "layer", "tap"]
    for *values, layer, tap in rows[fields].itertuples(index=False, name=None):
        gap = Gap._make(values)
        usual = poolings[gap[1:4]].get(gap.backbone, gap.pooling)
        pooling = "" if gap.pooling == usual else gap.pooling
        yield gap._replace(pooling=pooling, reason=gap.reason or NO_REASON), {(int(layer), tap)}
    yield from _of_comparisons(board)
    for column in board.columns:
        yield from _not_run(board, column)


def _of_comparisons(board: Board) -> Gaps:
    """Gaps of comparisons: a layer that has none at all counts once, not in each of its comparisons.

    A pooling is named if others lack less.
    """
    by_pooling: dict[Gap, dict[str, Layers]] = defaultdict(lambda: defaultdict(set))
    poolings: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    keys = ["task", "dataset", "protocol", "data", "pooling"]
    for (*source, _, pooling), rows in board.pairs.groupby(keys):
        there, (task, dataset, protocol) = rows["value"].notna(), map(str, source)
        poolings[task, dataset, protocol].add(str(pooling))
        sides = [[*map(tuple, rows[names].to_numpy())] for names in SIDES]
        defined = {side for side, known in zip(chain(*sides), [*there] * 2, strict=True) if known}
        for first, second, known, reason in zip(*sides, there, rows["reason"], strict=True):
            undefined = {first, second} - defined
            for name, layer, tap in () if known else undefined or {first}:
                other = "" if undefined else second[0]
                gap = Gap(name, task, dataset, protocol, "", other, reason or NO_REASON)
                by_pooling[gap][str(pooling)].add((int(layer), tap))
    for gap, lacking in by_pooling.items():
        distinct = {frozenset(layers) for layers in lacking.values()}
        alike = len(distinct) == 1 and {*lacking} == poolings[gap[1:4]]
        for pooling, layers in lacking.items():
            yield gap if alike else gap._replace(pooling=pooling), layers


def _not_run(board: Board, column: Column) -> Gaps:
    """Backbones with blocks that have no record of a column.

    Backbones with scores on other data, which are shown separately, and random floors are left out.
    """
    same = [other for other in board.columns if other.source[:3] == column.source[:3] and other != column]
    elsewhere = {backbone.name for other in same for backbone in other.backbones}
    failed = {*column.rows.loc[column.rows["metric"] == "", "backbone"]}
    left_out = (elsewhere - {each.name for each in column.backbones}) | failed
    blocks = column.scored[column.scored["tap"] == "block"]
    scored = {str(name): {*map(int, layers)} for name, layers in blocks.groupby("backbone")["layer"]}
    for backbone in board.plain_backbones:
        there = scored.get(backbone.name, set())
        lacking = {*range(1, backbone.depth + 1)} - there
        if lacking and not backbone.floor and backbone.name not in left_out:
            gap = Gap(backbone.name, *column.source[:3], "", "", NOT_RUN)
            yield gap, {(layer, "block") for layer in lacking if there}


def _of_analyses(board: Board) -> Gaps:
    """Gaps of analyses or costs: a backbone without any number is named once, without layers."""
    for group in board.groups:
        by_name = dict(iter(group.rows.groupby("backbone")))
        for backbone in board.backbones:
            rows = by_name.get(backbone.name, group.rows[:0])
            gap = Gap(backbone.name, *group.source[:3], "", "", NOT_RUN)
            several = len(set(rows["pooling"])) > 1
            whole = not rows["value"].notna().any()
            missing = rows.loc[rows["value"].isna(), ["pooling", "reason", "layer", "tap"]]
            for pooling, reason, layer, tap in missing.itertuples(index=False, name=None):
                missed = gap._replace(pooling=pooling * (several and not whole), reason=reason or NO_REASON)
                yield missed, set() if whole else {(int(layer), tap)}
            if rows.empty and not backbone.floor and not (group.rows["other"] == backbone.name).any():
                yield gap, set()


def _unlike(board: Board) -> Gaps:
    """Backbones whose items, arrays or examples are not those that their records name, task by task."""
    reason = "its {kind} " + UNLIKE + " with its records and are not used; run again"
    for kind, subjects in board.unlike.items():
        for what in subjects:
            yield Gap(what.backbone, *what[2:5], "", what.other, reason.format(kind=kind)), set()


def _sentence(gap: Gap, layers: set[tuple[int, str]], label: str) -> str:
    blocks = [layer for layer, tap in layers if tap == "block" and layer >= 0]
    names = [ranges_text(blocks)] if blocks else []
    names += ["final"] if any(tap == "final" for _, tap in layers) else []
    for sublayer in READ_TAPS:
        if inside := [layer for layer, tap in layers if tap == sublayer]:
            # scores of no single block have a number below 0
            names.append(f"{sublayer} of {ranges_text(inside) if min(inside) >= 0 else 'all blocks'}")
    where = f", {'layer' if len(layers) == 1 else 'layers'} {', '.join(names)}" if names else ""
    how = f", {pooling_name(gap.pooling)}" if gap.pooling else ""
    label += f" with {gap.other}" if gap.other else ""
    what = f"{gap.task} on {gap.dataset} ({gap.protocol})"
    return f"{label}: {what}{how}{where}: {gap.reason.rstrip('.')}."
