"""Measured beside published numbers (`leaderboards.published`)."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, get_args

import pandas as pd

from layerboard.leaderboards.blocks.display import NOT_WORSE, ranges_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import RANDOM, best_rows, floor_draws, is_floor, latest
from layerboard.leaderboards.published.literature import Published
from layerboard.tasks.framework.base import open_metrics
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.zoo.errors import some
from layerboard.zoo.spec import Dtype, Variant, entry_name

Verdict = Literal["agrees", "off", "no interval", "partial data", "no score", "not run", "not comparable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)  # every verdict, in the order of summaries
NOT_MEASURED = ("not run", "not comparable")  # verdicts without a measured number
DECIMALS = 4  # decimals of measured percentages in a frame
COLUMNS = (
    *("source", "table", "second_hand", "backbone", "task", "dataset", "protocol", "metric"),
    *("pooling", "tap", "rule", "published", "decimals", "published_layer"),
    *("measured", "ci_low", "ci_high", "lowest", "highest", "measured_layer", "maybe_layers", "index"),
    *("difference", "verdict", "reason", "conditions"),
)
"""Columns of `reproduce`: those of `Published`; the percent that was measured, its 95 % interval and its
block, from 1; where a protocol's source leaves settings open, the ends of what was measured by all of them,
and the interval is that around both; of a best block the blocks that may be the best, and what the
published one is of these (`Index`); measured minus published; the reason why there is no value, interval or
judgement."""

Index = str  # of a published best block: "the same", `NOT_WORSE`, "worse", or "" if that is not known

_ROUNDING = 1e-9
_RUN = ["backbone", "task", "dataset", "protocol", "pooling"]
_Run = tuple[str, ...]
_Finding = tuple[Verdict, str, dict[str, Any]]  # a verdict, its reason, and the measured number


def reproduce(
    records: pd.DataFrame, published: Sequence[Published], registry: Collection[str] | None = None
) -> pd.DataFrame:
    """Published numbers, each with the measured one and a verdict.

    - ``agrees``: the published number, plus or minus half a unit of its last digit, overlaps the 95 %
      interval of the measured one; without an interval, the measured one rounds to the printed digits.
    - ``off``: it does not overlap the interval.
    - ``no interval``: the printed digits differ, and there is no interval to judge the difference by.
    - ``partial data``: measured on other data than the official ones; the difference is given, not judged.
    - ``no score``: run, but its features could not be scored.
    - ``not run``, ``not comparable``: nothing was measured, or nothing could be.

    What a protocol's source leaves open is a span: the interval reaches from that of the lowest score to that
    of the highest, over the settings of the protocol and over protocols ``beside`` it.

    Records of untrained backbones, of transforms, and of another input size than the source's, are ignored.

    One row per published number in the given order, columns `COLUMNS`, percentages with `DECIMALS` decimals;
    None and NaN if missing. ``registry`` names the backbones that can be run: for others the reason says that
    they cannot; None skips this.
    """
    records = _like_published(records)
    others = [other for number in published for other in _others(number)]
    runs, rows = _by_run(records, [*published, *others]), []
    every = sorted({*_runs_of(records)})
    for number in published:
        run = runs.get(_run_of(number))
        finding = _compared(number, run, _absent(number, every) if run is None else "")
        beside = {other.protocol: _compared(other, runs.get(_run_of(other)), "") for other in _others(number)}
        verdict, reason, measured = _spanned(number, finding, beside)
        if registry is not None and number.backbone not in registry and verdict in NOT_MEASURED:
            reason = f"{reason}; not in the registry"
        judged = {"published": number.value, "published_layer": number.layer} | measured
        rows.append(vars(number) | judged | {"verdict": verdict, "reason": reason})
    layers = {"published_layer": "Int64", "measured_layer": "Int64"}
    numbers = dict.fromkeys(("measured", "ci_low", "ci_high", "lowest", "highest", "difference"), "float64")
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(layers | numbers)


def _like_published(records: pd.DataFrame) -> pd.DataFrame:
    """Records that a published number can be of, under the names of entries."""
    if records.empty:
        return records
    usable = (records["trained"].astype(bool) | is_floor(records)) & (records["other"] == "")
    usable &= ~records["backbone"].map(lambda name: Variant.of(name).fast_resize)
    # published numbers state their input size themselves
    return records[usable].assign(backbone=records.loc[usable, "backbone"].map(entry_name))


@lru_cache(maxsize=1)
def reproduction(board: Board) -> pd.DataFrame:
    """The rows of `reproduce` of a board and its published numbers; a page and its report ask repeatedly."""
    return reproduce(board.plain, board.published)


def answered(frame: pd.DataFrame, published: Sequence[Published], records: pd.DataFrame) -> pd.DataFrame:
    """The rows of `reproduce` that readers of some records want to see.

    These are the ones with a measured number, and after them those that are not comparable on a task and
    dataset that was run, if nobody has published a comparable number there.
    """
    ways = set(zip(records["task"], records["dataset"], strict=True)) if len(records) else set()
    ways -= {(number.task, number.dataset) for number in published if number.comparable}
    beside = [(number.task, number.dataset) in ways for number in published]
    shown = frame[pd.Series(beside, frame.index, bool) | ~frame["verdict"].isin(NOT_MEASURED)]
    return shown.sort_values("verdict", key=lambda verdicts: verdicts.isin(NOT_MEASURED), kind="stable")


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """The number of rows of a frame with each verdict, in the order of `VERDICTS`."""
    return {verdict: int((frame["verdict"] == verdict).sum()) for verdict in VERDICTS}


def _others(number: Published) -> list[Published]:
    """A number as if it were by each protocol that stands beside its own."""
    names = find_protocol(number.protocol).beside if number.comparable else ()
    return [replace(number, protocol=name) for name in names]


_run_of = attrgetter(*_RUN)  # of a published number


def _by_run(records: pd.DataFrame, published: Sequence[Published]) -> dict[_Run, pd.DataFrame]:
    """The scores of every backbone, task, dataset, protocol and pooling of a published number."""
    if records.empty:
        return {}
    primary = records.groupby(_RUN)["primary"].transform("any")  # in the usual pooling
    records = pd.concat([records, records[primary].assign(pooling="")], ignore_index=True)
    wanted = {_run_of(number) for number in published if number.comparable}
    rows = records[[run in wanted for run in _runs_of(records)]]
    return {tuple(map(str, run)): part for run, part in rows.groupby(_RUN, sort=False)}


def _runs_of(records: pd.DataFrame) -> list[_Run]:
    return [*records[_RUN].itertuples(index=False, name=None)] if len(records) else []


def _absent(number: Published, runs: Sequence[_Run]) -> str:
    """Why no run is that of a number: the first thing in which all that are left differ from it."""
    alike: list[str] = []
    for column, what in enumerate(_RUN):
        wanted = getattr(number, what)
        there = sorted({run[column] for run in runs})
        if wanted not in there and (wanted or what != "pooling"):
            start = f"records of {', '.join(alike)} have" if alike else "there are records of"
            return f"{start} the {what} {some(there, 6)}, not {wanted}" if there else "there are no records"
        alike.append(wanted)
        runs = [run for run in runs if run[column] == wanted]
    return "none of its poolings is the usual one, the class token or the mean without one"


def _compared(number: Published, run: pd.DataFrame | None, absent: str) -> _Finding:
    if not number.comparable:
        return "not comparable", number.not_comparable, {}
    if run is None:
        return "not run", absent, {}
    run = run[run["transform"] == ""]
    if run.empty:
        return "not run", "run with a transform only", {}
    sized = run[run["input_size"] == number.input_size]
    if sized.empty:
        sizes = ", ".join(f"{size} px" for size in sorted(set(run["input_size"].tolist())))
        return "not run", f"run at {sizes}, published at {number.input_size} px", {}
    formats = sized["dtype"].map(lambda dtype: get_args(Dtype).index(dtype or "float32"))
    sized = sized[formats == formats.min()]  # the widest one
    last = sized.loc[sized["date"] == sized["date"].max(), "data"].max()  # other data are not mixed in
    return _measured(number, latest(sized[sized["data"] == last]))


def _measured(number: Published, run: pd.DataFrame) -> _Finding:
    if number.rule == "draws":
        return _floor(number, run[run["metric"] == number.metric])
    blocks = run[(run["tap"] == "block") & (run["layer"] >= 1)]
    depth = int(run["depth"].max())
    final = run[run["tap"] == "final"]
    if number.rule == "final":
        return _at(number, final, "the output of the final norm was not run")
    if number.rule == "either":
        return _better(number, blocks[blocks["layer"] == depth], final)
    if number.rule != "best":
        layer = depth if number.rule == "last" else number.layer
        return _at(number, blocks[blocks["layer"] == layer], f"layer {layer} was not run")
    layers = sorted({int(layer) for layer in blocks["layer"]})
    if len(layers) < depth:
        known = ranges_text(layers) or "none"
        return "not run", f"the best of all {depth} layers is published; layers that were run: {known}", {}
    rows = blocks[blocks["metric"] == number.metric]
    if number.chosen_decimals is not None:  # as the source chose, including its ties
        rows = rows.assign(value=rows["value"].round(number.chosen_decimals))
    best = best_rows(rows)
    if best.empty:
        return _at(number, blocks, "")
    layer = int(best["layer"].iloc[0])
    verdict, reason, measured = _at(number, blocks[blocks["layer"] == layer], "", blocks)
    return verdict, reason, measured | _index(number, rows, layer)


def _better(number: Published, last: pd.DataFrame, final: pd.DataFrame) -> _Finding:
    """The better of the last block's rows and those of the final norm."""
    if last.empty or final.empty:
        absent = "the last block" if last.empty else "the output of the final norm"
        return "not run", f"the better of two places is published, and {absent} was not run", {}
    rows = {"without the final norm": last, "with the final norm": final}
    findings = {where: _at(number, part, "") for where, part in rows.items()}
    better = max(findings, key=lambda name: findings[name][2].get("measured", -math.inf))
    verdict, reason, measured = findings[better]
    return verdict, "; ".join(filter(None, [better if measured else "", reason])), measured


def _index(number: Published, rows: pd.DataFrame, best: int) -> dict[str, object]:
    """The blocks that may be the best, and what the published best is of them.

    Empty if blocks were not compared, as in other metrics than a task's main one, and if another pooling
    scores higher.
    """
    maybe = sorted({int(layer) for layer in rows.loc[rows["maybe_best"].astype(bool), "layer"]})
    if best not in maybe:
        return {}
    index: Index = "worse"
    if number.layer in (None, best):
        index = "" if number.layer is None else "the same"
    elif number.layer in maybe:
        index = NOT_WORSE
    return {"maybe_layers": ranges_text(maybe), "index": index}


def _at(number: Published, rows: pd.DataFrame, absent: str, among: pd.DataFrame | None = None) -> _Finding:
    """The number's metric in the rows of one layer, or why that layer has no score.

    Of a best layer ``among`` are the rows from which it was chosen: each of the settings that a source leaves
    open has a best layer of its own.
    """
    if rows.empty:
        return "not run", absent, {}
    scored = rows[(rows["metric"] == number.metric) & rows["value"].notna()]
    if scored.empty:
        reasons = sorted({str(reason) for reason in rows["reason"]} - {""})
        return "no score", "; ".join(reasons) or f"no {number.metric} was computed", {}
    record = scored.iloc[0]
    value, low, high = (float(record[name]) for name in ("value", "ci_low", "ci_high"))
    note = str(record["coverage"]) if record["partial"] else ""
    ends = _ends(number.metric, rows if among is None else among)
    low, high = ends.pop("ci_low", low), ends.pop("ci_high", high)
    verdict, reason, measured = _beside(number, (value, low, high), note, partial=bool(record["partial"]))
    return verdict, reason, measured | ends | {"measured_layer": int(record["layer"])}


def _ends(metric: str, rows: pd.DataFrame) -> dict[str, float]:
    """The lowest and highest score over open settings, and the ends of their intervals; empty without any.

    Of several layers each end is that of the layer where it is highest.
    """
    ends: dict[str, float] = {}
    for name, column, bound in zip(open_metrics(metric), ("lowest", "highest"), ("low", "high"), strict=True):
        scored = rows[(rows["metric"] == name) & rows["value"].notna()]
        if len(scored):
            best = scored.sort_values("value").iloc[-1]
            ends |= {column: round(float(best["value"]), DECIMALS), f"ci_{bound}": float(best[f"ci_{bound}"])}
    return ends


def _spanned(number: Published, finding: _Finding, beside: Mapping[str, _Finding]) -> _Finding:
    """A finding over the span of what protocols beside the number's own measured, too."""
    verdict, reason, measured = finding
    if "measured" not in measured or not beside:
        return finding
    partial = verdict == "partial data"
    alike = {
        name: numbers
        for name, (other, _, numbers) in beside.items()
        if "measured" in numbers and (other == "partial data") == partial
    }
    every = [measured, *alike.values()]
    span = {
        "lowest": min(numbers.get("lowest", numbers["measured"]) for numbers in every),
        "highest": max(numbers.get("highest", numbers["measured"]) for numbers in every),
    }
    if sure := all("ci_low" in numbers for numbers in every):
        span["ci_low"] = min(numbers["ci_low"] for numbers in every)
        span["ci_high"] = max(numbers["ci_high"] for numbers in every)
    if not partial and sure:
        verdict = "agrees" if _overlaps(number, span["ci_low"], span["ci_high"]) else "off"
    absent = [f"{name}, which the source may mean, was not run" for name in beside if name not in alike]
    return verdict, "; ".join(filter(None, [reason, *absent])), measured | span


def _overlaps(number: Published, low: float, high: float) -> bool:
    """Whether a published number, with its rounding, overlaps an interval."""
    half = number.half_unit + _ROUNDING
    return low <= number.value + half and number.value - half <= high


def _floor(number: Published, rows: pd.DataFrame) -> _Finding:
    floors = floor_draws(rows[rows["family"] == RANDOM])
    if floors.empty:
        return "not run", "there are no draws of the random floor", {}
    partial = rows[rows["partial"].astype(bool)]
    note = str(partial["coverage"].iloc[0]) if len(partial) else f"mean of {floors['draws'].iloc[0]} draws"
    value = float(floors["mean"].iloc[0])
    return _beside(number, (value, math.nan, math.nan), note, partial=len(partial) > 0)


def _beside(number: Published, measured: tuple[float, float, float], note: str, *, partial: bool) -> _Finding:
    """Whether a measured percentage with its 95 % interval agrees with the published one."""
    value, low, high = measured
    sure = not (math.isnan(low) or math.isnan(high))
    agrees = _overlaps(number, low, high) if sure else _overlaps(number, value, value)
    verdict: Verdict = "agrees" if agrees else "off" if sure else "no interval"
    reason = "; ".join(filter(None, [note, "" if sure else "no interval was computed"]))
    numbers = {"measured": value, "difference": value - number.value}
    numbers |= {"ci_low": low, "ci_high": high} if sure else {}
    rounded = {name: round(percent, DECIMALS) for name, percent in numbers.items()}
    return "partial data" if partial else verdict, reason, rounded
