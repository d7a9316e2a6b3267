"""Outcomes as records, and where their files are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyarrow import ArrowException
from pyarrow.parquet import read_table

from benchmark.plan.bound import Subject
from benchmark.scores.assess import Assessments, place_of
from benchmark.scores.layers import LayerOutcome
from leaderboards.records.record import Record, add_suite, read_frame, suite_names, write_frame
from leaderboards.records.version import VERSION
from zoo.spec import BackboneSpec


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
        subject: The task, its data and its protocol.
        fingerprint: Identity of features and scoring.
        unreadable: Images that could not be read and were left out.
        seconds: Time of the scoring.
    """

    subject: Subject
    fingerprint: str
    unreadable: int
    seconds: float

    @property
    def coverage(self) -> str:
        """What was there of the dataset, in words."""
        text = str(self.subject.coverage)
        return f"{text}; {self.unreadable} unreadable images left out" if self.unreadable else text


def is_current(path: Path, fingerprint: str) -> bool:
    """Whether a records file exists, can be read and belongs to that fingerprint."""
    try:
        found = read_table(path, columns=["fingerprint"]).column(0).to_pylist()
    except (OSError, ArrowException):
        return False
    return bool(found) and set(found) == {fingerprint}


def file_under(path: Path, fingerprint: str, suite: str) -> None:
    """Let current records, left by a run of another suite perhaps, belong to this one's page, too."""
    if not is_current(path, fingerprint):
        return
    found = read_table(path, columns=["suite"]).column(0).unique().to_pylist()
    if not all(suite in suite_names(text) for text in found):
        write_frame(add_suite(read_frame(path), suite), path)


def rule_of(spec: BackboneSpec) -> str:
    """Rule by which a backbone fitted its position embeddings; "" where it has none, or they are not ours."""
    return "" if spec.heads is None or spec.checkpoint == "object" else spec.interpolation


def base_fields(context: Context, scored: Scored) -> dict[str, object]:
    """Fields that do not depend on the layer."""
    spec, subject = context.spec, scored.subject
    return {
        "suite": context.suite,
        "backbone": spec.name,
        "family": spec.family,
        "trained": spec.trained,
        "revision": context.revision,
        "depth": spec.depth,
        "input_size": spec.input_size,
        "interpolation": rule_of(spec),
        "task": subject.entry.name,
        "analysis": subject.entry.analysis,
        "protocol": subject.protocol,
        "dataset": subject.dataset,
        "split": subject.split,
        "partial": subject.coverage.partial or scored.unreadable > 0,
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
    entry = scored.subject.entry
    records: list[Record] = []
    for one in outcomes:
        shown = entry.analysis or one.pooling in ("grid", context.table_pooling)
        where = {"layer": one.layer.index, "tap": one.layer.tap, "pooling": one.pooling}
        for score in one.outcome.scores:
            fields = {
                "metric": score.metric,
                "primary": shown and score.head < 0 and score.metric == entry.metric,
                "head": score.head,
                "value": score.value,
                "n": score.n,
                "unit": score.unit,
            }
            if found := assessed.get((place_of(one), score.statistic)):
                fields |= {
                    "ci_low": found.low,
                    "ci_high": found.high,
                    "chosen": found.chosen,
                    "held_out": found.held_out,
                    "tied": found.tied,
                }
            records.append(Record(**shared, **where, **fields))  # type: ignore[arg-type]
        if not any(score.metric == entry.metric for score in one.outcome.scores):
            reason = one.outcome.empty or f"no {entry.metric} could be computed"
            fields = {"metric": entry.metric, "primary": shown, "value": float("nan"), "n": 0, "unit": ""}
            records.append(Record(**shared, **where, **fields, reason=reason))  # type: ignore[arg-type]
    return records
