"""Limits say what was used, and say nothing where nothing was left out."""

from pathlib import Path

from layerboard.benchmark.plan.location import DataLocation
from layerboard.benchmark.plan.plan import PlanRecipe, make_plan
from layerboard.benchmark.plan.suites import STANDARD_SUITE
from layerboard.zoo.registry.find import find


def coverage(data: Path, limit: int | None) -> dict[str, tuple[str, str]]:
    """Coverage and digest of each task's data."""
    location = DataLocation(STANDARD_SUITE.datasets, data, (), limit)
    tasks = make_plan(PlanRecipe(find(["mini-fs"]), (), location)).tasks.every
    return {task.key: (str(task.coverage), task.data_digest) for task in tasks}


def test_a_limit_beyond_the_data_leaves_them_as_they_are(data: Path) -> None:
    assert coverage(data, 10_000) == coverage(data, None)


def test_a_limit_makes_other_data(data: Path) -> None:
    found, whole = coverage(data, 1), coverage(data, None)
    assert [key for key in whole if found[key][1] == whole[key][1]] == []
