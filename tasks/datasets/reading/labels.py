"""Tables with the class, split and group of each image, and the files in a folder that their rows name.

Tables are CSV files, or metadata files of ``imagefolder``.
"""

import codecs
import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice, zip_longest
from operator import attrgetter
from pathlib import Path
from sys import intern
from typing import Literal, NamedTuple

from layerboard.tasks.datasets.integrity import Coverage, explaining, mismatch, require, require_no
from layerboard.tasks.datasets.reading.door import NOTHING, labels_text
from layerboard.tasks.datasets.reading.files import read_bytes
from layerboard.tasks.datasets.reading.names import normal
from layerboard.tasks.datasets.reading.tree import ImageTree
from layerboard.zoo.errors import InputError, counted, either, restored, shortened, some
from layerboard.zoo.reading import decoded
from layerboard.zoo.view.photos import endings

# columns of files and of classes, in order of preference, and of splits; case-insensitive
FILE_COLUMNS = ("file_name", "file", "filename", "path", "image")
LABEL_COLUMNS = ("label", "class")
SPLIT_COLUMN = "split"  # train or val; optional
GROUP_COLUMN = "group"  # of images that belong together: of one patient, camera, place or series

DELIMITERS = ",;\t|"  # possible delimiters: the one that splits the header best, ties to the first
FALLBACK = "cp1252"  # encoding of text that is not UTF-8: that of most spreadsheets in Europe and America
_NO_TEXT = re.compile(r"[\0-\x08\x0e-\x1f]")  # characters of files that are no text
METADATA = ("metadata.csv", "metadata.jsonl")  # metadata files of the ``datasets`` library
_SAID_DELIMITER = re.compile(r'"?sep=([^"])"?', re.IGNORECASE)

Target = Literal["class", "number", "labels"]


class Labelling(NamedTuple):
    """The user's options that describe the content of a folder of images."""

    labels: Path | None = None  # table of classes; None for a table in the folder, or its folder names
    groups: Path | None = None  # table of groups; None for the column of ``labels``
    target: Target | None = None  # kind of values in the table of labels; None to detect it
    copies: bool = False  # whether copies of the images are generated, to be retrieved

    @classmethod
    def of(cls, request: object) -> "Labelling":
        """The labelling of a request, whose options have these names."""
        return cls(*(getattr(request, name) for name in cls._fields))


AS_IT_IS = Labelling()  # for a folder without further options


class LabelledFile(NamedTuple):
    """An image and its labels, as its row of a table or its folder says them."""

    path: str  # as written in a table; once it is found, relative to the dataset's folder: its key
    label: str  # its class; "" for none
    split: str  # its split in lower case; "" for none
    group: str = ""  # its group; "" for none
    cells: tuple[str, ...] = ()  # all cells of its row, in the order of `LabelTable.header`
    number: int = 0  # line of the table that its row ends on, from 1


class LabelTable(NamedTuple):
    """A table of labels."""

    path: Path
    rows: tuple[LabelledFile, ...]
    header: tuple[str, ...]  # names of all columns, as written
    file: str | None  # the column of files; None if there is none, as for the other columns
    label: str | None
    split: str | None
    group: str | None
    prefix: str  # folder below that of the images, ending with ``/``, that its files are relative to, or ""
    commas: bool = False  # whether its columns are parted by another character, so numbers may have a comma
    remarks: tuple[str, ...] = ()  # on its encoding unless that is UTF, and on words that stand for nothing

    @property
    def columns(self) -> str:
        """Description of the recognised columns."""
        return ", ".join(name for name in (self.file, self.label, self.split, self.group) if name)


def read_label_table(path: Path, prefix: str = "") -> LabelTable:
    """The rows of a table with any of the columns; raises InputError.

    ``.jsonl`` has one JSON object per line; anything else is delimited text with a header (`DELIMITERS`).
    """
    json_lines = path.suffix.lower() == ".jsonl"
    text, remark = _text(path)
    top = text.lstrip().partition("\n")[0]  # it may say the delimiter, as those of spreadsheets
    stated = _SAID_DELIMITER.fullmatch(top.strip())
    delimiter = None if json_lines else stated[1] if stated else max(DELIMITERS, key=top.count)
    lines: Iterator[tuple[int, Mapping[str, object]]]
    lines = _csv_lines(path, text, delimiter) if delimiter else _json_lines(path, text)
    first = list(islice(lines, None if json_lines else 1))  # the lines with all column names
    header = tuple(dict.fromkeys(name for _, record in first for name in record))
    sought = (FILE_COLUMNS, LABEL_COLUMNS, (SPLIT_COLUMN,), (GROUP_COLUMN,))
    file, label, split, group = columns = [_column(header, names) for names in sought]
    repeated, nothing = {name for name in columns[1:] if name is not None}, set[str]()

    def text_of(name: str, value: object, number: int) -> str:
        if delimiter and value in NOTHING and name != file:
            nothing.add(str(value))
            return ""
        if name not in repeated and (delimiter or isinstance(value, dict | list)):
            return value if isinstance(value, str) else ""
        text = labels_text(value, f"{name!r} in line {number} of {path}")
        return intern(text) if name in repeated else text

    def row_of(number: int, record: Mapping[str, object]) -> LabelledFile:
        cells = {name: text_of(name, value, number) for name, value in record.items()}
        image, said, side, near = ("" if name is None else cells.get(name, "") for name in columns)
        every = tuple(cells.get(name, "") for name in header)
        return LabelledFile(image, said, intern(side.lower()), near, every, number)

    rows = tuple(row_of(*line) for line in chain(first, lines))
    require(rows, f"a row for each image in {path}")
    commas = delimiter not in (None, ",")
    missing = f"{', '.join(sorted(nothing))} in {path.name} is no value" if nothing else ""
    remarks = tuple(filter(None, (remark, missing)))
    return LabelTable(path, rows, header, file, label, split, group, prefix, commas, remarks)


def read_groups(path: Path) -> LabelTable:
    """The rows of a table with a column of files and one of groups; raises InputError."""
    table = read_label_table(path)
    require_columns(table, FILE_COLUMNS, (GROUP_COLUMN,))
    return table


def require_columns(table: LabelTable, *columns: Sequence[str]) -> None:
    """Raise InputError if a table lacks a column (given by its possible names), or a row lacks an image."""
    require(
        all(_column(table.header, names) for names in columns),
        f"a column {' and a column '.join(map(either, columns))} in the first line of {table.path}",
        some(map(shortened, table.header), 6),
        "give the columns these names, and take out what stands above them",
    )
    nameless = [f"none in line {row.number}" for row in table.rows if not row.path]
    require_no(nameless, f"an image in every row of {table.path}", most=1)


def _column(header: Sequence[str], names: Iterable[str]) -> str | None:
    columns = {name.lower(): name for name in reversed(header)}
    return next((columns[name] for name in names if name in columns), None)


def _text(path: Path) -> tuple[str, str]:
    """The text of a file, and a remark if its encoding is a guess; raises InputError."""
    with explaining(f"cannot read labels {path}", OSError):
        content = read_bytes(path)
    encoding, remark = "utf-8-sig", ""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in content[:2]:
        encoding = "utf-16-le" if content[1:2] == b"\0" else "utf-16-be"
    try:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            text = content.decode(FALLBACK)
            words = [word for word in re.findall(r"\w+", text) if not word.isascii()]
            remark = f"{path.name} is not in UTF-8: read as Windows-1252 ({some(dict.fromkeys(words))})"
        if _NO_TEXT.search(text):
            raise ValueError
    except ValueError as error:
        raise InputError(f"cannot read labels {path}: it is no text; save it as CSV in UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n"), remark


def _csv_lines(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    lines = (line[0] for line in re.finditer(r".*\n?", f"{text}\n"))  # the last one shows an open quotation
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    header: list[str] = []
    before, lines_in_all = 0, text.count("\n") + 1
    columns = f"columns in every line of {path}"
    remedy = (
        f"put text that holds {delimiter!r} into quotation marks, and remove the lines above the names of "
        "the columns"
    )
    try:
        for row in reader:
            if reader.line_num > before + 1:
                _require_closed(path, row, header, before + 1, reader.line_num > lines_in_all)
            before = reader.line_num
            cells = [normal(restored(cell.strip())) for cell in row]
            if not any(cells) or (not header and _SAID_DELIMITER.fullmatch(delimiter.join(cells))):
                continue
            if not header:
                header = cells
                if twice := [name for name in cells if name and cells.count(name) > 1]:
                    raise InputError(f"{path} has two columns {twice[0]!r}; rename one of them")
            elif len(cells) > len(header):
                raise mismatch(f"{len(header)} {columns}", f"{len(cells)} in line {before}", remedy)
            else:
                yield before, dict(zip_longest(header, cells, fillvalue=""))
    except csv.Error as error:
        raise InputError(f"cannot read labels {path}, line {reader.line_num}: {error}") from error


def _require_closed(path: Path, row: Sequence[str], header: Sequence[str], line: int, at_end: bool) -> None:
    """Raise InputError for a quotation mark that is open at the end of a table or swallows rows of it.

    The row of several lines begins in ``line``. Its file, class, split and group are within a line, and other
    text of several lines holds no cell with the name of an image.
    """
    for number, cell in enumerate(row):
        column = header[number].lower() if number < len(header) else ""
        is_long = "\n" in cell.strip()
        _, *further = re.split(rf"[{DELIMITERS}\n]", cell)
        swallows = is_long and any(part.strip().lower().endswith(endings()) for part in further)
        is_short = column in (*FILE_COLUMNS, *LABEL_COLUMNS, SPLIT_COLUMN, GROUP_COLUMN)
        if swallows or (is_short and is_long) or (at_end and number == len(row) - 1):
            closed = f"the quotation mark in line {line} of {path} to be closed within the line"
            remedy = "close it, or write it twice if it belongs to the text of a quoted cell"
            raise mismatch(closed, shortened(cell), remedy)
        line += cell.count("\n")


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Line number and fields of each object."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            fields = decoded(dict[str, object], line)
        except ValueError as error:
            objects = f"one JSON object a line in {path}"
            raise mismatch(objects, f"{shortened(line)} in line {number} ({error})") from error
        yield number, {normal(name): value for name, value in fields.items()}


def find_metadata(tree: ImageTree) -> list[LabelTable]:
    """The tables in a folder and in its direct subfolders; raises InputError."""
    tables = []
    metadata = (path for path in tree.others if path.rpartition("/")[2] in METADATA and path.count("/") < 2)
    for folder, (path, *others) in groupby(metadata, lambda path: path.rpartition("/")[0]):
        require(not others, f"one table in {tree.root / folder}", " and ".join(METADATA))
        prefix = f"{folder}/" if folder else ""
        tables.append(read_label_table(tree.root / path, prefix))
    return tables


def match_rows(
    tables: Sequence[LabelTable],
    tree: ImageTree,
    said: Callable[[LabelledFile], str] = attrgetter("label"),
    noun: tuple[str, str] = ("class", "classes"),
) -> tuple[list[LabelledFile], Coverage]:
    """The images named by rows (with or without extension), and how rows were read; raises InputError.

    ``said`` returns the value of a row, and ``noun`` is its name (singular, plural). Rows without a value are
    left out. Several rows of one image must agree in value, split and group.
    """
    name = tables[0].path.name + (f" and {len(tables) - 1} more" if len(tables) > 1 else "")
    image_of = _image_finder(tree)
    rows: dict[str, tuple[LabelledFile, LabelTable]] = {}
    missing: list[str] = []
    nameless: set[str] = set()
    twice = 0
    for table, row in ((each, row) for each in tables for row in each.rows):
        path = image_of(table, row)
        if path is None:
            missing.append(row.path)
        elif not said(row):
            nameless.add(path)
        elif path in rows:
            _require_same(path, noun[0], [(said(each), each, at) for each, at in (rows[path], (row, table))])
            twice += 1
        else:
            rows[path] = (row, table)
    if missing and not rows:
        images = f"{name} to name images below {tree.root}, such as {tree.images[0]}"
        none = f"none of its {len(missing):,} files there ({some(missing)})"
        raise mismatch(images, none, "names are relative to the folder")
    require(rows, f"a {noun[0]} in the rows of {name}")
    columns = " and ".join(dict.fromkeys(table.columns for table in tables))
    unnamed = sorted({*tree.images} - {*rows} - nameless)
    left_out = (
        (counted(len(missing), "rows"), "without an image", missing),
        (counted(len(unnamed), "images"), f"without a row in {name}", unnamed),
        (counted(len(nameless), "images"), f"whose row has no {noun[0]}", sorted(nameless)),
    )
    notes = [f"{number} {why} left out ({some(names, 2)})" for number, why, names in left_out if names]
    files = [row._replace(path=path) for path, (row, _) in sorted(rows.items())]
    remarks = [f"{noun[1]} from {name} ({columns})", *(each for table in tables for each in table.remarks)]
    remarks += [f"{counted(twice, 'rows')} repeating another row"] if twice else []
    return files, Coverage(notes=tuple(notes), remarks=tuple(remarks))


def _image_finder(tree: ImageTree) -> Callable[[LabelTable, LabelledFile], str | None]:
    """A function that finds the image named by a row, if it exists; raises InputError if it is ambiguous."""
    root = normal(f"{tree.root.resolve()}/")
    named, whole = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for path in tree.images:
        named[normal(path.rpartition(".")[0])].append(path)
        whole[normal(path)].append(path)
    named |= whole  # with its extension, a name is unique, but for two Unicode forms of it

    def find(table: LabelTable, row: LabelledFile) -> str | None:
        file = row.path.replace("\\", "/").removeprefix(root)
        if file.startswith("/"):  # outside the folder
            return None
        file = "/".join(part for part in file.split("/") if part not in ("", "."))
        paths = named.get(normal(f"{table.prefix}{file}"), [])
        if len(paths) > 1:
            remedy = "add its ending" if len({*map(normal, paths)}) > 1 else "rename one"
            where = f"{table.path}, line {row.number}"
            raise mismatch(f"one image of the name {row.path!r} of {where}", some(paths), remedy)
        return paths[0] if paths else None

    return find


def _require_same(path: str, noun: str, rows: Sequence[tuple[str, LabelledFile, LabelTable]]) -> None:
    texts = (
        f"{' in '.join(dict.fromkeys(filter(None, (said, row.split, row.group))))!r} in line {row.number} "
        f"of {table.path}"
        for said, row, table in rows
    )
    alike = len({(said, row.split, row.group) for said, row, _ in rows}) < 2
    require(alike, f"one {noun} of {path}", " and ".join(texts))
