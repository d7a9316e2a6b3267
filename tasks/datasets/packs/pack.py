"""Packs: a dataset's files as rows of Arrow tables, found by path and read one at a time.

A pack is that of the mini suite, whose shards are checked as far as possible without reading every byte when
it is opened, or a dataset in the form in which the Hub stores it, there or in a folder.
"""

import errno
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from layerboard.tasks.datasets.hub_spec import PREFIX, HubSpec, parse_hub_spec
from layerboard.tasks.datasets.integrity import explaining, mismatch
from layerboard.tasks.datasets.packs.hub_tables import open_hub_tables, tables_of
from layerboard.tasks.datasets.packs.shards import content_digest, read_shard, shards_below
from layerboard.zoo.errors import InputError, MissingDataError
from layerboard.zoo.online import hub_within_limits

# separates the name of a pack from the path of a file in it, as in URLs of files in Java archives
INSIDE = "!"


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
