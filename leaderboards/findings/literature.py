"""What the literature says: all published numbers by groups that may be ranked, and scores of last blocks."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd

from layerboard.leaderboards.blocks.display import fixed, metric_rank, task_display, task_rank
from layerboard.leaderboards.board.frames import best_rows, candidates
from layerboard.leaderboards.published.literature import INPUT_SIZE, SOURCES, Published

LEAST_GAIN = 1.0  # points, or percent of an error, by which an earlier layer must be better
OF_LAST = ("last", "final")  # rules of scores of the last block, before or behind the final norm
RUN = "this run"  # in place of a source: the records of an output folder

COLUMNS = (
    *("task", "dataset", "metric", "group", "networks", "rank", "backbone", "registered", "value"),
    *("decimals", "better", "layer", "depth", "rule", "pooling", "measured", "protocol", "input_size"),
    "transform",
    *("source", "table", "publication", "second_hand", "own", "not_comparable", "conditions"),
)
"""Columns of `literature`: ``networks`` is how many the group ranks, ``measured`` how it was measured."""

LAST_COLUMNS = (
    *("backbone", "task", "dataset", "metric", "published", "layer", "depth", "gain", "unit", "better_by"),
)
"""Columns of `last_layer_only`: ``published`` of the last block, ``layer`` a better one, in ``better_by``."""


def literature(published: Iterable[Published], depths: Mapping[str, int]) -> pd.DataFrame:
    """Every published number, sorted by task, group and score: columns `COLUMNS`.

    Numbers of one group have the same task, data, metric, protocol (or, without one, source and conditions),
    resolution and transform, and all are of the best layer, or none is. Only these may be ranked:
    ``rank`` is 1 for the best, and missing in groups of one network and for draws of a floor. ``depths`` are
    the numbers of blocks of the registry's backbones. A group is named by its task and a number; those of
    more networks come first.
    """
    groups: dict[tuple[object, ...], list[Published]] = {}
    for number in published:
        groups.setdefault(_group(number), []).append(number)
    rows = []
    ordered = sorted(groups.values(), key=_group_order)
    for task, parts in groupby(ordered, key=lambda group: group[0].task):
        for count, group in enumerate(parts, start=1):
            rows += _ranked(group, f"{task} {count}", depths)
    whole = dict.fromkeys(("layer", "depth", "rank"), "Int64")
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(whole)


def _group(number: Published) -> tuple[object, ...]:
    """What numbers that may be ranked have in common."""
    how = (number.protocol,) if number.comparable else (number.source, number.table, number.conditions)
    chosen = number.rule in ("best", "draws")
    same = (number.task, number.dataset, number.metric, number.printed == "error", chosen)
    return (*same, *how, number.input_size, number.transform)


def _group_order(group: Sequence[Published]) -> tuple[object, ...]:
    first = group[0]
    kind = (task_rank(first.task), first.dataset, metric_rank(first.task, first.metric))
    return (*kind, -_networks(group), first.source, first.conditions)


def _networks(group: Iterable[Published]) -> int:
    return len({number.backbone for number in group if number.rule != "draws"})


def _ranked(group: Sequence[Published], name: str, depths: Mapping[str, int]) -> list[dict[str, Any]]:
    """The rows of a group, the best first."""
    sign, networks = (1 if group[0].printed == "error" else -1), _networks(group)
    group = sorted(group, key=lambda number: (sign * number.value, number.backbone))
    trained = [sign * number.value for number in group if number.rule != "draws"]
    rows = []
    for number in group:
        ranks = networks > 1 and number.rule != "draws"
        row = {column: getattr(number, column, None) for column in COLUMNS}
        rows.append(
            row
            | {"group": name, "networks": networks, "measured": measured_text(number)}
            | {"rank": 1 + sum(value < sign * number.value for value in trained) if ranks else None}
            | {"registered": number.backbone in depths, "depth": depths.get(number.backbone)}
            | {"better": "lower" if number.printed == "error" else "higher"}
            | {"publication": SOURCES.get(number.source, number.source)}
        )
    return rows


def measured_text(number: Published) -> str:
    """How a number was measured, in the words of its protocol, or of its source without one."""
    how = number.protocol if number.comparable else number.conditions or "not said"
    size = "" if number.input_size == INPUT_SIZE else f"{number.input_size} px"  # the usual one says nothing
    return ", ".join(filter(None, (how, number.transform, size, "best layer" * (number.rule == "best"))))


def layer_text(row: Mapping[Hashable, Any]) -> str:
    """The layer of a row of `literature`, as its source printed it."""
    depth = "" if pd.isna(row["depth"]) else f" of {row['depth']}"
    if not pd.isna(row["layer"]):
        return f"{row['layer']}{depth}"
    last = f"{row['depth']}{depth}" if depth else "last"
    names = {"last": last, "final": f"{last}, final norm", "draws": "", "best": "best, not named"}
    return names.get(row["rule"], "")


def value_text(row: Mapping[Hashable, Any]) -> str:
    """The score of a row of `literature` with its printed decimals."""
    return fixed(row["value"], int(row["decimals"]))


def source_text(row: Mapping[Hashable, Any]) -> str:
    """Where a row of `literature` was printed, and whether by others."""
    return ", ".join(filter(None, (row["source"], row["table"], "second hand" * row["second_hand"])))


def main_rows(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """Of rows of `literature` those of a task's main metric, or of tasks and metrics that are not known here.

    The first ``most`` of each group are left.
    """
    known = {task: task_display(task).metrics for task in rows["task"].unique()}
    names = zip(rows["task"], rows["metric"], strict=True)
    main = [metric not in known[task][1:] for task, metric in names]
    return rows[main].groupby("group", sort=False).head(most)


def answer_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `literature` as text for readers."""
    return pd.DataFrame(
        {
            "group": row["group"],
            "rank": "" if pd.isna(row["rank"]) else f"{row['rank']} of {row['networks']}",
            "backbone": row["backbone"],
            "layer": layer_text(row),
            "score": f"{value_text(row)} {row['metric']}",
            "source": source_text(row),
        }
        for row in rows.to_dict("records")
    )


def answer_notes(rows: pd.DataFrame) -> tuple[str, ...]:
    """How each group of some rows was measured and who published it, and what the answer cannot say."""
    firsts = rows.drop_duplicates("group").to_dict("records")
    publications = dict(zip(rows["source"], rows["publication"], strict=True))
    return (
        *(f"{row['group']}: {row['dataset']}; {row['measured']}." for row in firsts),
        *(f"{source}: {publication}." for source, publication in publications.items()),
        "Only numbers of one group may be ranked, and small differences may be chance: no intervals are "
        "published. A best layer was chosen on the test data.",
        "`layerboard leaderboard --literature` writes all published numbers.",
    )


@dataclass(frozen=True, slots=True)
class _Better:
    """A board by layer in which an earlier layer is a backbone's best; NaN if the gain is not printed."""

    layer: int
    depth: int | None
    gain: float
    origin: str


def last_layer_only(
    published: Sequence[Published], depths: Mapping[str, int], records: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Networks whose published score is of the last block although an earlier one is known to be better.

    It is better by more than `LEAST_GAIN` in a board by layer of the same task, data and metric: a source
    that prints the best layer and the last, or ``records`` (`leaderboards.board.board.Board.scores`).
    Sources that print the best layer alone count, too, if it is not the last; then the gain is NaN.
    Columns `LAST_COLUMNS`, the largest gain first.
    """
    boards = _printed_boards(published, depths)
    for place, better in _measured_boards(records):
        boards.setdefault(place, []).append(better)
    rows = []
    last = [number for number in published if number.rule in OF_LAST]
    for place, numbers in groupby(sorted(last, key=_place), key=_place):
        told = [*numbers]
        values = [f"{fixed(each.value, each.decimals)} ({each.origin})" for each in told]
        unit = "% less error" if told[0].printed == "error" else "points"
        for better in boards.get(place, ()):
            shown = (", ".join(values), better.layer, better.depth, better.gain, unit, better.origin)
            rows.append((*place, *shown))
    frame = pd.DataFrame(rows, columns=list(LAST_COLUMNS)).astype({"depth": "Int64", "gain": "float64"})
    return frame.sort_values("gain", ascending=False, kind="stable", ignore_index=True)


def _place(number: Published) -> tuple[str, str, str, str]:
    return (number.backbone, number.task, number.dataset, number.metric)


def _printed_boards(
    published: Sequence[Published], depths: Mapping[str, int]
) -> dict[tuple[str, ...], list[_Better]]:
    """Boards in publications by `_place`."""
    boards: dict[tuple[str, ...], list[_Better]] = {}
    last = {(_place(one), one.origin, one.conditions): one for one in published if one.rule == "last"}
    for number in published:
        if number.rule != "best" or number.layer is None:
            continue
        depth = depths.get(number.backbone)
        beside = last.get((_place(number), number.origin, number.conditions))
        gain = math.nan if beside is None else _gain(number, beside)
        earlier = depth is not None and number.layer < depth if beside is None else gain > LEAST_GAIN
        if earlier:
            better = _Better(number.layer, depth, gain, number.origin)
            boards.setdefault(_place(number), []).append(better)
    return boards


def _gain(best: Published, last: Published) -> float:
    """By how many points a score is higher, or by how many percent an error is lower."""
    if best.printed == "error":
        return round(100 * (1 - best.value / last.value), 1)
    return round(best.value - last.value, max(best.decimals, last.decimals))


def _measured_boards(records: pd.DataFrame | None) -> Iterator[tuple[tuple[str, ...], _Better]]:
    """Boards of records by `_place`: the best block of each backbone against its last, in any pooling."""
    if records is None or records.empty:
        return
    blocks = candidates(records[records["primary"].astype(bool)])
    same = ["backbone", "task", "dataset", "data", "protocol", "metric"]
    last = blocks[blocks["layer"] == blocks["depth"]].groupby(same)["value"].max()
    for row in best_rows(blocks).to_dict("records"):
        gain = float(row["value"] - last.get(tuple(row[name] for name in same), math.nan))
        if gain > LEAST_GAIN:
            place = (row["backbone"], row["task"], row["dataset"], row["metric"])
            yield place, _Better(row["layer"], row["depth"], round(gain, 4), f"{RUN}, {row['protocol']}")
