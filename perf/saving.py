"""Results as files, one machine each: JSON for machines, Markdown to read."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from perf.machine import Machine
from perf.rows import Budget, Row, as_data, as_table
from perf.topics import TOPICS
from zoo.atomic import whole_file

RESULTS = Path(__file__).parent / "results"


def save(machine: Machine, rows: Iterable[tuple[str, Row]], folder: Path = RESULTS) -> Path:
    """Write rows beside those of other topics on a device of that name; gives the Markdown page."""
    path = folder / f"{_slug(machine.device)}.json"
    new = list(rows)
    names = {topic for topic, _ in new}
    kept = [(topic, row) for topic, row in _read(path) if topic not in names]
    order = [topic.name for topic in TOPICS]
    every = sorted([*kept, *new], key=lambda one: order.index(one[0]))
    content = {"machine": asdict(machine), "rows": as_data(every)}
    _write(path, json.dumps(content, indent=1) + "\n")
    table = as_table(every, "github")
    _write(path.with_suffix(".md"), f"# {machine.device}\n\n{machine}\n\n{table}\n")
    return path.with_suffix(".md")


def _read(path: Path) -> Sequence[tuple[str, Row]]:
    """Rows that are there, of topics that there are."""
    if not path.is_file():
        return ()
    names = {topic.name for topic in TOPICS}
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return [(one["topic"], _row(one)) for one in rows if one["topic"] in names]


def _row(data: dict[str, Any]) -> Row:
    words = {one.name: data[one.name] for one in fields(Row)}
    return Row(**words | {"budget": data["budget"] and Budget(**data["budget"])})


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _write(path: Path, text: str) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
