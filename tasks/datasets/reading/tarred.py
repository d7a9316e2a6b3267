"""Images in .tar files, such as the shards of WebDataset.

In a shard, files of one name up to the first dot are one sample: ``00012.jpg`` and its class in
``00012.cls``, ``00012.json`` or ``00012.txt``.
"""

import json
import re
import shutil
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from hashlib import blake2b
from io import FileIO
from os.path import commonprefix
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from layerboard.tasks.datasets.reading.fields import is_number
from layerboard.tasks.datasets.reading.files import require_free_bytes, require_inside, stamp
from layerboard.tasks.datasets.reading.labels import FILE_COLUMNS, LABEL_COLUMNS, METADATA
from layerboard.tasks.datasets.reading.splits import TRAIN, split_of, split_within
from layerboard.tasks.datasets.reading.tree import read_tree
from layerboard.tasks.datasets.reading.zipped import is_hidden, no_file, require_likely_size
from layerboard.zoo.atomic import move_once, remove_leftovers, temporary_folder
from layerboard.zoo.errors import InputError, MissingDataError, first_line, some
from layerboard.zoo.view.photos import endings

TAR = ".tar"
FACTS = ("cls", "json", "txt")  # endings of files that say the class of a sample, in order of preference
MOST_FACTS = 2**20  # bytes of such a file
MOST_SHARDS = 100_000
MOST_READ = 2**24  # bytes that are read at once
BLOCK, PADDING = 512, 10_240  # bytes of a header, and of the zeros after the last file at most
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
    if not shards:
        raise InputError(f"expected .tar files of {location}, found none; in braces is first..last")
    return shards


def _without_braces(text: str) -> list[str]:
    if (braces := _BRACES.search(text)) is None:
        return [text]
    first, last, words = braces.groups()
    numbers = range(int(first), min(int(last), int(first) + MOST_SHARDS) + 1) if first else ()
    parts = words.split(",") if words else [str(number).zfill(len(first)) for number in numbers]
    tails = _without_braces(text[braces.end() :])
    if len(parts) * len(tails) > MOST_SHARDS:
        raise InputError(f"expected at most {MOST_SHARDS:,} shards, found more in {text}; name their folder")
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


class TarShard(NamedTuple):
    """A .tar file and what is in it."""

    path: Path
    split: str  # said by its name or folder; "" for none
    members: Mapping[str, tarfile.TarInfo]  # files that are not hidden, by name

    def facts(self) -> dict[str, list[str]]:
        """The image of each sample that has one, with the files that say its class; raises InputError."""
        images, facts = dict[str, str](), defaultdict[str, list[str]](list)
        keys = {name: _key(name) for name in self.members}
        for name, (key, ending) in keys.items():
            if ending in FACTS:
                facts[key].append(name)
        for name, (key, _) in keys.items():
            if not name.lower().endswith(endings()):
                continue
            if key in images and key in facts:
                raise InputError(
                    f"expected one image a sample in {self.path}, found {images[key]} and {name}; pack one "
                    "of them"
                )
            images[key] = name
        return {image: facts.get(key, []) for key, image in images.items()}


def untar(tars: Mapping[str, Path], name: str, place: Path) -> Path:
    """The folder ``name`` below ``place`` with the content of .tar files, which are unpacked once.

    ``tars`` are files by what the user calls them. The folder is known by their paths, sizes and times of
    change. Hidden files are left out. What the samples of shards say of an image becomes a row of a table
    ``metadata.jsonl``; if all names of the shards say a split, the images are in a folder of it. Raises
    InputError for links, names outside of the folder, files that are there twice, no images or more than
    fit, and the errors of ``tarfile`` for a damaged archive.
    """
    paths = [*tars.values()]
    if missing := next((path for path in paths if not path.is_file()), None):
        raise MissingDataError(f"expected the file {missing}, which does not exist")
    stamps = [(str(path.resolve()), *stamp(path)) for path in paths]
    root = place / blake2b(repr(stamps).encode(), digest_size=16).hexdigest() / name
    if root.is_dir():
        return root
    remove_leftovers([place])
    splits = zip(paths, _splits([*map(PurePosixPath, tars)]), strict=True)
    shards = [_shard(path, split) for path, split in splits]
    whole = sum(member.size for shard in shards for member in shard.members.values())
    with temporary_folder(place) as draft:
        require_free_bytes(whole, place, f"{name}{TAR} unpacks to")
        _write(shards, draft / name)
        return move_once(draft / name, root)


def _shard(path: Path, split: str) -> TarShard:
    try:
        return TarShard(path, split, _members(path))
    except tarfile.TarError as error:
        raise tarfile.ReadError(f"{path.name}: {first_line(error)}") from error


def _splits(paths: Sequence[PurePosixPath]) -> list[str]:
    """The split of each shard; "" for all unless train and another are among them; raises InputError."""
    splits = [split_within(path.stem) or split_of(path.parent.name) for path in paths]
    if TRAIN not in splits or len({*splits}) == 1:
        return [""] * len(splits)
    if "" in splits:
        other = paths[splits.index("")]
        raise InputError(
            f"expected each name of the shards to say {TRAIN} or val, as {paths[splits.index(TRAIN)].name} "
            f"does, found {other}; rename it, or leave it out"
        )
    return splits


class _Bounded(FileIO):
    """A file of which never much is read at once, as a damaged header would have it."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= MOST_READ:
            raise tarfile.ReadError("it has a header of no likely size")
        return super().read(size)


def _members(path: Path) -> dict[str, tarfile.TarInfo]:
    """The files in a .tar that are not hidden, by name; raises InputError for unsafe ones."""
    members, whole = dict[str, tarfile.TarInfo](), 0
    with _Bounded(path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
        for member in archive:
            name = require_inside(str(PurePosixPath(member.name)), str(path))
            if member.isdir() or is_hidden(name):
                continue
            if not member.isreg():
                raise no_file(path, name)
            if name in members:
                raise InputError(f"expected each file once in {path}, found {name!r} twice; pack it again")
            members[name] = member
            whole += member.size
            require_likely_size(path, len(members), whole)
        file.seek(archive.offset)
        if file.read(BLOCK) != bytes(BLOCK):  # tarfile ends without an error at a header that it cannot read
            raise tarfile.ReadError(f"it is damaged or cut off after {len(members):,} files")
        if file.read(PADDING).strip(b"\0"):
            raise tarfile.ReadError("another archive follows in the same file")
    if not any(name.lower().endswith(endings()) for name in members):
        files = some(members) or "no file"
        raise InputError(f"expected images in {path}, found {files}; give another archive or a folder")
    return members


def _write(shards: Sequence[TarShard], root: Path) -> None:
    """Write the files of shards, and the table of what they say of images."""
    twice, labelled = _name_of_both(shards), False
    root.mkdir()
    table = root / METADATA[1]
    stems = Counter(shard.path.stem for shard in shards)
    with table.open("x", encoding="utf-8") as file:
        for number, shard in enumerate(shards):
            stem = shard.path.stem if stems[shard.path.stem] == 1 else f"{number}-{shard.path.stem}"
            folder = PurePosixPath(shard.split, stem if twice else "")
            for row in _written(shard, root, folder):
                labelled |= not {*map(str.lower, row)}.isdisjoint(LABEL_COLUMNS)
                file.write(json.dumps(row) + "\n")
    if not table.stat().st_size:
        table.unlink()
    if twice and not labelled:  # the folders of shards would be classes
        raise InputError(
            f"expected each file once, found {twice} in several shards; rename it in one of them"
        )


def _written(shard: TarShard, root: Path, folder: PurePosixPath) -> Iterator[dict[str, object]]:
    """Write the files of a shard into a folder below a root, and yield the rows of its images."""
    facts = shard.facts()
    beside = {name for names in facts.values() for name in names}
    with _Bounded(shard.path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
        for name in sorted({*shard.members} - beside, key=lambda name: shard.members[name].offset):
            target = root / folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with _opened(archive, shard.members[name]) as source, target.open("xb") as copy:
                shutil.copyfileobj(source, copy)
            if names := facts.get(name):
                row = _row(archive, [shard.members[each] for each in names], shard.path)
                yield {**row, FILE_COLUMNS[0]: str(folder / name)}


def _name_of_both(shards: Sequence[TarShard]) -> str:
    """The first name of a file that is in two shards of one split; "" if none is."""
    counts = Counter((shard.split, name) for shard in shards for name in shard.members)
    return next((name for (_, name), count in counts.items() if count > 1), "")


def _opened(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    opened = archive.extractfile(member)
    assert opened is not None  # a regular file
    return opened


def _row(archive: tarfile.TarFile, members: Sequence[tarfile.TarInfo], path: Path) -> dict[str, object]:
    """What the files beside an image say of it: its class, and the fields of its JSON; raises InputError."""
    text = {}
    for member in members:
        if member.size > MOST_FACTS:
            raise InputError(f"expected what {path} says of an image to be short, found {member.name}")
        with _opened(archive, member) as file:
            content = file.read()
        try:
            ending = _key(member.name)[1]
            text[ending] = json.loads(content) if ending == "json" else content.decode().strip()
        except (ValueError, RecursionError) as error:
            raise InputError(f"cannot read {member.name} in {path}: {first_line(error)}") from error
    fields = text.get("json", {})
    if not isinstance(fields, dict):  # the class alone
        fields = {LABEL_COLUMNS[0]: fields}
    row = {
        name: value
        for name, value in fields.items()
        if (isinstance(value, str) or is_number(value)) and name.lower() not in FILE_COLUMNS
    }
    label = text.get("cls", "" if "json" in text else text.get("txt", ""))
    if label:
        row = {name: value for name, value in row.items() if name.lower() not in LABEL_COLUMNS}
        row[LABEL_COLUMNS[0]] = label
    return row


def _key(name: str) -> tuple[str, str]:
    """The sample that a file belongs to, and what follows the first dot of its name, in lower case."""
    folder, _, file = name.rpartition("/")
    stem, _, ending = file.partition(".")
    return f"{folder}/{stem}", ending.lower()
