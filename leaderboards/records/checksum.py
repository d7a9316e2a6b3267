"""Record files that carry a digest of their own bytes, so that a single flipped bit is found.

The footer of the parquet file contains `MARK` and the BLAKE2b digest of the file with zeros in its place.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from layerboard.leaderboards.records.files import RESULTS_VERSION
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.reading import decoded, open_regular, read_regular

MARK = b"layerboard-seal:"
COMPANIONS = b"layerboard-companions"  # digests, by name, of the companions of the records
RESULTS = b"layerboard-results-version"  # files without it have the first version
LARGEST = 2**28  # bytes of a file of records
_DIGITS = 32
_BLANK = b"0" * _DIGITS


def file_digest(path: Path) -> str:
    """Digest of a file's bytes; raises OSError if it cannot be read."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_DIGITS // 2)).hexdigest()


def write_checked(frame: pd.DataFrame, path: Path, companions: Mapping[str, str] | None = None) -> None:
    """Write records atomically, with their checksum and the digests of their companions."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    facts = {MARK[:-1]: MARK + _BLANK, COMPANIONS: json.dumps(dict(companions or {})).encode()}
    facts[RESULTS] = str(RESULTS_VERSION).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **facts})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = bytearray(sink.getvalue())
    start = _start(content)
    content[start : start + _DIGITS] = _digest(content).encode()
    write_whole(path, content)


def read_checked(path: Path) -> bytes:
    """The bytes of a file; raises OSError, or ValueError as `require_checked` does."""
    content = read_regular(path, LARGEST)
    require_checked(content)
    return content


def require_checked(content: bytes) -> pq.FileMetaData:
    """The footer of a file of records; raises ValueError unless these are its bytes as they were written.

    Also raises ValueError for numbers of another `RESULTS_VERSION`: they are never mixed with those of this
    one.
    """
    start = _start(content)
    if start < 0:
        raise ValueError("it has lost its checksum")
    end = start + _DIGITS
    if _digest(content[:start] + _BLANK + content[end:]).encode() != content[start:end]:
        raise ValueError("its bytes are not those that were written")
    if (known := results_version(content)) != RESULTS_VERSION:
        raise ValueError(f"its numbers have results version {known}, those of today {RESULTS_VERSION}")
    return _footer(content)


def has_checksum(content: bytes) -> bool:
    """Whether the bytes of a file carry a checksum, intact or not."""
    return _start(content) >= 0


def companions_of(content: bytes) -> dict[str, str]:
    """Digests of the companions of some records, by name; empty if there are none."""
    return decoded(dict[str, str], (_footer(content).metadata or {}).get(COMPANIONS, b"{}"))


def results_version(content: bytes) -> int:
    """The results version of some records; raises ValueError if they are damaged."""
    return int((_footer(content).metadata or {}).get(RESULTS, b"1"))


def _footer(content: bytes) -> pq.FileMetaData:
    return pq.read_metadata(pa.BufferReader(content))


def _start(content: bytes | bytearray) -> int:
    """Where the digest begins; -1 if there is none. The footer follows all values."""
    mark = content.rfind(MARK)
    return -1 if mark < 0 else mark + len(MARK)


def _digest(content: bytes | bytearray) -> str:
    return hashlib.blake2b(content, digest_size=_DIGITS // 2).hexdigest()
