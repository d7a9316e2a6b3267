"""Files of records that carry a digest of their own bytes, so that one flipped bit is found.

The footer of the parquet file holds `MARK` and the BLAKE2b digest of the file with zeros in its place.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from zoo.atomic import whole_file

MARK = b"layerboard-seal:"
COMPANIONS = b"layerboard-companions"
"""Key of the digests of the files that belong to the records, such as items, by name."""

_DIGITS = 32
_BLANK = b"0" * _DIGITS


class UnsealedError(ValueError):
    """A file whose bytes are not those that were written."""


def file_digest(path: Path) -> str:
    """Digest of a file's bytes; raises OSError where it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_DIGITS // 2)).hexdigest()


def write_sealed(frame: pd.DataFrame, path: Path, companions: Mapping[str, str]) -> None:
    """Write records with their seal so that a reader sees either all of the file or none."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    facts = {MARK[:-1]: MARK + _BLANK, COMPANIONS: json.dumps(dict(companions)).encode()}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **facts})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = bytearray(sink.getvalue())
    place = _place(content)
    content[place : place + _DIGITS] = _digest(content).encode()
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def read_sealed(path: Path) -> bytes:
    """The bytes of a file whose seal is whole, or that is older than seals.

    Raises:
        OSError: It cannot be read.
        ValueError: Its bytes are not those that were written.
    """
    content = path.read_bytes()
    place = _place(content)
    if place < 0:
        if is_older(content):
            return content
        raise UnsealedError("it has lost its checksum")
    blank = content[:place] + _BLANK + content[place + _DIGITS :]
    if _digest(blank).encode() != content[place : place + _DIGITS]:
        raise UnsealedError("its bytes are not those that were written")
    return content


def is_older(content: bytes) -> bool:
    """Whether bytes of records are of a version that knew no seals, and no digest of the data."""
    return _place(content) < 0 and "data" not in pq.read_schema(pa.BufferReader(content)).names


def companions_of(content: bytes) -> dict[str, str]:
    """Digests of the files that belong to sealed records, by name; empty where there are none."""
    metadata = pq.read_schema(pa.BufferReader(content)).metadata or {}
    found: dict[str, str] = json.loads(metadata.get(COMPANIONS, b"{}"))
    return found


def _place(content: bytes | bytearray) -> int:
    """Where the digest begins; -1 where there is none. The footer stands behind all values."""
    found = content.rfind(MARK)
    return -1 if found < 0 else found + len(MARK)


def _digest(content: bytes | bytearray) -> str:
    return hashlib.blake2b(content, digest_size=_DIGITS // 2).hexdigest()
