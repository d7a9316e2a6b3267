"""Pages that stay as they are while nothing has changed of what they are made of."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.state import stamps_of
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.reading import read_regular


def write_changed(board: Board, output: Path, state: str) -> tuple[list[Path], bool]:
    """Write the pages of one suite to ``OUTPUT/tables``, as `write_board` does, unless they are current.

    They are current if all of their files are there with the content with which they were written, and if
    nothing has changed since: neither the board, nor a file that pages read, of the output folder or of
    this package, nor a library. ``state`` is that of the folder before the board was read (`state_of`).

    Returns:
        The files, page by page, without the figures beside them; and whether they were written.
    """
    folder = output / "tables"
    facts, made_of = folder / f".{board.page}.json", _made_of(board, state)
    if pages := _current(facts, made_of):
        return [folder / name for name in pages], False
    from layerboard.leaderboards.writers.build import write_board  # imports what draws

    facts.unlink(missing_ok=True)
    written = write_board(board, folder)
    figures = (figure for page in written for figure in page.with_suffix("").glob("*.svg"))
    stamps = stamps_of(folder, (path.relative_to(folder).as_posix() for path in (*written, *figures)))
    known = {"made of": made_of, "pages": [path.name for path in written], "files": stamps}
    if facts.exists():  # another run wrote at the same time: whose pages are there is unknown
        facts.unlink(missing_ok=True)
    else:
        write_whole(facts, json.dumps(known, indent=1) + "\n")
    return written, True


def _current(facts: Path, made_of: str) -> list[str]:
    """Names of the pages in a folder if they are current by its facts, else none."""
    try:
        known: dict[str, Any] = json.loads(read_regular(facts))
        same = known["made of"] == made_of and known["files"] == stamps_of(facts.parent, known["files"])
        return [*map(str, known["pages"])] if same else []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # there are none, or they are damaged
        return []


def _made_of(board: Board, state: str) -> str:
    """Digest of what the pages of a board are made of."""
    digest = hashlib.blake2b(state.encode(), digest_size=16)
    facts = (board.suite, board.published, board.specs, *board.records)
    digest.update(repr(facts).encode(errors="surrogateescape"))
    digest.update(pd.util.hash_pandas_object(board.records, index=False).to_numpy().tobytes())
    return digest.hexdigest()
