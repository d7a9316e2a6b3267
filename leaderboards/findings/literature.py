"""What the literature says: all published numbers by groups that may be ranked, and scores of last blocks."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from layerboard.leaderboards.blocks.display import fixed, metric_rank, task_display, task_rank
from layerboard.leaderboards.board.frames import best_rows, candidates
from layerboard.leaderboards.published.literature import INPUT_SIZE, SOURCES, Published

LEAST_GAIN = 1.0  # points, or percent of an error, by which an earlier layer must be better
OF_LAST = ("last", "final", "either")  # rules of scores of the last block, before or behind the final norm
RUN = "this run"  # in place of a source: the records of an output folder

COLUMNS = (
    *("task", "dataset", "metric", "group", "networks", "rank", "backbone", "registered", "value"),
    *("decimals", "better", "layer", "depth", "rule", "pooling", "measured", "protocol", "input_size"),
    *("source", "table", "publication", "second_hand", "frozen", "not_comparable", "conditions"),
)
"""Columns of `literature`: ``networks`` is how many the group ranks, ``measured`` how it was measured."""

_SUBJECT = ["backbone", "task", "dataset", "metric"]
_UNITS = {False: "points", True: "% less error"}

LAST_COLUMNS = (*_SUBJECT, "published", "layer", "depth", "gain", "unit", "better_by")
"""Columns of `last_layer_only`: ``published`` of the last block, ``layer`` a better one, in ``better_by``."""


def literature(published: Iterable[Published], depths: Mapping[str, int]) -> pd.DataFrame:
    """Every published number, sorted by task, group and score: columns `COLUMNS`.

    Numbers of one group have the same task, data, metric, protocol (or, without one, source and conditions),
    and resolution, and all are of the best layer, or none is. Only these may be ranked:
    ``rank`` is 1 for the best, and missing in groups of one network, for draws of a floor, and for networks
    that were trained on the task themselves. ``depths`` are the numbers of blocks of the registry's
    backbones. A group is named by its task and a number; those of more networks come first.
    """
    groups: dict[tuple[object, ...], list[Published]] = {}
    for number in published:
        groups.setdefault(_group(number), []).append(number)
    rows = []

    def place(group: Sequence[Published]) -> tuple[object, ...]:
        first = group[0]
        kind = (task_rank(first.task), first.dataset, metric_rank(first.task, first.metric))
        return (*kind, -_networks(group), first.source, first.conditions)

    ordered = sorted(groups.values(), key=place)
    for task, parts in groupby(ordered, key=lambda group: group[0].task):
        for count, group in enumerate(parts, start=1):
            rows += _ranked(group, f"{task} {count}", depths)
    whole = dict.fromkeys(("layer", "depth", "rank"), "Int64")
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(whole)


def _group(number: Published) -> tuple[object, ...]:
    """What numbers that may be ranked have in common."""
    how = (number.protocol,) if number.comparable else (number.source, number.table, number.conditions)
    chosen = number.rule in ("best", "draws")
    same = (number.task, number.dataset, number.metric, _is_error(number), chosen)
    return (*same, *how, number.frozen, number.input_size)


def _networks(group: Iterable[Published]) -> int:
    return len({number.backbone for number in group if number.rule != "draws"})


def _ranked(group: Sequence[Published], name: str, depths: Mapping[str, int]) -> list[dict[str, Any]]:
    """The rows of a group, the best first."""
    sign, networks = (1 if _is_error(group[0]) else -1), _networks(group)
    group = sorted(group, key=lambda number: (sign * number.value, number.backbone))
    trained = [sign * number.value for number in group if number.rule != "draws"]
    rows = []
    for number in group:
        ranks = networks > 1 and number.rule != "draws" and number.frozen
        row = {column: getattr(number, column, None) for column in COLUMNS}
        how = number.protocol if number.comparable else number.conditions or "not said"
        # the usual size says nothing
        size = "" if number.input_size == INPUT_SIZE else f"{number.input_size} px"
        measured = ", ".join(filter(None, (how, size, "best layer" * (number.rule == "best"))))
        row |= {"group": name, "networks": networks, "measured": measured}
        row |= {"rank": 1 + sum(value < sign * number.value for value in trained) if ranks else None}
        row |= {"registered": number.backbone in depths, "depth": depths.get(number.backbone)}
        row |= {"better": "lower" if _is_error(number) else "higher"}
        rows.append(row | {"publication": SOURCES.get(number.source, number.source)})
    return rows


def printed_layer(row: Mapping[Hashable, Any]) -> str:
    """The layer of a row of `literature`, as its source printed it."""
    depth = "" if pd.isna(row["depth"]) else f" of {row['depth']}"
    if not pd.isna(row["layer"]):
        return f"{row['layer']}{depth}"
    last = f"{row['depth']}{depth}" if depth else "last"
    names = {"last": last, "final": f"{last}, final norm", "draws": "", "best": "best, not named"}
    return names.get(row["rule"], f"{last}, better of with and without final norm")


def printed_rank(row: Mapping[Hashable, Any]) -> str:
    """The rank of a row of `literature` in its group, or why it has none; "" for a group of one."""
    if not row["frozen"]:
        return "fine-tuned"
    return "" if pd.isna(row["rank"]) else f"{row['rank']} of {row['networks']}"


def printed_value(row: Mapping[Hashable, Any]) -> str:
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


def published_answer(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `literature` as text for readers."""
    return pd.DataFrame(
        {
            "group": row["group"],
            "rank": printed_rank(row),
            "backbone": row["backbone"],
            "layer": printed_layer(row),
            "score": f"{printed_value(row)} {row['metric']}",
            "source": source_text(row),
        }
        for row in rows.to_dict("records")
    )


def published_notes(rows: pd.DataFrame) -> tuple[str, ...]:
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


def last_layer_only(
    published: Sequence[Published], depths: Mapping[str, int], records: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Networks whose published score is of the last block although an earlier one is known to be better.

    It is better by more than `LEAST_GAIN` in a board by layer of the same task, data and metric: a source
    that prints the best layer and the last, or ``records`` (`leaderboards.board.board.Board.scores`).
    Sources that print the best layer alone count, too, if it is not the last; then the gain is NaN.
    Columns `LAST_COLUMNS`, the largest gain first.
    """
    last = [number for number in published if number.rule in OF_LAST]
    values = [f"{fixed(number.value, number.decimals)} ({number.origin})" for number in last]
    scores = pd.DataFrame([_subject(number) for number in last], columns=_SUBJECT)
    scores = scores.assign(published=values, unit=[_UNITS[_is_error(number)] for number in last])
    scores = scores.groupby([*_SUBJECT, "unit"], sort=False)["published"].agg(", ".join).reset_index()
    boards = [*_printed_boards(published, depths), *_measured_boards(records)]
    better = pd.DataFrame(boards, columns=[*_SUBJECT, "layer", "depth", "gain", "better_by"])
    frame = scores.merge(better, on=_SUBJECT)[[*LAST_COLUMNS]].astype({"depth": "Int64", "gain": "float64"})
    return frame.sort_values("gain", ascending=False, kind="stable", ignore_index=True)


def _subject(number: Published) -> tuple[str, ...]:
    return tuple(getattr(number, name) for name in _SUBJECT)


def _is_error(number: Published) -> bool:
    return number.printed == "error"


def _printed_boards(
    published: Sequence[Published], depths: Mapping[str, int]
) -> Iterator[tuple[object, ...]]:
    """Best layers in publications that are not the last, with their subject, depth, gain and source."""
    last = {(_subject(each), each.origin, each.conditions): each for each in published if each.rule == "last"}
    for number in published:
        if number.rule != "best" or number.layer is None:
            continue
        depth = depths.get(number.backbone)
        beside = last.get((_subject(number), number.origin, number.conditions))
        gain = math.nan
        if beside is not None:  # points, or percent less error
            points = round(number.value - beside.value, max(number.decimals, beside.decimals))
            gain = round(100 * (1 - number.value / beside.value), 1) if _is_error(number) else points
        if gain > LEAST_GAIN or (beside is None and depth is not None and number.layer < depth):
            yield (*_subject(number), number.layer, depth, gain, number.origin)


def _measured_boards(records: pd.DataFrame | None) -> Iterator[tuple[object, ...]]:
    """Best blocks in records against the last ones, of each backbone, in any pooling."""
    if records is None or records.empty:
        return
    blocks = candidates(records[records["primary"].astype(bool)])
    same = [*_SUBJECT, "data", "protocol"]
    last = blocks[blocks["layer"] == blocks["depth"]].groupby(same)["value"].max()
    for row in best_rows(blocks).to_dict("records"):
        gain = float(row["value"] - last.get(tuple(row[name] for name in same), math.nan))
        if gain > LEAST_GAIN:
            where = (row["layer"], row["depth"], round(gain, 4), f"{RUN}, {row['protocol']}")
            yield (*(row[name] for name in _SUBJECT), *where)
