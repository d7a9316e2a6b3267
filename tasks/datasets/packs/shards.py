"""Shards, the Arrow files of a pack: each row is a file of an official layout, with its digest.

A shard is an Arrow stream, the format in which ``datasets`` stores tables itself. It is mapped into memory:
any thread or process reads a row without its neighbours, and no file stays open.
"""

import re
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute

from layerboard.tasks.datasets.integrity import explaining, require
from layerboard.zoo.errors import some
from layerboard.zoo.reading import require_regular

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
