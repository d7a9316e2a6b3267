"""Outcomes as records, and where their files are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyarrow import ArrowException
from pyarrow.parquet import read_table

import benchmark
from benchmark.plan.plan import BoundTask
from benchmark.scores.assess import Assessments, place_of
from benchmark.scores.layers import LayerOutcome
from leaderboards.records.files import scored_path
from leaderboards.records.record import Record, add_suite, read_frame, suite_names, write_frame
from zoo.spec import BackboneSpec


def commit(checkout: Path) -> str | None:
    """Commit of a git checkout, read from its files; None where there is no checkout."""
    git = checkout / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        branch = head.removeprefix("ref: ")
        if (git / branch).is_file():
            return (git / branch).read_text(encoding="utf-8").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split()[0] for line in packed if line.endswith(f" {branch}")), None)


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
        unreadable: Images that could not be read and were left out.
        seconds: Time of the scoring.
    """

    task: BoundTask
    fingerprint: str
    unreadable: int
    seconds: float

    @property
    def coverage(self) -> str:
        """What was there of the dataset, in words."""
        text = str(self.task.coverage)
        return f"{text}; {self.unreadable} unreadable images left out" if self.unreadable else text


def file_name(task: BoundTask, *backbones: str) -> Path:
    """Path of a records or items file below its folder."""
    return scored_path(task.key, *backbones)


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
        "task": task.task.name,
        "protocol": task.protocol,
        "dataset": task.dataset,
        "split": task.split,
        "partial": task.coverage.partial or scored.unreadable > 0,
        "coverage": scored.coverage,
        "dtype": context.dtype,
        "device": context.device,
        "fingerprint": scored.fingerprint,
        "seconds": scored.seconds,
        "version": benchmark.__version__,
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
    primary = scored.task.task.metric
    records: list[Record] = []
    for one in outcomes:
        shown = one.pooling in ("grid", context.table_pooling)
        where = {"layer": one.layer.index, "tap": one.layer.tap, "pooling": one.pooling}
        for score in one.outcome.scores:
            fields = {
                "metric": score.metric,
                "primary": shown and score.metric == primary,
                "value": score.value,
                "n": score.n,
                "unit": score.unit,
            }
            if found := assessed.get((place_of(one), score.metric)):
                fields |= {
                    "ci_low": found.low,
                    "ci_high": found.high,
                    "chosen": found.chosen,
                    "held_out": found.held_out,
                    "tied": found.tied,
                }
            records.append(Record(**shared, **where, **fields))  # type: ignore[arg-type]
        if not any(score.metric == primary for score in one.outcome.scores):
            reason = one.outcome.empty or f"no {scored.task.task.metric} could be computed"
            fields = {"metric": primary, "primary": shown, "value": float("nan"), "n": 0, "unit": ""}
            records.append(Record(**shared, **where, **fields, reason=reason))  # type: ignore[arg-type]
    return records
