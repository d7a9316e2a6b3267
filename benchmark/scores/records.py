"""Outcomes as records with their intervals and choices, and where their files are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isinf
from pathlib import Path

from pyarrow import BufferReader
from pyarrow.parquet import ParquetFile

from leaderboards.records.checksum import companions_of, file_digest, read_checked, write_checked
from leaderboards.records.files import VERSION
from leaderboards.records.items import Place
from leaderboards.records.record import (
    UNREADABLE,
    Record,
    add_suite,
    read_frame,
    suite_names,
)
from leaderboards.records.thumbnails import FOLDER, is_whole, thumbnails_of
from tasks.base import Items, LayerOutcome, Outcome, Score
from tasks.registry import TaskEntry
from tasks.task import Task
from tasks.uncertainty import Assessment, assess, intervals_of
from zoo.spec import BackboneSpec, stands_for_set

Assessments = Mapping[tuple[Place, str], Assessment]
"""Assessment of each place and metric."""


def place_of(one: LayerOutcome) -> Place:
    """Layer, tap and pooling of an outcome."""
    return one.layer.index, one.layer.record_tap, one.pooling


def is_choice(tap: str) -> bool:
    """Whether a best one is chosen among such places: blocks, or sets of them, which are scored apart."""
    return tap == "block" or stands_for_set(tap)


def measured_items(outcomes: Sequence[LayerOutcome]) -> dict[Place, Items]:
    """Items of each place that has scores."""
    return {
        place_of(outcome): outcome.outcome.items for outcome in outcomes if outcome.outcome.items is not None
    }


def assess_outcomes(outcomes: Sequence[LayerOutcome], primary: str | None) -> Assessments:
    """Intervals of all scores; for the primary metric also what the blocks 1..depth are among each other.

    Args:
        outcomes: Of one backbone and task, every layer and pooling.
        primary: The metric that the leaderboard shows; None where no layer is chosen.
    """
    items = measured_items(outcomes)
    assessed: dict[tuple[Place, str], Assessment] = {}
    for pooling in dict.fromkeys(position[2] for position in items):
        places = [position for position in items if position[2] == pooling]
        layers = [items[position] for position in places]
        for metric, ends in intervals_of(layers).items():
            assessed |= {
                (position, metric): Assessment(low, high)
                for position, (low, high) in zip(places, ends, strict=True)
            }
        blocks = [row for row, position in enumerate(places) if position[0] > 0 and is_choice(position[1])]
        if blocks and primary is not None and primary in layers[0].statistics:
            chosen = assess([layers[row] for row in blocks], primary)
            for row, choice in zip(blocks, chosen, strict=True):
                low, high = assessed[places[row], primary].low, assessed[places[row], primary].high
                assessed[places[row], primary] = Assessment(low, high, *choice)
    return assessed


NORMAL = 1.959964
"""Standard errors to each side of a 95 % interval."""


@dataclass(frozen=True)
class Context:
    """What all records of one backbone share."""

    suite: str
    spec: BackboneSpec
    revision: str
    dtype: str
    device: str

    @property
    def table_pooling(self) -> str:
        """Pooling that stands in tables: the class token where there is one."""
        return "cls" if self.spec.has_cls else "mean"


@dataclass(frozen=True)
class Scored:
    """What the records of one backbone and task share, beside the context.

    Attributes:
        task: The task on its data.
        fingerprint: Identity of features and scoring.
        data: Digest of the images and their ground truth.
        unreadable: Images that could not be read and were left out.
        seconds: Time of the scoring.
    """

    task: Task
    fingerprint: str
    data: str
    unreadable: int
    seconds: float

    @property
    def coverage(self) -> str:
        """What was there of the dataset, in words."""
        text = str(self.task.coverage)
        return f"{text}; {self.unreadable} unreadable images left out" if self.unreadable else text


@dataclass(frozen=True)
class ResultFiles:
    """The files of one result, and what they must say.

    Attributes:
        records: Its records.
        fingerprint: Identity of features and scoring.
        data: Digest of the images and their ground truth.
        beside: Files that may belong to the records (items, arrays, examples), by name.
        thumbnails: Folder of the pictures of examples.
    """

    records: Path
    fingerprint: str
    data: str = ""
    beside: Mapping[str, Path] = field(default_factory=dict)
    thumbnails: Path = Path(FOLDER)

    def companions(self) -> dict[str, str]:
        """Digests of the files beside the records that are there."""
        return {name: file_digest(path) for name, path in self.beside.items() if path.is_file()}


def is_current(kept: ResultFiles) -> bool:
    """Whether records, and all that belongs to them, are there as they were written, of that fingerprint."""
    try:
        content = read_checked(kept.records)
        if _values(content, "fingerprint") != {kept.fingerprint}:
            return False
        companions = companions_of(content)
        if any(file_digest(kept.beside[name]) != expected for name, expected in companions.items()):
            return False
        names = thumbnails_of(kept.beside["examples"]) if "examples" in companions else []
        return all(is_whole(kept.thumbnails / name) for name in names)
    except UNREADABLE:
        return False


def file_under(kept: ResultFiles, suite: str) -> None:
    """Let current records, left by a run of another suite perhaps, belong to this one's page, too."""
    content = read_checked(kept.records)
    if not all(suite in suite_names(text) for text in _values(content, "suite")):
        frame = add_suite(read_frame(kept.records), suite)
        write_checked(frame, kept.records, companions_of(content))


def _values(content: bytes, column: str) -> set[str]:
    """Different values of a column of texts, of thousands of small files one after the other."""
    file = ParquetFile(BufferReader(content))
    return set(file.read(columns=[column], use_threads=False).column(0).unique().to_pylist())


def rule_of(spec: BackboneSpec) -> str:
    """Rule by which a backbone fitted its position embeddings; "" where it has none, or they are not ours."""
    return "" if spec.heads is None or spec.checkpoint == "object" else spec.interpolation


def base_fields(context: Context, scored: Scored) -> dict[str, object]:
    """Fields that do not depend on the layer."""
    spec, task = context.spec, scored.task
    return {
        "suite": context.suite,
        "backbone": spec.name,
        "family": spec.family,
        "trained": spec.trained,
        "revision": context.revision,
        "depth": spec.depth,
        "input_size": spec.input_size,
        "interpolation": rule_of(spec),
        "task": task.entry.name,
        "analysis": task.entry.analysis,
        "protocol": task.protocol,
        "dataset": task.dataset,
        "split": task.split,
        "transform": task.transform,
        "data": scored.data,
        "partial": task.coverage.partial or scored.unreadable > 0,
        "coverage": scored.coverage,
        "dtype": context.dtype,
        "device": context.device,
        "fingerprint": scored.fingerprint,
        "seconds": scored.seconds,
        "version": VERSION,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def to_records(
    context: Context,
    scored: Scored,
    outcomes: Sequence[LayerOutcome],
    assessed: Assessments,
) -> list[Record]:
    """One record a metric, layer and pooling; a layer without a score has one empty record with a reason."""
    shared = base_fields(context, scored)
    entry = scored.task.entry
    records: list[Record] = []
    for outcome in outcomes:
        in_tables = entry.analysis or outcome.pooling in ("grid", context.table_pooling)
        where = _where(outcome, context.spec)
        for score in outcome.outcome.scores:
            fields = {
                "metric": score.metric,
                "primary": in_tables and score.head < 0 and score.metric == entry.metric,
                "head": score.head,
                "n": score.n,
                "unit": score.unit,
                **_number(score),
            }
            if assessment := assessed.get((place_of(outcome), score.statistic)):
                fields |= {
                    "ci_low": assessment.low,
                    "ci_high": assessment.high,
                    "chosen": assessment.chosen,
                    "held_out": assessment.held_out,
                    "tied": assessment.tied,
                }
            records.append(Record(**shared, **where, **fields))  # type: ignore[arg-type]
        for metric, reason in _missing(outcome.outcome, entry).items():
            primary = in_tables and metric == entry.metric
            fields = {"metric": metric, "primary": primary, "value": float("nan"), "n": 0, "unit": ""}
            records.append(Record(**shared, **where, **fields, reason=reason))  # type: ignore[arg-type]
    return records


def _where(one: LayerOutcome, spec: BackboneSpec) -> dict[str, object]:
    """The fields of a place, and of the layer of the same backbone that it is compared with."""
    where: dict[str, object] = {"layer": one.layer.index, "tap": one.layer.record_tap, "pooling": one.pooling}
    if one.other is not None:
        where |= {"other": spec.name, "other_layer": one.other.index, "other_tap": one.other.tap}
    return where


def _missing(outcome: Outcome, entry: TaskEntry) -> Mapping[str, str]:
    """Metrics without a score, and why.

    The primary one is always among them where it has none; of an analysis only where nothing else is said.
    """
    primary = entry.metric
    if primary in outcome.missing or any(score.metric == primary for score in outcome.scores):
        return outcome.missing
    if entry.analysis and not outcome.empty and (outcome.scores or outcome.missing):
        return outcome.missing
    return {primary: outcome.empty or f"no {primary} could be computed", **outcome.missing}


def _number(score: Score) -> dict[str, object]:
    """A score's value and interval, or why it is none: what is infinite is no score."""
    if isinf(score.value):
        return {"value": float("nan"), "reason": f"not a number: {score.value}"}
    margin = NORMAL * score.error
    return {"value": score.value, "ci_low": score.value - margin, "ci_high": score.value + margin}
