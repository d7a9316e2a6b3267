"""Shards of WebDataset, .tar files, kept as a folder with a table.

Files of one name up to the first dot in a shard are one sample: ``00012.jpg`` and its class in
``00012.cls``, ``00012.label.txt``, ``00012.json`` or ``00012.txt``.
"""

import json
import re
import tarfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from glob import glob
from io import BytesIO
from os.path import commonprefix
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from layerboard.tasks.datasets.integrity import explaining, is_number, require, require_no
from layerboard.tasks.datasets.reading.door import label_text, labels_text
from layerboard.tasks.datasets.reading.files import require_free_bytes, stamp
from layerboard.tasks.datasets.reading.labels import FILE_COLUMNS, LABEL_COLUMNS, METADATA
from layerboard.tasks.datasets.reading.splits import TRAIN, split_of, split_within
from layerboard.tasks.datasets.reading.tree import read_tree
from layerboard.tasks.datasets.reading.zipped import (
    member_name,
    require_images,
    require_likely_size,
    require_new,
    write_member,
    written_once,
)
from layerboard.zoo.errors import MissingDataError
from layerboard.zoo.reading import decoded
from layerboard.zoo.view.photos import endings

TAR = ".tar"
CLASSES = {"cls", "class", "label"}  # words in the names of fields that say the class of a sample
OBJECTS, TEXTS = {"json", "jsn"}, {"txt", "text"}  # last words of fields, and fields, that may say it
# entries of the JSON that do, in order of preference
NAMED = (
    *(*LABEL_COLUMNS, "class_name", "label_name", "category_name", "category", "cls"),
    *("class_id", "label_id", "category_id", "target", "labels", "classes"),
)
MOST_FACTS = 2**20  # bytes of such a field
COMPRESSED = (".bz2", ".gz", ".lz4", ".xz", ".zst")  # endings of files that would have to be unpacked, too
MOST_SHARDS = 100_000
ONE_IMAGE = (
    "a sample is named by what is before the first dot, so take a dot within a name out, or unpack the file "
    "and name its folder"
)
BLOCK, PADDING = 512, 10_240  # bytes of a header, and of the zeros after the last file at most
_SAMPLE = re.compile(r"((?:.*/)?[^./]+)\.([^/]*)", re.DOTALL)  # name of a sample, and field
_BRACES = re.compile(r"\{(?:(\d+)\.\.(\d+)|([^{}]*,[^{}]*))\}")


def expanded(location: str) -> list[str]:
    """The .tar files that a pattern names, by ``{000..003}``, ``{train,val}`` or ``*``; else the location.

    Raises InputError for a pattern that names none, or too many.
    """
    if not location.lower().endswith(TAR) or Path(location).exists():
        return [location]
    shards = _without_braces(location)
    if any("*" in shard for shard in shards):
        shards = sorted(path for shard in shards for path in glob(shard))
    require(shards, f".tar files of {location}", remedy="in braces is first..last")
    return shards


def _without_braces(text: str) -> list[str]:
    if (braces := _BRACES.search(text)) is None:
        return [text]
    first, last, words = braces.groups()
    numbers = range(int(first), min(int(last), int(first) + MOST_SHARDS) + 1) if first else ()
    parts = words.split(",") if words else [str(number).zfill(len(first)) for number in numbers]
    tails = _without_braces(text[braces.end() :])
    is_few = len(parts) * len(tails) <= MOST_SHARDS
    require(is_few, f"at most {MOST_SHARDS:,} shards", f"more in {text}", "name their folder")
    return [text[: braces.start()] + part + tail for part in parts for tail in tails]


def together(locations: Sequence[str]) -> tuple[str, ...]:
    """Locations in which .tar files of one set are one, as a shell parts ``photos-{000..003}.tar``.

    Shards of one set are in one folder, and their names differ only in numbers and in words of splits.
    """
    sets = defaultdict[object, list[str]](list)
    for number, location in enumerate(locations):
        folder, _, name = location.rpartition("/")
        words = re.split(r"[-_.]+", re.sub(r"\d+", "", name))
        plain = name.endswith(TAR) and not {*"{},*"} & {*location}
        sets[(folder, *(word for word in words if not split_of(word))) if plain else number].append(location)
    return tuple(_in_braces(each) for each in sets.values())


def _in_braces(shards: Sequence[str]) -> str:
    if len(shards) == 1:
        return shards[0]
    start = commonprefix(shards).removesuffix(TAR)  # noqa: RUF071  # of their texts
    return f"{start}{{{','.join(shard.removeprefix(start).removesuffix(TAR) for shard in shards)}}}{TAR}"


def set_name(location: str) -> str:
    """The name of the dataset in an archive, or in the shards of a pattern."""
    path = PurePosixPath(location)
    if not re.search(r"[{*]", path.name):
        return path.stem
    shared = re.sub(r"\{.*\}|\*", "", path.stem).strip("-_.0123456789 ")
    return shared or path.parent.name or "shards"


def tars_below(folder: Path) -> list[Path]:
    """The .tar files below a folder that has such files and no images; else none."""
    if not folder.is_dir():
        return []
    tree = read_tree(folder)
    tars = [folder / path for path in tree.others if path.lower().endswith(TAR)]
    return [] if tree.images else tars


def read_shards(paths: Sequence[Path], name: str, place: Path) -> Path:
    """The folder ``name`` below ``place`` with the files of shards, which are read once.

    It is known by the paths, sizes and times of change of the shards. What a sample says of its image becomes
    a row of a table ``metadata.jsonl``; if all names of the shards say a split, the images are in a folder of
    it. Raises InputError for a shard that is missing or not safe to write, and ``tarfile.TarError``, OSError
    and ValueError for a damaged one.
    """
    if missing := next((path for path in paths if not path.is_file()), None):
        raise MissingDataError(f"expected the file {missing}, which does not exist")
    stamps = [("webdataset", str(path.resolve()), *stamp(path)) for path in paths]

    def write(root: Path) -> None:
        splits, sizes = _splits(paths), [_sizes(path) for path in paths]
        require_free_bytes(sum(sum(each.values()) for each in sizes), place, f"{name}{TAR} unpacks to")
        _write(paths, splits, sizes, root)

    return written_once(place, stamps, name, write)


def _splits(paths: Sequence[Path]) -> list[str]:
    """The split of each shard; "" for all unless train and another are among them; raises InputError."""
    splits = [split_within(path.stem) or split_of(path.parent.name) for path in paths]
    if TRAIN not in splits or len({*splits}) == 1:
        return [""] * len(splits)
    others = [path for path, split in zip(paths, splits, strict=True) if not split]
    stated = f"each name of the shards to say {TRAIN} or val, as {paths[splits.index(TRAIN)].name} does"
    require_no([*map(str, others[:1])], stated, "rename it, or leave it out")
    return splits


def _sizes(path: Path) -> dict[str, int]:
    """Bytes of each file of a shard, by name; raises InputError for one that is not safe to write."""
    sizes, whole = dict[str, int](), 0
    for parts, member, _ in _files(path):
        whole += member.size
        require_likely_size(path, len(sizes) + 1, whole)
        require_new(path, parts[0], sizes)
        sizes[parts[0]] = member.size
    return sizes


def _files(path: Path) -> Iterator[tuple[re.Match[str], tarfile.TarInfo, tarfile.TarFile]]:
    """The parts (`_SAMPLE`) of the name of each file in a .tar, in order, its header, and the .tar.

    Hidden files and those without an ending, which belong to no sample, are left out. Raises InputError for
    links and unsafe names, and ``tarfile.ReadError`` where ``tarfile`` would end without an error.
    """
    with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as archive:
        count = 0
        for member in archive:
            count += 1
            name = member_name(path, str(PurePosixPath(member.name)), member.isreg() or member.isdir())
            if not member.isdir() and (parts := _SAMPLE.fullmatch(name)):
                yield parts, member, archive
        file.seek(archive.offset)
        if file.read(BLOCK) != bytes(BLOCK):  # a header that tarfile cannot read
            raise tarfile.ReadError(f"{path.name} is damaged or cut off after {count:,} files")
        if file.read(PADDING).strip(b"\0"):
            raise tarfile.ReadError(f"another archive follows in {path.name}")


def _write(
    paths: Sequence[Path], splits: Sequence[str], sizes: Sequence[Mapping[str, int]], root: Path
) -> None:
    """Write the files of shards, and the table of what they say of images."""
    stems = Counter(path.stem for path in paths)
    counts = Counter((split, name) for split, names in zip(splits, sizes, strict=True) for name in names)
    twice = next((name for (_, name), count in counts.items() if count > 1), "")
    labelled, table = False, root / METADATA[1]
    root.mkdir()
    with table.open("x", encoding="utf-8") as file:
        for number, (path, split) in enumerate(zip(paths, splits, strict=True)):
            stem = path.stem if stems[path.stem] == 1 else f"{number}-{path.stem}"
            for row in _unpack(path, sizes[number], root, PurePosixPath(split, stem if twice else "")):
                labelled |= LABEL_COLUMNS[0] in row
                file.write(json.dumps(row) + "\n")
    if not table.stat().st_size:
        table.unlink()
    # the folders of shards would be classes
    remedy = "rename it in one of them"
    require(labelled or not twice, "each file once", f"{twice} in several shards", remedy)


def _unpack(
    path: Path, names: Collection[str], root: Path, folder: PurePosixPath
) -> Iterator[dict[str, object]]:
    """Write the files of a shard, of these names, into a folder below a root, and yield rows of its images.

    A row has what further files of the sample say of its image. Raises InputError for a sample of two images.
    """
    images, said = dict[str, str](), defaultdict[str, dict[str, bytes]](dict)
    for parts, member, archive in _files(path):
        name, (key, field) = parts[0], parts.groups()
        kind, content = _kind(field), archive.extractfile(member) or BytesIO()
        is_short = not (kind and member.size > MOST_FACTS) and not name.lower().endswith(COMPRESSED)
        require(is_short, f"images and short texts in {path}", f"{name} of {member.size:,} bytes")
        first = images.setdefault(key, name) if name.lower().endswith(endings()) else name
        require(first == name, f"one image a sample in {path}", f"{first} and {name}", ONE_IMAGE)
        if kind:
            said[key][field] = content.read()
        else:
            write_member(root / folder / name, content)
    require_images(path, images, names)
    for key, fields in said.items():
        if key in images:
            yield {**_row(fields, key, path), FILE_COLUMNS[0]: str(folder / images[key])}
        else:
            for field, text in fields.items():
                write_member(root / folder / f"{key}.{field}", BytesIO(text))


def _kind(field: str) -> Literal["class", "object", "text", ""]:
    """What a field may say of the class of its sample; "" for nothing, as an image does."""
    words = field.lower().split(".")
    if f".{words[-1]}" in endings():
        return ""
    if words[-1] in OBJECTS:
        return "object"
    return "class" if CLASSES & {*words} else "text" if field.lower() in TEXTS else ""


def _row(facts: Mapping[str, bytes], key: str, path: Path) -> dict[str, object]:
    """What the fields beside an image say: its class, and the entries of its JSON; raises InputError."""
    said: dict[str, dict[str, Any]] = {"class": {}, "object": {}, "text": {}}
    for field, content in sorted(facts.items()):
        kind, where = _kind(field), f"{key}.{field} in {path}"
        with explaining(f"cannot read {where}", ValueError):
            text = content.decode("utf-8-sig")
            said[kind][field] = decoded(Any, text) if kind == "object" else label_text(text, where)
    label = next(filter(None, said["class"].values()), "")
    row: dict[str, object] = {}
    for entries in said["object"].values():  # anything but an object is the class alone
        row |= entries if isinstance(entries, dict) else {LABEL_COLUMNS[0]: entries}
    row = {name.lower(): value for name, value in row.items() if name.lower() not in FILE_COLUMNS}
    named = next((name for name in NAMED if row.get(name) is not None), None)
    if named and not label:
        label = labels_text(row.pop(named), f"the class of {key} in {path}")
    elif not (label or said["object"]):
        label = next(iter(said["text"].values()), "")
    plain = {name: each for name, each in row.items() if isinstance(each, str) or is_number(each)}
    others = {name: value for name, value in plain.items() if name not in LABEL_COLUMNS}
    return {**others, LABEL_COLUMNS[0]: label} if label else others
