"""Whether anything has changed of what is read of an output folder, by size and time of files.

Imports no pandas.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from stat import S_ISREG

from layerboard.leaderboards.records.files import NEAR_DUPLICATES
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.reading import read_regular

READ = ("records", "items", "arrays", "examples", NEAR_DUPLICATES)  # of an output folder, by pages and `show`
LIBRARIES = ("numpy", "pandas", "pyarrow", "scipy", "tabulate", "vl-convert-python")  # that write pages
PACKAGE = Path(__file__).parents[2]  # code and data; in a checkout it has links to the rooms
SHOWN = Path("tables", ".shown.json")  # in the output folder

Stamps = dict[str, list[int]]  # size and time of files by path


def state_of(output: Path) -> str:
    """Digest of the state of all that pages and `show` are made of: results, this package and libraries.

    Times of files count, not their contents: what was copied without them is another state.
    """
    read = (stamps_of(folder, _files(folder)) for folder in (PACKAGE, *(output / name for name in READ)))
    facts = (sys.version, *map(_version, LIBRARIES), *read)
    return hashlib.blake2b(repr(facts).encode(errors="surrogateescape"), digest_size=16).hexdigest()


def read_shown(output: Path, state: str, screen: int) -> dict[str, str]:
    """The texts by suite that were kept in that state for a screen of that width; none if others were."""
    try:
        known = json.loads(read_regular(output / SHOWN))
        same = (known["state"], known["screen"]) == (state, screen)
        return {str(suite): str(text) for suite, text in known["suites"].items()} if same else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def keep_shown(output: Path, state: str, screen: int, suites: Mapping[str, str]) -> None:
    """Keep the texts that show the best of every suite of a folder beside its pages, if it has any.

    ``state`` is that of the folder before its results were read.
    """
    if (output / SHOWN).parent.is_dir():
        content = {"state": state, "screen": screen, "suites": dict(suites)}
        with suppress(OSError):  # what can only be read is read again
            write_whole(output / SHOWN, json.dumps(content, indent=1) + "\n")


def _files(folder: Path) -> Iterator[str]:
    """Paths of all files below a folder, in order, without compiled code; "" for what is a file itself."""
    yield ""
    for top, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted({*folders} - {"__pycache__"})
        yield from (os.path.relpath(os.path.join(top, name), folder) for name in sorted(names))


def stamps_of(folder: Path, names: Iterable[str]) -> Stamps:
    """Size and time of files of a folder; neither for those that are not there."""
    return {name: _stamp(folder / name) for name in names}


def _stamp(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns] if S_ISREG(status.st_mode) else []


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""
