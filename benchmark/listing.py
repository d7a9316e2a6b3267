"""What `list` shows. Imports no torch."""

from benchmark.suites import SUITES
from tasks.registry import TASKS
from zoo.registry import all_specs

Row = dict[str, str | int | bool | None]


SHOWN = ("name", "family", "layers", "width", "patch", "input", "repository")
"""Columns of backbones that fit a terminal; `rows` has all."""


def rows(what: str) -> list[Row]:
    """Rows of backbones, tasks or suites; the keys are column titles."""
    return {"backbones": _backbones, "tasks": _tasks, "suites": _suites}[what]()


def shown(what: str) -> list[Row]:
    """The same, with the columns that fit a terminal."""
    if what != "backbones":
        return rows(what)
    return [{column: row[column] for column in SHOWN} for row in rows(what)]


def _backbones() -> list[Row]:
    return [
        {
            "name": spec.name,
            "family": spec.family,
            "supervision": spec.supervision,
            "layers": spec.depth,
            "width": spec.width,
            "patch": spec.patch_size,
            "input": spec.input_size,
            "trained": spec.trained,
            "licence": spec.licence,
            "repository": spec.repository or "none: give --weights",
            "revision": spec.revision or "resolved when loaded",
        }
        for spec in all_specs()
    ]


def _tasks() -> list[Row]:
    return [
        {"name": task.name, "what": task.title, "primary metric": task.metric, "standard data": task.data}
        for task in TASKS
    ]


def _suites() -> list[Row]:
    return [
        {"name": suite.name, "what": suite.title, "backbones": " ".join((*suite.backbones, suite.floor))}
        for suite in SUITES
    ]
