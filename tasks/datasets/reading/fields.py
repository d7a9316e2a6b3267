"""Checked access to the fields of JSON files, with errors that name the file, the field and its value."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TypeVar

from layerboard.tasks.datasets.reading.files import read_bytes
from layerboard.zoo.errors import InputError, shortened
from layerboard.zoo.reading import read_as

JsonObject = Mapping[str, object]
T = TypeVar("T")


def read_json(path: Path) -> JsonObject:
    """The object in a JSON file; raises InputError for a missing or malformed one."""
    return read_as(dict[str, object], path, read=read_bytes)


def as_object(value: object, where: str) -> JsonObject:
    """The value as a JSON object; raises InputError."""
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object in {where}, found {shortened(value)}")
    return value


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


def _get(fields: JsonObject, name: str, kind: type[T], what: str, where: str) -> T:
    if name not in fields:
        raise InputError(f"expected field {name!r} in {where}, which has {shortened(sorted(fields))}")
    value = fields[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _wrong(name, what, where, value)
    return value


def _wrong(name: str, what: str, where: str, value: object) -> InputError:
    return InputError(f"expected field {name!r} to be {what} in {where}, found {shortened(value)}")


def get_text(fields: JsonObject, name: str, where: str) -> str:
    """A text field; raises InputError."""
    return _get(fields, name, str, "text", where)


def get_integer(fields: JsonObject, name: str, where: str) -> int:
    """An integer field of 64 bits; raises InputError."""
    value = _get(fields, name, int, "an integer", where)
    if not -(2**63) <= value < 2**63:
        raise _wrong(name, "an integer", where, value)
    return value


def get_list(fields: JsonObject, name: str, where: str) -> list[object]:
    """A list field; raises InputError."""
    return _get(fields, name, list, "a list", where)


def get_objects(fields: JsonObject, name: str, where: str) -> list[JsonObject]:
    """A list field of JSON objects; raises InputError."""
    return [as_object(value, f"{name!r} of {where}") for value in get_list(fields, name, where)]


def get_numbers(fields: JsonObject, name: str, count: int, where: str) -> list[float]:
    """A field of exactly that many finite numbers; raises InputError."""
    value = _get(fields, name, list, f"{count} numbers", where)
    if len(value) != count or not all(map(is_number, value)):
        raise _wrong(name, f"{count} numbers", where, value)
    return value
