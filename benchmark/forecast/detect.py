"""How many images, videos, ... a run needs to show layers apart from the best that differ by some points."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.record import read_records
from layerboard.tasks.framework.task import Task
from layerboard.tasks.statistics.resolution import units_for

# what the mini suite's table of each task says: number of units, and the smallest difference that they show
MINI: dict[str, tuple[int, float]] = {
    "knn": (576, 5.3),
    "retrieval": (12, 11.0),
    "davis": (6, 9.1),
    "spair": (256, 4.4),
    "cluster-image": (576, 13.6),
    "cluster-object": (48, 26.5),
    "cluster-part": (48, 20.7),
}
ALIKE = {"fewshot": "knn", "linear": "knn"}  # their answers, too, are right or wrong, one an image


@dataclass(frozen=True, slots=True)
class Detection:
    """The units by which a task would show a difference, in 80 % of cases and with 95 % confidence."""

    task: str
    dataset: str
    protocol: str
    needed: float | None  # about how many units; None if nothing is known of the errors of the task
    unit: str  # what is sampled, in the plural
    known: str  # what the number rests on, as a phrase


def detections(tasks: Sequence[Task], output: Path, difference: float) -> tuple[Detection, ...]:
    """For each task that ranks, about how many units show a difference of so many points from the best.

    The errors are those of earlier results in the folder ``output``: of the same dataset, or of the task's
    dataset with most units. Without any they are typical ones, those of the mini suite.
    """
    earlier = [*_earlier(output)]
    planned: dict[tuple[str, str, str], Detection] = {}
    for task in tasks:
        entry = task.entry
        if entry.analysis or task.needs in ("pairs", "device"):
            continue
        key = entry.name, task.dataset, task.protocol
        same = [each for each in earlier if each[0] == key] or [
            each for each in earlier if each[0][0] == entry.name
        ]
        unit, typical = entry.sampled or "images", MINI.get(ALIKE.get(entry.name, entry.name))
        if same:
            (_, dataset, _), units, unit, shown = max(same, key=lambda each: each[1])
            known = f"earlier results on {dataset}: {units:,} {unit} show {shown:.1f} points"
        elif typical:
            units, shown = typical
            like = f"{ALIKE[entry.name]} of " if entry.name in ALIKE else ""
            known = f"assumed, as in {like}the mini suite: {units:,} {unit} show {shown:.1f} points"
        else:
            known = "no earlier results, and none of this task in the mini suite"
        needed = units_for(difference, shown, units) if same or typical else None
        planned[key] = Detection(*key, needed, unit, known)
    return tuple(planned.values())


def _earlier(output: Path) -> Iterator[tuple[tuple[str, str, str], int, str, float]]:
    """Of each column of earlier results: task, dataset and protocol; units, what they are, what they show."""
    folder = output / "records"
    if not any(folder.rglob("*.parquet")):
        return
    board = Board.of(read_records([folder]), items=output / "items")
    for column in board.columns:
        standing = board.standings.get(column.key)
        if standing and not isnan(standing.smallest) and standing.smallest > 0:
            key = column.task, column.dataset, column.protocol
            yield key, standing.units, standing.unit, standing.smallest
