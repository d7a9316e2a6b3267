"""Outcomes as records with intervals and choices, and the locations of their files."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isinf
from pathlib import Path
from typing import Any

from pyarrow import BufferReader
from pyarrow.parquet import ParquetFile

from layerboard.leaderboards.records.checksum import companions_of, file_digest, read_checked, write_checked
from layerboard.leaderboards.records.items import Place
from layerboard.leaderboards.records.record import UNREADABLE, Record, add_suite, read_frame, suite_names
from layerboard.leaderboards.records.thumbnails import FOLDER, is_whole, thumbnails_of
from layerboard.tasks.framework.assess import below_best, choices_on_halves, intervals_of, score_of
from layerboard.tasks.framework.base import Items, LayerOutcome, Outcome, Score
from layerboard.tasks.framework.registry import TaskEntry
from layerboard.zoo.spec import BackboneSpec, stands_for_set
from layerboard.zoo.view.geometry import ViewSize

LARGEST_VIEW = 2**22  # pixels: records may come from others, and a view is shown if they name it
NORMAL = 1.959964  # standard errors on each side of a 95 % interval
Assessments = Mapping[tuple[Place, str], Mapping[str, Any]]
"""Fields of the records of each place and metric: the interval, and how it does among its competitors."""


def place_of(outcome: LayerOutcome) -> Place:
    """Layer, tap and pooling of an outcome."""
    return outcome.layer.index, outcome.layer.record_tap, outcome.pooling


def measured_items(outcomes: Sequence[LayerOutcome]) -> dict[Place, Items]:
    """Items of each place that has scores."""
    every = {place_of(outcome): outcome.outcome.items for outcome in outcomes}
    return {key: items for key, items in every.items() if items is not None}


def assess_items(items: Mapping[Place, Items], primary: str | None) -> Assessments:
    """Intervals of all scores of one backbone and task, in every layer and pooling, from their items.

    For the primary metric, if there is one, it also compares the blocks 1..depth with each other: within each
    pooling which one halves of the data choose, and in all poolings together which may be the best.
    """
    assessed: dict[tuple[Place, str], dict[str, Any]] = {}
    # a best is chosen among blocks, or among layer sets, which are scored separately
    blocks = [key for key in items if key[0] > 0 and (key[1] == "block" or stands_for_set(key[1]))]
    blocks = [key for key in blocks if primary is not None and primary in items[key].statistics]
    for pooling in dict.fromkeys(pooling for _, _, pooling in items):
        places = [key for key in items if key[2] == pooling]
        for metric, ends in intervals_of([items[key] for key in places]).items():
            for key, (low, high) in zip(places, ends, strict=True):
                assessed[key, metric] = {"ci_low": low, "ci_high": high}
        rivals = [key for key in blocks if key[2] == pooling]
        if rivals and primary is not None:
            choices = choices_on_halves([items[key] for key in rivals], primary)
            for key, choice in zip(rivals, choices, strict=True):
                assessed[key, primary] |= choice._asdict()
    if primary is not None:
        blocks.sort(key=lambda key: -score_of(items[key], primary))
        for key, below in zip(blocks, below_best([items[key] for key in blocks], primary), strict=True):
            assessed[key, primary]["maybe_best"] = below is not None and below.maybe
    return assessed


@dataclass(frozen=True)
class ResultFiles:
    """The files of one result, and what they must say."""

    records: Path
    fingerprint: str  # of features and scoring
    data: str = ""  # digest of the images and their ground truth
    beside: Mapping[str, Path] = field(default_factory=dict)  # files that may accompany the records, by name
    thumbnails: Path = Path(FOLDER)

    def companions(self) -> dict[str, str]:
        """Digests of the existing files beside the records."""
        return {name: file_digest(path) for name, path in self.beside.items() if path.is_file()}


def is_current(files: ResultFiles) -> bool:
    """Whether records and their companions exist as they were written, with that fingerprint."""
    try:
        content = read_checked(files.records)
        if _values(content, "fingerprint") != {files.fingerprint}:
            return False
        companions = companions_of(content)
        if any(file_digest(files.beside[name]) != expected for name, expected in companions.items()):
            return False
        names = thumbnails_of(files.beside["examples"]) if "examples" in companions else []
        return all(is_whole(files.thumbnails / name) for name in names)
    except UNREADABLE:
        return False


def file_under(files: ResultFiles, suite: str) -> None:
    """Add this suite to current records, which a run of another suite may have written."""
    content = read_checked(files.records)
    if not all(suite in suite_names(text) for text in _values(content, "suite")):
        write_checked(add_suite(read_frame(files.records), suite), files.records, companions_of(content))


def known_view_sizes(folder: Path) -> set[ViewSize]:
    """How large the records of a backbone say that it was shown images; damaged records say nothing."""
    texts = set[str]()
    for path in folder.glob("*.parquet"):
        with suppress(*UNREADABLE):
            texts |= _values(read_checked(path), "view_size")
    sizes = filter(None, map(ViewSize.parse, texts))
    return {size for size in sizes if size.width * size.height <= LARGEST_VIEW}


def _values(content: bytes, column: str) -> set[str]:
    """Distinct values of a text column, fast enough for thousands of small files; none without the column."""
    file = ParquetFile(BufferReader(content))
    if column not in file.schema_arrow.names:  # of earlier versions
        return set()
    return set(file.read(columns=[column], use_threads=False).column(0).unique().to_pylist())


def interpolation_of(spec: BackboneSpec) -> str:
    """The rule by which a backbone fitted its position embeddings; "" if unknown or without any."""
    return spec.interpolation if spec.heads and spec.origin.has_architecture else ""


def table_pooling(spec: BackboneSpec) -> str:
    """The pooling shown in tables: the class token if there is one."""
    return spec.vectors or ("cls" if spec.has_cls else "mean")


def to_records(
    fields: Mapping[str, object],
    spec: BackboneSpec,
    entry: TaskEntry,
    outcomes: Sequence[LayerOutcome],
    assessed: Assessments,
) -> list[Record]:
    """One record per metric, layer and pooling, with the common fields.

    A layer without a score has one empty record with a reason.
    """
    records: list[Record] = []
    for outcome in outcomes:
        in_tables = entry.analysis or outcome.pooling in ("grid", table_pooling(spec))
        layer, tap, pooling = place_of(outcome)
        where = {**fields, "layer": layer, "tap": tap, "pooling": pooling}
        if outcome.other is not None:
            where |= {"other": spec.name, "other_layer": outcome.other.index, "other_tap": outcome.other.tap}
        for score in outcome.outcome.scores:
            number = {name: getattr(score, name) for name in ("metric", "head", "n", "unit")}
            number["primary"] = in_tables and score.head < 0 and score.metric == entry.metric
            number |= _number(score) | {**assessed.get((place_of(outcome), score.statistic), {})}
            records.append(Record(**where, **number))  # type: ignore[arg-type]
        for metric, reason in _missing(outcome.outcome, entry).items():
            primary = in_tables and metric == entry.metric
            number = {"metric": metric, "primary": primary, "value": float("nan"), "n": 0, "unit": ""}
            records.append(Record(**where, **number, reason=reason))  # type: ignore[arg-type]
    return records


def _missing(outcome: Outcome, entry: TaskEntry) -> Mapping[str, str]:
    """Metrics without a score, and why.

    The primary metric is always among them if it has no score; for an analysis only if nothing else is.
    """
    primary = entry.metric
    there = primary in outcome.missing or any(score.metric == primary for score in outcome.scores)
    if there or (entry.analysis and not outcome.empty and (outcome.scores or outcome.missing)):
        return outcome.missing
    return {primary: outcome.empty or f"no {primary} could be computed", **outcome.missing}


def _number(score: Score) -> dict[str, object]:
    """A score's value and interval, or why it has none: infinite values are no scores."""
    if isinf(score.value):
        return {"value": float("nan"), "reason": f"not a number: {score.value}"}
    margin = NORMAL * score.error
    return {"value": score.value, "ci_low": score.value - margin, "ci_high": score.value + margin}
