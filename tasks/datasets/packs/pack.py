"""Packs: a dataset's files as rows of Arrow tables, found by path and read one at a time.

A pack is that of the mini suite, whose shards are checked as far as possible without reading every byte when
it is opened, or a dataset in the form in which the Hub stores it, there or in a folder. In a shard, each row
is a file of an official layout, with its digest. It is an Arrow stream, the format in which ``datasets``
stores tables itself, and is mapped into memory: any thread or process reads a row without its neighbours, and
no file stays open.
"""

import errno
import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute

from layerboard.tasks.datasets.hub_spec import PREFIX, HubSpec, parse_hub_spec
from layerboard.tasks.datasets.integrity import explaining, mismatch, require
from layerboard.tasks.datasets.packs.hub_tables import open_hub_tables, tables_of
from layerboard.zoo.errors import InputError, MissingDataError, some
from layerboard.zoo.online import hub_within_limits
from layerboard.zoo.reading import require_regular

# separates the name of a pack from the path of a file in it, as in URLs of files in Java archives
INSIDE = "!"

ROWS = pa.schema([("path", pa.string()), ("bytes", pa.binary()), ("digest", pa.string())])
"""The rows of a shard: path of each file in its official layout, its bytes, and their `content_digest`."""

END = b"\xff\xff\xff\xff\0\0\0\0"  # of an Arrow stream; one that is cut off between batches lacks it alone
_NAME = re.compile(r"(.+)-\d+-of-(\d+)\.arrow")

_DAMAGE = OSError, ValueError, LookupError, TypeError, MemoryError, pa.ArrowException


def content_digest(content: bytes) -> str:
    """Digest of a file's bytes, 32 hexadecimal digits of BLAKE2b."""
    return blake2b(content, digest_size=16).hexdigest()


def shards_below(folder: Path) -> list[Path]:
    """The shards of a pack, ``DATASET/SPLIT-00000-of-00003.arrow``, in order; none in another folder.

    Raises InputError if a dataset has fewer than their names state, or none.
    """
    shards = sorted(folder.glob("*/*.arrow"))
    for dataset in folder.iterdir() if shards else ():
        is_whole = not dataset.is_dir() or any(dataset.glob("*.arrow"))
        require(is_whole, f"shards in {dataset}", remedy="fetch them")
    named = [(shard.parent, parts) for shard in shards if (parts := _NAME.fullmatch(shard.name))]
    counts = Counter((parent / parts[1], int(parts[2])) for parent, parts in named)
    for (split, total), count in counts.items():
        require(count == total, f"{total:,} shards {split}-*.arrow", f"{count:,}", "fetch the others")
    return shards


def read_shard(file: Path) -> Any:  # noqa: ANN401  # a table of pyarrow, which has no types of its own
    """The `ROWS` of a shard, whose bytes stay on disk; raises InputError."""
    damaged = f"expected a shard of a pack at {file}, which is damaged"
    with explaining(damaged, *_DAMAGE, remedy="fetch it again"):
        require_regular(file)
        with pa.memory_map(str(file)) as mapped, pa.ipc.open_stream(mapped) as stream:
            wanted, names = f"a shard of a pack at {file}", some(stream.schema.names)
            other = "--images hf:FOLDER takes what `datasets` saved"
            require("digest" in stream.schema.names, wanted, f"a table of {names}", other)
            table = stream.read_all()
            if mapped.read_at(len(END), max(0, mapped.size() - len(END))) != END:
                raise ValueError("it is cut off")
        table.validate(full=True)  # offsets beyond the file would be followed
        paths, contents = (compute.struct_field(table.column(0), field) for field in ("path", "bytes"))
        rows = pa.table([paths, contents, table["digest"]], ROWS.names)
        if rows.schema != ROWS or any(column.null_count for column in rows.columns):
            raise ValueError("its columns are not those of a pack")
        if table.nbytes > file.stat().st_size:
            raise ValueError("its rows do not fit into it")
    return rows


class Pack:
    """Files by their paths relative to the data folder, with ``/`` between names.

    Paths are in memory, contents are not. Several threads and forked processes may read it.
    """

    def __init__(self, files: Mapping[str, int], contents: Any, stamps: Any, *, digests: bool) -> None:  # noqa: ANN401
        """``files`` has the number of each file's row in two columns of Arrow tables, on disk.

        These are the bytes of each file, and a stamp that changes with them: their digest, or another one.
        """
        self._contents, self._stamps, self._digests = contents, stamps, digests
        folders = defaultdict[str, dict[str, int | None]](dict, {"": {}})
        for path, number in files.items():
            row: int | None = number
            known = False
            while not known:
                path, _, name = path.rpartition("/")
                known = path in folders
                folders[path][name], row = row, None
        self._folders = dict(folders)

    def folder(self, path: str) -> Mapping[str, int | None] | None:
        """What is in a folder: the row of each file, None of each folder, by name; None if there is none."""
        return self._folders.get(path)

    def row(self, path: str) -> int | None:
        parent, _, name = path.rpartition("/")
        return self._folders.get(parent, {}).get(name)

    def read(self, path: str) -> bytes:
        """Bytes of a file; raises FileNotFoundError, or InputError if they differ from what was packed."""
        row = self._existing(path)
        content = bytes(self._contents[row].as_py() or b"")
        if self._digests and content_digest(content) != (digest := self._stamps[row].as_py()):
            packed = f"{path} of the digest {digest} in its pack"
            raise mismatch(packed, "other bytes", "fetch the pack again")
        return content

    def stamp(self, path: str) -> tuple[int, str]:
        """Size of a file in bytes, and a marker that changes with them; raises FileNotFoundError."""
        row = self._existing(path)
        content = self._contents[row].as_buffer()  # which is mapped, not read
        return content.size if content else 0, str(self._stamps[row])

    def _existing(self, path: str) -> int:
        row = self.row(path)
        if row is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return row


def find_pack(name: str) -> tuple[str, Path]:
    """Full name and folder of a pack, ``hf:PATH``, ``hf:ID`` or ``hf:ID@REVISION``, fetched if missing.

    The full name finds it again: with an absolute path, or with a commit. Raises InputError.
    """
    spec = parse_hub_spec(name)
    if spec.options or INSIDE in name:
        raise InputError(f"--data takes {PREFIX}ID, {PREFIX}ID@REVISION or {PREFIX}FOLDER, found {name!r}")
    if not spec.local:
        folder = _fetched(spec)
        return f"{PREFIX}{spec.location}@{folder.name}", folder
    folder = Path(spec.location).absolute()
    if not folder.is_dir():
        raise MissingDataError(f"expected a folder with tables at {folder}, which does not exist")
    return f"{PREFIX}{folder}", folder


def open_pack(name: str) -> Pack:
    """The files of a pack; raises InputError unless all are valid."""
    _, folder = find_pack(name)
    if not (shards := shards_below(folder)):
        return Pack(*open_hub_tables(folder, name), digests=False)
    rows = pa.concat_tables(map(read_shard, shards))
    files = {path: row for row, path in enumerate(rows["path"].to_pylist())}
    return Pack(files, rows["bytes"], rows["digest"], digests=True)


def _fetched(spec: HubSpec) -> Path:
    """Folder of a commit of a Hub dataset, with the files of its tables if they exist; raises InputError."""
    from huggingface_hub import constants, snapshot_download

    tables, what = tables_of(spec.location), f"cannot fetch dataset {spec.text}"
    remedy = f"check the id and the network, or fetch it elsewhere and name its folder, {PREFIX}PATH"
    # any error: of the connection, the server or the disk
    with explaining(what, Exception, remedy=remedy, kind=MissingDataError), hub_within_limits():
        fetched = snapshot_download(
            spec.location,
            repo_type="dataset",
            revision=spec.revision or tables.revision,
            allow_patterns=[f"*{split}-*.parquet" for split in tables.splits],
            local_files_only=constants.HF_HUB_OFFLINE,
        )
    return Path(str(fetched))
