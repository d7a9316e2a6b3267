"""Measured beside published: the records of runs and the tables of `leaderboards.literature`."""

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal, get_args

import pandas as pd

from leaderboards.display import ranges_text
from leaderboards.literature import Published
from leaderboards.scores.frames import best_rows, floor_draws, is_floor, newest
from zoo.spec import entry_name

Verdict = Literal["agrees", "off", "no interval", "partial data", "no score", "not run", "not comparable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Every verdict, in the order of summaries."""

NOT_MEASURED = ("not run", "not comparable")
"""Verdicts of numbers beside which nothing was measured."""

DECIMALS = 4
"""Decimals of measured percents in a frame."""

_ROUNDING = 1e-9
_KEY = ["backbone", "task", "dataset", "protocol", "pooling"]
_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run says about a published number.

    Attributes:
        value: Percent; NaN where there is none.
        low: Lower end of its 95 % interval; NaN where none was computed.
        high: Upper end.
        layer: Its block, counted from 1; None for a mean over draws.
        partial: Whether its data differ from the official ones.
        note: What else there is to say; for a value that is NaN, why.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    layer: int | None = None
    partial: bool = False
    note: str = ""

    @property
    def has_interval(self) -> bool:
        """Whether both ends of an interval are there."""
        return not (math.isnan(self.low) or math.isnan(self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduced:
    """One row of the frame: a published number, what was measured, and the verdict.

    Attributes:
        source: Key of the source.
        table: Where in the source the number stands.
        second_hand: Whether it was read from a third party's transcription.
        backbone: Name of the backbone.
        task: Name of the task.
        dataset: Name of the dataset.
        protocol: Protocol of a comparable run.
        transform: What was done to the features before they were scored; "" for nothing.
        metric: Name of the metric.
        pooling: Pooling of the features.
        tap: Tap of the features.
        rule: Whose score it is, as in `Published`.
        published: Percent.
        decimals: Decimals that were printed.
        published_layer: Block that was published, counted from 1; None where none was.
        measured: Percent; None where nothing was measured.
        ci_low: Lower end of the 95 % interval of what was measured; None where none was computed.
        ci_high: Upper end.
        measured_layer: Block that was measured; None for a mean over draws and where nothing was.
        difference: Measured minus published, in percent.
        verdict: One of `VERDICTS`.
        reason: Why there is no value, no interval or no judgement; "" where there is nothing to say.
        conditions: How the published number was measured.
    """

    source: str
    table: str
    second_hand: bool
    backbone: str
    task: str
    dataset: str
    protocol: str
    transform: str
    metric: str
    pooling: str
    tap: str
    rule: str
    published: float
    decimals: int
    published_layer: int | None
    measured: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    measured_layer: int | None = None
    difference: float | None = None
    verdict: Verdict
    reason: str = ""
    conditions: str


COLUMNS = tuple(field.name for field in fields(Reproduced))


def reproduce(
    records: pd.DataFrame, published: Sequence[Published], registry: Collection[str] | None = None
) -> pd.DataFrame:
    """Published numbers, each with what was measured and a verdict.

    - ``agrees``: the published number, half a unit of its last digit to both sides, meets the 95 % interval
      of the measured one; without an interval, the measured one rounds to the printed digits.
    - ``off``: it does not meet the interval.
    - ``no interval``: the printed digits differ, and no interval says by how much they may.
    - ``partial data``: measured on other data than the official ones; the difference is there, no judgement.
    - ``no score``: run, but its features could not be scored.
    - ``not run``, ``not comparable``: nothing was measured, or nothing could be.

    Records of untrained backbones, and of another input size or transform than the source's, never count.

    Args:
        records: Columns of `Record`, in any order; may be empty.
        published: What to compare with.
        registry: Names of the backbones that can be run by name: of others the reason says that they cannot.
            None if that is not to be said.

    Returns:
        One row a published number in the order given, columns `COLUMNS`, percents with `DECIMALS` decimals;
        None and NaN where there is none.
    """
    runs = _by_run(records, published)
    found = [_compare(one, runs.get(_key(one))) for one in published]
    rows = [asdict(_without_entry(one, registry)) for one in found]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    layers = {"published_layer": "Int64", "measured_layer": "Int64"}
    measured = dict.fromkeys(("measured", "ci_low", "ci_high", "difference"), "float64")
    return frame.astype(layers | measured)


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """How many rows of a frame have each verdict, in the order of `VERDICTS`."""
    return {verdict: int((frame["verdict"] == verdict).sum()) for verdict in VERDICTS}


def _by_run(records: pd.DataFrame, published: Sequence[Published]) -> dict[_Key, pd.DataFrame]:
    """The scores of every backbone, task, dataset, protocol and pooling that some number is about."""
    if records.empty:
        return {}
    wanted = {_key(one) for one in published if one.comparable}
    keys = [(entry_name(name), *key) for name, *key in records[list(_KEY)].itertuples(index=False, name=None)]
    known = records["trained"].astype(bool) | is_floor(records)
    asked = pd.Series([key in wanted for key in keys], index=records.index)
    rows = records[asked & known & (records["other"] == "")]
    rows = rows.assign(backbone=rows["backbone"].map(entry_name))  # numbers tell their input size themselves
    return {
        tuple(map(str, key)): own for key, own in rows.groupby(_KEY, sort=False) if isinstance(key, tuple)
    }


def _key(one: Published) -> _Key:
    """Which run a number is about."""
    return (one.backbone, one.task, one.dataset, one.protocol, one.pooling)


def _compare(one: Published, run: pd.DataFrame | None) -> Reproduced:
    """A published number beside the records of its run."""
    if not one.comparable:
        return _row(one, "not comparable", one.not_comparable)
    if run is None:
        return _row(one, "not run", "there are no records of it")
    run = run[run["transform"] == one.transform]
    if run.empty:
        lacks = f"without its transform {one.transform}" if one.transform else "with a transform only"
        return _row(one, "not run", f"run {lacks}")
    sized = run[run["input_size"] == one.input_size]
    if sized.empty:
        sizes = ", ".join(f"{size} px" for size in sorted(set(run["input_size"].tolist())))
        return _row(one, "not run", f"run at {sizes}, published at {one.input_size} px")
    last = sized.loc[sized["date"] == sized["date"].max(), "data"].max()  # scores of other data are not mixed
    found = _measure(one, newest(sized[sized["data"] == last]))
    return _row(one, "not run", found) if isinstance(found, str) else _judged(one, found)


def _without_entry(one: Reproduced, registry: Collection[str] | None) -> Reproduced:
    """A row that also says that the registry has no such backbone, where nothing was measured."""
    if registry is None or one.backbone in registry or one.verdict not in NOT_MEASURED:
        return one
    return replace(one, reason=f"{one.reason}; not in the registry")


def _measure(one: Published, run: pd.DataFrame) -> Measured | str:
    """What a run says about a number, or why it says nothing."""
    if one.rule == "draws":
        return _floor(run[run["metric"] == one.metric])
    blocks = run[(run["tap"] == "block") & (run["layer"] >= 1)]
    depth = int(run["depth"].max())
    if one.rule == "best":
        return _best(one, blocks, depth)
    if one.rule == "final":
        return _at(one, run[run["tap"] == "final"], "the output of the final norm was not run")
    layer = depth if one.rule == "last" else one.layer
    return _at(one, blocks[blocks["layer"] == layer], f"layer {layer} was not run")


def _best(one: Published, blocks: pd.DataFrame, depth: int) -> Measured | str:
    """The best block of all; chosen on the decimals that the source chose on, for the sake of its ties."""
    there = {int(layer) for layer in blocks["layer"]}
    if len(there) < depth:
        run = ranges_text(sorted(there)) or "none"
        return f"the best of all {depth} layers is published; layers that were run: {run}"
    own = blocks[blocks["metric"] == one.metric]
    if one.chosen_decimals is not None:
        own = own.assign(value=own["value"].round(one.chosen_decimals))
    best = best_rows(own)
    where = blocks if best.empty else blocks[blocks["layer"] == best["layer"].iloc[0]]
    return _at(one, where, "")


def _at(one: Published, rows: pd.DataFrame, absent: str) -> Measured | str:
    """The number's metric in the rows of one place; NaN and the reason where that place has no score."""
    if rows.empty:
        return absent
    scored = rows[(rows["metric"] == one.metric) & rows["value"].notna()]
    if scored.empty:
        reasons = sorted({str(reason) for reason in rows["reason"]} - {""})
        return Measured(math.nan, note="; ".join(reasons) or f"no {one.metric} was computed")
    record = scored.iloc[0]
    partial = bool(record["partial"])
    return Measured(
        float(record["value"]),
        float(record["ci_low"]),
        float(record["ci_high"]),
        int(record["layer"]),
        partial,
        str(record["coverage"]) if partial else "",
    )


def _floor(rows: pd.DataFrame) -> Measured | str:
    """The mean over the random floor's draws."""
    found = floor_draws(rows)
    if found.empty:
        return "there are no draws of the random floor"
    partial = rows[rows["partial"].astype(bool)]
    note = str(partial["coverage"].iloc[0]) if len(partial) else f"mean of {found['draws'].iloc[0]} draws"
    return Measured(float(found["mean"].iloc[0]), partial=len(partial) > 0, note=note)


def _judged(one: Published, found: Measured) -> Reproduced:
    """The row of a number beside which something was run."""
    if math.isnan(found.value):
        return _row(one, "no score", found.note)
    notes = [found.note, "" if found.has_interval else "no interval was computed"]
    return replace(
        _row(one, _verdict(one, found), "; ".join(note for note in notes if note)),
        measured=round(found.value, DECIMALS),
        ci_low=round(found.low, DECIMALS) if found.has_interval else None,
        ci_high=round(found.high, DECIMALS) if found.has_interval else None,
        measured_layer=found.layer,
        difference=round(found.value - one.value, DECIMALS),
    )


def _verdict(one: Published, found: Measured) -> Verdict:
    """Whether a number that was measured agrees with the published one."""
    half = one.half_unit + _ROUNDING
    if found.partial:
        return "partial data"
    if not found.has_interval:
        return "agrees" if abs(found.value - one.value) <= half else "no interval"
    return "agrees" if found.low <= one.value + half and one.value - half <= found.high else "off"


def _row(one: Published, verdict: Verdict, reason: str) -> Reproduced:
    """The row of a number beside which nothing stands."""
    return Reproduced(
        source=one.source,
        table=one.table,
        second_hand=one.second_hand,
        backbone=one.backbone,
        task=one.task,
        dataset=one.dataset,
        protocol=one.protocol,
        transform=one.transform,
        metric=one.metric,
        pooling=one.pooling,
        tap=one.tap,
        rule=one.rule,
        published=one.value,
        decimals=one.decimals,
        published_layer=one.layer,
        verdict=verdict,
        reason=reason,
        conditions=one.conditions,
    )
