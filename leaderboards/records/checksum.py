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

from layerboard.zoo.atomic import write_whole

MARK = b"layerboard-seal:"
COMPANIONS = b"layerboard-companions"  # digests, by name, of the files that belong to the records
_DIGITS = 32
_BLANK = b"0" * _DIGITS


def file_digest(path: Path) -> str:
    """Digest of a file's bytes; raises OSError where it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_DIGITS // 2)).hexdigest()


def write_checked(frame: pd.DataFrame, path: Path, companions: Mapping[str, str] | None = None) -> None:
    """Write records whole, with their checksum and the digests of the files that belong to them."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    facts = {MARK[:-1]: MARK + _BLANK, COMPANIONS: json.dumps(dict(companions or {})).encode()}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **facts})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = bytearray(sink.getvalue())
    start = _start(content)
    content[start : start + _DIGITS] = _digest(content).encode()
    write_whole(path, content)


def read_checked(path: Path) -> bytes:
    """The bytes of a file; raises ValueError where they are not those that were written, or OSError."""
    content = path.read_bytes()
    start = _start(content)
    if start < 0:
        raise ValueError("it has lost its checksum")
    end = start + _DIGITS
    if _digest(content[:start] + _BLANK + content[end:]).encode() != content[start:end]:
        raise ValueError("its bytes are not those that were written")
    return content


def has_checksum(path: Path) -> bool:
    """Whether a file carries a checksum, whole or not."""
    return _start(path.read_bytes()) >= 0


def companions_of(content: bytes) -> dict[str, str]:
    """Digests of the files that belong to some records, by name; empty where there are none."""
    metadata = pq.read_schema(pa.BufferReader(content)).metadata or {}
    companions: dict[str, str] = json.loads(metadata.get(COMPANIONS, b"{}"))
    return companions


def _start(content: bytes | bytearray) -> int:
    """Where the digest begins; -1 where there is none. The footer stands behind all values."""
    mark = content.rfind(MARK)
    return -1 if mark < 0 else mark + len(MARK)


def _digest(content: bytes | bytearray) -> str:
    return hashlib.blake2b(content, digest_size=_DIGITS // 2).hexdigest()
