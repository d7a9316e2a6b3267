"""Pages that stay as they are while nothing has changed of what they are made of."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.state import Stamps, stamps_of
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.reading import decoded, read_regular


@dataclass(frozen=True, slots=True)
class _Written:
    """Facts of the pages of a board when they were written."""

    made_of: str
    pages: list[str]  # their names
    files: Stamps


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
    known = _Written(made_of, [path.name for path in written], stamps)
    if facts.exists():  # another run wrote at the same time: whose pages are there is unknown
        facts.unlink(missing_ok=True)
    else:
        write_whole(facts, json.dumps(asdict(known), indent=1) + "\n")
    return written, True


def _current(facts: Path, made_of: str) -> list[str]:
    """Names of the pages in a folder if they are current by its facts, else none."""
    try:
        known = decoded(_Written, read_regular(facts))
    except (OSError, ValueError):  # there are none, or they are damaged
        return []
    same = known.made_of == made_of and known.files == stamps_of(facts.parent, known.files)
    return known.pages if same else []


def _made_of(board: Board, state: str) -> str:
    """Digest of what the pages of a board are made of."""
    digest = hashlib.blake2b(state.encode(), digest_size=16)
    facts = (board.suite, board.published, board.trainings, *board.records)
    digest.update(repr(facts).encode(errors="surrogateescape"))
    digest.update(pd.util.hash_pandas_object(board.records, index=False).to_numpy().tobytes())
    return digest.hexdigest()
