"""Objects and numbers of JSON files."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from layerboard.tasks.datasets.reading.files import read_bytes
from layerboard.zoo.reading import read_as

JsonObject = Mapping[str, object]


def read_json(path: Path) -> JsonObject:
    """The object in a JSON file; raises InputError for a missing or malformed one."""
    return read_as(dict[str, object], path, read=read_bytes)


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number that fits into a float."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # JSON's integers are unlimited
        return False


def numbers(value: object) -> list[float] | None:
    """A JSON list of finite numbers, or None for anything else."""
    return value if isinstance(value, list) and all(map(is_number, value)) else None
