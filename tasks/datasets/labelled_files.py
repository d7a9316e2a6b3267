"""Images that a table names, found in a folder: which rows fit which files."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tasks.datasets.files import some
from tasks.datasets.label_table import METADATA, LabelTable, Row, read_label_table
from tasks.datasets.tree import ImageTree
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class LabelledFile:
    """An image and its class.

    Attributes:
        path: Relative to the dataset's folder, with ``/`` between names; its key.
        label: Name of its class.
        name: What it is called within its class: the hash of it decides where a split is made.
        split: The split that it was put into, in small letters; "" where none was named.
    """

    path: str
    label: str
    name: str
    split: str


@dataclass(frozen=True, slots=True)
class Matched:
    """The images of a dataset that have classes.

    Attributes:
        files: Those that are there and have a class.
        remarks: Where the classes come from, and what makes no difference.
        notes: What was left out, and why.
    """

    files: tuple[LabelledFile, ...]
    remarks: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of one dataset, each with what its files are relative to: a folder, "" or ending with ``/``."""

    found: tuple[tuple[str, LabelTable], ...]

    @property
    def rows(self) -> Iterator[tuple[str, LabelTable, Row]]:
        """Every row with its folder and its table."""
        return ((prefix, table, row) for prefix, table in self.found for row in table.rows)

    @property
    def name(self) -> str:
        """What they are called in a sentence."""
        return ", ".join(table.path.name for _, table in self.found[:1]) + (
            f" and {len(self.found) - 1} more" if len(self.found) > 1 else ""
        )


def find_metadata(tree: ImageTree) -> Tables | None:
    """The tables that lie in a folder itself or in the folders in it; None where there is none with classes.

    Raises:
        InputError: Two lie in one folder, or one cannot be read.
    """
    places: dict[str, list[str]] = {}
    for path in tree.others:
        folder, _, name = path.rpartition("/")
        if name in METADATA and "/" not in folder:
            places.setdefault(folder, []).append(path)
    found: list[tuple[str, LabelTable]] = []
    for folder, paths in places.items():
        if len(paths) > 1:
            raise InputError(f"expected one table in {tree.root / folder}, found {' and '.join(METADATA)}")
        table = read_label_table(tree.root / paths[0], required=False)
        if table is not None:
            found.append((f"{folder}/" if folder else "", table))
    return Tables(tuple(found)) if found else None


def read_labels(path: Path) -> Tables:
    """The table that a user named, whose files are relative to the folder of images; raises InputError."""
    table = read_label_table(path, required=True)
    assert table is not None
    return Tables((("", table),))


def match(tables: Tables, tree: ImageTree) -> Matched:
    """The images that rows name, with or without ending, and how many of either have no partner.

    Raises:
        InputError: No row names an image, one names several, or two rows say different things of one.
    """
    index = _Index(tree)
    rows: dict[str, tuple[Row, Path]] = {}
    missing: list[str] = []
    nameless: list[str] = []
    twice = 0
    for prefix, table, row in tables.rows:
        path = index.find(prefix, row, table.path)
        if path is None:
            missing.append(row.file)
        elif not row.label:
            nameless.append(path)
        elif path in rows:
            _require_same(rows[path], row, table.path, path)
            twice += 1
        else:
            rows[path] = (row, table.path)
    if not rows:
        raise _nothing(tables, tree, missing)
    files = tuple(LabelledFile(path, row.label, path, row.split) for path, (row, _) in sorted(rows.items()))
    unnamed = sorted({*tree.images} - {*rows} - {*nameless})
    columns = " and ".join(dict.fromkeys(table.columns for _, table in tables.found))
    remarks = [f"classes from {tables.name} ({columns})"]
    if twice:
        remarks.append(f"{_counted(twice, 'row')} said again what another said")
    notes = [
        *_left_out(missing, "row", "without an image"),
        *_left_out(unnamed, "image", f"without a row in {tables.name}"),
        *_left_out(sorted(set(nameless)), "image", "whose row has no class"),
    ]
    return Matched(files, tuple(remarks), tuple(notes))


class _Index:
    """Images of a folder by what a table may call them."""

    def __init__(self, tree: ImageTree) -> None:
        self._root = tree.root.resolve()
        self._exact = {_normal(path): path for path in tree.images}
        self._bare: dict[str, list[str]] = {}
        for path in tree.images:
            self._bare.setdefault(_normal(path.rpartition(".")[0]), []).append(path)

    def find(self, prefix: str, row: Row, table: Path) -> str | None:
        """The image that a row names; None if it is not there; raises InputError where it may be several."""
        name = _normal(prefix + self._relative(row.file))
        if name in self._exact:
            return self._exact[name]
        found = self._bare.get(name, [])
        if len(found) > 1:
            raise InputError(
                f"expected one image of the name {row.file!r} of {table}, line {row.number}, found "
                f"{some(found)}; write its ending, too"
            )
        return found[0] if found else None

    def _relative(self, file: str) -> str:
        """A path as it is below the folder."""
        file = file.replace("\\", "/")
        if file.startswith(f"{self._root}/"):
            file = file.removeprefix(f"{self._root}/")
        return str(PurePosixPath(file))


def _normal(path: str) -> str:
    """One form of names that look alike: macOS takes accents apart."""
    return unicodedata.normalize("NFC", path)


def _require_same(first: tuple[Row, Path], second: Row, table: Path, path: str) -> None:
    row, where = first
    if (row.label, row.split) != (second.label, second.split):
        said = [" in ".join(filter(None, (one.label, one.split))) for one in (row, second)]
        raise InputError(
            f"expected one class of {path}, found {said[0]!r} in line {row.number} of {where} and "
            f"{said[1]!r} in line {second.number} of {table}"
        )


def _nothing(tables: Tables, tree: ImageTree, missing: Sequence[str]) -> InputError:
    if missing:
        return InputError(
            f"expected {tables.name} to name images below {tree.root}, such as {tree.images[0]}, found none "
            f"of its {len(missing):,} files there ({some(missing)}); names are relative to the folder"
        )
    return InputError(f"expected a class in the rows of {tables.name}, found none")


def _left_out(names: Sequence[str], noun: str, why: str) -> list[str]:
    return [f"{_counted(len(names), noun)} {why} left out ({some(names, 2)})"] if names else []


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
